"""`gatewayd doctor`: what it finds with everything in order, and with each thing broken in turn."""

import itertools
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayd.cli.doctor.database import hosts
from tests.cli.conftest import Served
from tests.cli.gatewayd_process import run, run_on_terminal
from tests.conftest import Postgres

_numbers = itertools.count(1)


def new_role(postgres: Postgres, options: str = "") -> str:
    """Roles belong to the server, and stay as long as a database speaks of them."""
    role = f"doctor_{next(_numbers)}"
    postgres.execute(f"CREATE ROLE {role} LOGIN {options}")
    return role


def looked(variables: dict[str, str]) -> tuple[int, list[dict[str, Any]]]:
    shown = run(["doctor"], variables)
    assert "Traceback" not in shown.stderr, shown.stderr
    return shown.returncode, [json.loads(line) for line in shown.stdout.splitlines()]


def outcome(checks: list[dict[str, Any]], name: str) -> str:
    """The gravest outcome under a name."""
    found = [each["outcome"] for each in checks if each["check"] == name]
    return next((word for word in ("FAIL", "WARN", "OK", "SKIP") if word in found), "none")


def told(checks: list[dict[str, Any]], name: str) -> str:
    return " ".join(each["found"] + " " + each["remedy"] for each in checks if each["check"] == name)


@pytest.fixture
def alone(postgres: Postgres, tmp_path: Path, free_port: int) -> dict[str, str]:
    """A configuration in order that nobody serves: an own role with few rights."""
    role = new_role(postgres)
    schema = "CREATE TABLE t (a int); CREATE TABLE secrets (a int); REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
    dsn = postgres.create_database(f"{schema} GRANT SELECT ON t TO {role}", user=role)
    (tmp_path / "policy.yaml").write_text(
        "table_access: {default: deny, tables: {t: read}}\nguardrails: {block_dml: true}\n", encoding="utf-8"
    )
    return {
        "DATABASE_URL": dsn,
        "DB_PATH": str(tmp_path / "audit.db"),
        "GATEWAY_POLICY_FILE": str(tmp_path / "policy.yaml"),
        "GATEWAY_HOST": "127.0.0.1",
        "PORT": str(free_port),
        "INDEXER_TOKEN": "0123456789abcdef0123456789abcdef",
    }


def test_in_order(alone: dict[str, str]) -> None:
    code, checks = looked(alone)
    assert code == 0
    bad = [each for each in checks if each["outcome"] != "OK" and each["check"] not in ("running", "audit file")]
    writable_by_us = [each for each in bad if each["check"] == "policy"]  # the tests' own account may write it
    assert bad == writable_by_us
    assert list(dict.fromkeys(each["check"] for each in checks)) == [
        *("configuration", "policy", "audit file", "listener", "operators' token"),
        *("reach", "login", "encryption", "version", "role", "rights", "catalog", "canary", "running"),
    ]
    assert outcome(checks, "running") == "WARN"
    assert all(each["remedy"] for each in checks if each["outcome"] in ("WARN", "FAIL"))


def test_it_leaves_nothing_behind(alone: dict[str, str], tmp_path: Path) -> None:
    before = sorted(os.listdir(tmp_path))
    looked({**alone, "TMPDIR": str(tmp_path)})
    assert sorted(os.listdir(tmp_path)) == before


def test_a_gatewayd_that_runs_is_asked_as_an_agent(served: Served) -> None:
    code, checks = looked(served.variables)
    assert code == 0
    assert outcome(checks, "running") == outcome(checks, "as an agent") == "OK"
    asked = run(["audit", "tail", "--agent", "gatewayd doctor"], served.variables).stdout
    assert "SELECT 1 AS canary" in asked


def test_configuration_problems_end_it(alone: dict[str, str]) -> None:
    code, checks = looked({**alone, "PORT": "x", "GATEWAY_TRANSPORT": "pigeon"})
    assert code == 1
    assert [(each["check"], each["outcome"]) for each in checks] == [("configuration", "FAIL")] * 2


@pytest.mark.parametrize(
    ("variables", "name", "word", "found"),
    [
        ({"GATEWAY_HOST": "0.0.0.0"}, "listener", "WARN", "open to the network"),
        ({"GATEWAY_HOST": "0.0.0.0", "GATEWAY_ALLOWED_HOSTS": "db.example.com"}, "listener", "OK", "db.example.com"),
        ({"GATEWAY_TRANSPORT": "stdio"}, "listener", "SKIP", "stdio"),
        ({"INDEXER_TOKEN": "short"}, "operators' token", "WARN", "shorter"),
        ({"DB_PATH": "/proc/1/audit.db"}, "audit file", "FAIL", "DB_PATH"),
        ({"GATEWAY_PORT": "1"}, "configuration", "WARN", "GATEWAY_PORT"),
    ],
    ids=lambda value: next(iter(value.items()))[0] + "=" + next(iter(value.items()))[1] if isinstance(value, dict) else "",
)
def test_one_thing_is_different(alone: dict[str, str], variables: dict[str, str], name: str, word: str, found: str) -> None:
    if name == "audit file":
        variables = {"DB_PATH": alone["GATEWAY_POLICY_FILE"] + "/audit.db"}
    code, checks = looked({**alone, **variables})
    assert outcome(checks, name) == word
    assert found in told(checks, name)
    assert code == (1 if word == "FAIL" else 0)


def test_what_is_unset_is_told(alone: dict[str, str]) -> None:
    del alone["INDEXER_TOKEN"], alone["GATEWAY_POLICY_FILE"]
    code, checks = looked(alone)
    assert code == 0
    assert "answer 404" in told(checks, "operators' token")
    assert "gatewayd policy init" in told(checks, "policy")


def test_masks_are_held_against_the_catalog(alone: dict[str, str]) -> None:
    policy = Path(alone["GATEWAY_POLICY_FILE"])
    text = policy.read_text(encoding="utf-8")
    for masks, word, found in (("{a: null-out}", "OK", "1 column masked"), ("{b: null-out}", "FAIL", "does not have")):
        policy.write_text(f"{text}column_masks: {{t: {masks}}}\n", encoding="utf-8")
        code, checks = looked({**alone, "GATEWAY_MASK_SALT": "salt"})
        assert (outcome(checks, "masks"), code) == (word, int(word == "FAIL"))
        assert found in told(checks, "masks")


def test_a_database_that_cannot_be_reached(alone: dict[str, str], free_port: int) -> None:
    for url, found in (
        ("postgresql://a@no-such-host.invalid/d", "cannot be resolved"),
        (f"postgresql://a@127.0.0.1:{free_port}/d", "refuses connections"),
        ("postgresql://a@/d?host=/nowhere", "there is no socket /nowhere/.s.PGSQL.5432"),
    ):
        # No network may be there to ask for a name: the resolver then gives up before doctor does.
        code, checks = looked({**alone, "DATABASE_URL": url, "RES_OPTIONS": "timeout:1 attempts:1"})
        assert code == 1
        assert found in told(checks, "reach")
        assert outcome(checks, "login") == "none"


def test_a_login_that_is_refused(alone: dict[str, str], postgres: Postgres) -> None:
    for url, found in ((postgres.dsn(password="not-this-one"), "28P01"), (postgres.dsn("nowhere"), "3D000")):
        shown = run(["doctor"], {**alone, "DATABASE_URL": url})
        checks = [json.loads(line) for line in shown.stdout.splitlines()]
        assert shown.returncode == 1
        assert outcome(checks, "login") == "FAIL"
        assert found in told(checks, "login")
        assert "not-this-one" not in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("options", "grants", "found"),
    [
        ("SUPERUSER", "", "is a superuser"),
        ("BYPASSRLS", "", "BYPASSRLS"),
        ("CREATEROLE", "", "CREATEROLE"),
        ("", "GRANT pg_read_server_files TO {role}", "member of pg_read_server_files"),
        ("", "GRANT CREATE ON SCHEMA public TO {role}", "can create in schema public"),
        ("", "GRANT INSERT ON t TO {role}", "can write 1 table that the policy does not let be written: public.t"),
        ("", "GRANT SELECT ON secrets TO {role}", "can read 1 table that the policy denies: public.secrets"),
    ],
)
def test_a_role_that_may_too_much(alone: dict[str, str], postgres: Postgres, options: str, grants: str, found: str) -> None:
    role = new_role(postgres, options)
    schema = "CREATE TABLE t (a int); CREATE TABLE secrets (a int); REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
    dsn = postgres.create_database(f"{schema} {grants.format(role=role)}", user=role)
    code, checks = looked({**alone, "DATABASE_URL": dsn})
    assert code == 0
    assert found in told(checks, "role") + told(checks, "rights")
    assert (outcome(checks, "role"), outcome(checks, "rights")).count("WARN") == 1


@pytest.mark.parametrize(
    ("mask", "rewriting", "settings", "found"),
    [
        ("consistent-hash", "1", "log_min_duration_statement = 0", "WARN"),
        ("consistent-hash", "1", "log_statement = 'all'", "WARN"),
        ("consistent-hash", "1", "log_statement = 'all'; ALTER ROLE {role} SET log_parameter_max_length = 0", "OK"),
        ("consistent-hash", "1", "log_statement = 'mod'", "OK"),
        ("consistent-hash", "0", "log_statement = 'all'", "none"),
        ("full-redact", "1", "log_statement = 'all'", "none"),
    ],
)
def test_keys_of_masks_in_the_log_of_the_server(
    alone: dict[str, str], postgres: Postgres, mask: str, rewriting: str, settings: str, found: str
) -> None:
    role = new_role(postgres)
    postgres.execute(f"ALTER ROLE {role} SET {settings.format(role=role)}")
    dsn = postgres.create_database(f"CREATE TABLE t (a text); GRANT SELECT ON t TO {role}", user=role)
    policy = Path(alone["GATEWAY_POLICY_FILE"])
    policy.write_text(f"column_masks: {{t: {{a: {mask}}}}}\n", encoding="utf-8")
    more = {"DATABASE_URL": dsn, "GATEWAY_MASK_SALT": "salt", "GATEWAY_MASK_SOURCE_REWRITE": rewriting}
    _, checks = looked({**alone, **more})
    assert outcome(checks, "server log") == found


@contextmanager
def answering(port: int, reply: bytes) -> Iterator[None]:
    """Something that is no gatewayd and answers each connection with `reply`."""
    with socket.create_server(("127.0.0.1", port)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", b""]
)
def test_something_else_on_the_port(alone: dict[str, str], reply: bytes) -> None:
    with answering(int(alone["PORT"]), reply):
        code, checks = looked(alone)
    assert code == 1
    assert outcome(checks, "running") == "FAIL"


def test_a_person_sees_words_and_no_secret(alone: dict[str, str]) -> None:
    code, shown = run_on_terminal(["doctor"], {**alone, "NO_COLOR": "1"})
    assert code == 0
    assert "canary" in shown
    assert '{"' not in shown
    assert alone["INDEXER_TOKEN"] not in shown
    assert alone["DATABASE_URL"] not in shown


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p@db.example.com/d", [("db.example.com", 5432)]),
        ("postgresql://u:p@db:6000/d", [("db", 6000)]),
        ("postgresql://u:p@a:1,b:2,c/d", [("a", 1), ("b", 2), ("c", 5432)]),
        ("postgresql://u@[::1]:6000/d", [("::1", 6000)]),
        ("postgresql://u@[::1]/d", [("::1", 5432)]),
        ("postgresql://u@/d?host=/run/postgresql&port=6000", [("/run/postgresql", 6000)]),
        ("postgresql://u@/d?host=a,b&port=1,2", [("a", 1), ("b", 2)]),
        ("postgresql://u@%2Frun%2Fpg/d", [("/run/pg", 5432)]),
        ("postgresql:///d", [("localhost", 5432)]),
    ],
)
def test_hosts_of_an_address(url: str, expected: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    monkeypatch.delenv("PGPORT", raising=False)
    assert hosts(url) == expected
