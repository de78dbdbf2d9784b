"""Connection strings: what asyncpg takes passes, what it would refuse or misread is named without being shown."""

import pytest
from asyncpg import connect_utils

from gatewayd.policy.file.dsn import SSL_MODES, check

TAKEN = [
    "postgres://",
    "postgresql://",
    "postgresql:///db",
    "postgresql://h",
    "postgresql://h/db",
    "postgresql://h:1/db",
    "postgresql://u@h:65535/db",
    "postgresql://u:p@h/db",
    "postgresql://u:p%40%3A%2F%23%3F%25@h/db",
    "postgresql://u:p!$&'()*+,;=:~w@h/db",
    "postgresql://[::1]:5433/db",
    "postgresql://[::1]/db",
    "postgresql://a:1,b:2/db",
    "postgresql://a,b/db?target_session_attrs=primary",
    "postgresql://u@/db?host=/var/run/postgresql&port=5433",
    "postgresql://%2Fvar%2Frun%2Fpostgresql/db",
    "postgresql://h/db?user=u&password=p&dbname=x",
    "postgresql://h/db?options=-c%20geqo%3Doff",
    *(f"postgresql://h/db?sslmode={mode}" for mode in SSL_MODES if not mode.startswith("verify")),
]

REFUSED = {
    "mysql://u:canary@h/db": "found another scheme; expected postgres:// or postgresql://",
    "u:canary@h/db": "found no URL; expected the URL form",
    "host=h password=canary": "found key=value pairs; expected the URL form",
    "password=canary": "found key=value pairs; expected the URL form",
    "postgresql://u:can ary@h/db": "found blanks or control characters; expected",
    "postgresql://u:canary@h/db\n": "found blanks or control characters; expected",
    "postgresql://u:canary\udcff@h/db": "found blanks or control characters; expected",
    "postgresql://u:can@ary@h/db": "found more than one @ before the host; expected",
    "postgresql://u:can/ary@h/db": "found an @ after the host; expected",
    "postgresql://u:1?ary=canary@h/db": "found an @ after the host; expected",
    "postgresql://u:can#ary@h/db": "found an unescaped #; expected it percent-encoded as %23",
    "postgresql://u:canary%zz@h/db": "found a % without two hex digits; expected",
    "postgresql://u:canary%00@h/db": "found %00; expected text without NUL",
    "postgresql://[::1/db": "found a malformed host; expected",
    "postgresql://[::1]x/db": "found a malformed",
    "postgresql://[canary]/db": "found a malformed",
    "postgresql://h:0/db": "found a port that is no number from 1 to 65535; expected",
    "postgresql://h:65536/db": "found a port that is no number from 1 to 65535; expected",
    "postgresql://h:/db": "found a port that is no number from 1 to 65535; expected",
    "postgresql://a:1,b:canary/db": "found a port that is no number from 1 to 65535; expected",
    "postgresql://:5432/db": "found a port without a host; expected",
    "postgresql://h/db?sslmode=on": "found another sslmode; expected one of disable, allow, prefer, require,",
    "postgresql://h/db?sslmod=require": "found an unknown parameter (did you mean sslmode?); expected one of host,",
    "postgresql://h/db?canary=x": "found an unknown parameter; expected one of host,",
    "postgresql://h/db?connect_timeout=3": "found the parameter connect_timeout; expected one of host,",
    "postgresql://h/db?channel_binding=require": "found the parameter channel_binding; expected one of host,",
    "postgresql://h/db?sslmode=": "found the parameter sslmode empty; expected a value",
    "postgresql://h/db?canary": "found malformed parameters after ?; expected",
    "postgresql://h/db?port=0": "found a port parameter that is no number from 1 to 65535; expected",
    "postgresql://h/db?target_session_attrs=canary": "found another target_session_attrs; expected one of any,",
}


@pytest.mark.parametrize("dsn", TAKEN)
def test_taken_here_is_taken_by_asyncpg(dsn: str) -> None:
    assert check(dsn) is None
    nothing = dict.fromkeys(
        [
            *("host", "port", "user", "password", "passfile", "database", "ssl", "service", "servicefile", "direct_tls"),
            *("server_settings", "target_session_attrs", "krbsrvname", "gsslib"),
        ]
    )
    connect_utils._parse_connect_dsn_and_args(dsn=dsn, **nothing)


@pytest.mark.parametrize("dsn", REFUSED)
def test_refused_with_what_is_wrong_and_without_the_password(dsn: str) -> None:
    problem = check(dsn)
    assert problem is not None
    assert problem.startswith(REFUSED[dsn])
    assert "canary" not in problem
    assert "ary" not in problem.replace("primary", "")
