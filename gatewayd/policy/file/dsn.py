"""Addresses of databases: ${VAR} in a policy's `url`, and whether asyncpg would take a connection string (decisions 1, 2, 11).

Every text here may hold a password, so a problem names a part of the address or a parameter, never a value. asyncpg passes an
unknown parameter on as a server setting, which the server refuses at each connection; here it is a problem at start.
"""

import re
from typing import Final, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from gatewayd.policy.file.problem import did_you_mean

EXPECTED: Final = "postgresql://user:password@host:5432/database"
SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

# What asyncpg 0.30 and later reads from a URL, and `options`, which the server reads itself.
_PARAMETERS: Final = (
    *("host", "port", "dbname", "database", "user", "password", "passfile", "service", "options", "target_session_attrs"),
    *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation"),
    *("ssl_min_protocol_version", "ssl_max_protocol_version", "krbsrvname", "gsslib"),
)
# Parameters of libpq that asyncpg does not know. An error names no others: an unescaped ? puts half of a password there.
_NOT_TAKEN: Final = (
    *("application_name", "channel_binding", "connect_timeout", "client_encoding", "gssencmode", "hostaddr", "keepalives"),
    *("keepalives_idle", "load_balance_hosts", "require_auth", "sslcompression", "sslsni", "tcp_user_timeout"),
)
_SESSION_ATTRS: Final = ("any", "primary", "standby", "read-write", "read-only", "prefer-standby")
_VARIABLE: Final = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}", re.ASCII)


class Lookup(Protocol):
    """Where ${VAR} is looked up: a mapping of names to values, or what reads credential files at each question."""

    def get(self, name: str, /) -> str | None: ...


def replace_variables(text: str, variables: Lookup) -> str:
    """The text with each ${VAR} replaced. Raises ValueError naming the variable that is unset or empty, or the stray `$`."""
    if "$" in _VARIABLE.sub("", text):
        raise ValueError("found a stray $; expected ${NAME} with NAME of A-Z 0-9 _ (a $ of the password itself is written %24)")
    values = {name: variables.get(name) for name in _VARIABLE.findall(text)}
    if not all(values.values()):
        shown = ", ".join(f"${{{name}}}" for name, value in values.items() if not value)
        raise ValueError(f"found {shown} unset or empty; expected a value in the environment")
    return _VARIABLE.sub(lambda match: values[match[1]] or "", text)


def check(dsn: str) -> str | None:
    """What is wrong with the connection string, as `found …; expected …`; None when asyncpg takes it."""
    if any(c.isspace() or not c.isprintable() for c in dsn):
        if re.match(r"\s*[a-z_]+\s*=", dsn):
            return f"found key=value pairs; expected the URL form {EXPECTED}"
        return f"found blanks or control characters; expected {EXPECTED} with them percent-encoded"
    if "://" not in dsn:
        kind = "key=value pairs" if re.match(r"[a-z_]+=", dsn) else "no URL"
        return f"found {kind}; expected the URL form {EXPECTED}"
    if dsn.split("://")[0] not in ("postgres", "postgresql"):
        return "found another scheme; expected postgres:// or postgresql://"
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return f"found a malformed host; expected {EXPECTED}"
    if parts.fragment or "#" in dsn:
        return "found an unescaped #; expected it percent-encoded as %23"
    if parts.netloc.count("@") > 1:
        return "found more than one @ before the host; expected an @ of the user or password percent-encoded as %40"
    if "@" in parts.path or "@" in parts.query:
        return "found an @ after the host; expected a / or ? of the user or password percent-encoded as %2F or %3F"
    if "%00" in dsn:
        return "found %00; expected text without NUL"
    if re.search(r"%(?![0-9A-Fa-f]{2})", dsn):
        return "found a % without two hex digits; expected a % of a name or password percent-encoded as %25"
    return _hosts(parts.netloc.rpartition("@")[2]) or _parameters(parts.query)


def _hosts(netloc: str) -> str | None:
    for spec in netloc.split(",") if netloc else ():
        if spec.startswith("["):
            address, bracket, rest = spec.partition("]")
            if not bracket or ":" not in address or (rest and not rest.startswith(":")):
                return "found a malformed IPv6 host; expected [address]:port"
            port = rest[1:] if rest else None
        elif "/" in unquote(spec):
            port = None  # a percent-encoded socket folder
        else:
            host, colon, after = spec.partition(":")
            if host == "" and colon:
                return f"found a port without a host; expected {EXPECTED}"
            port = after if colon else None
        if port is not None and not _is_port(port):
            return "found a port that is no number from 1 to 65535; expected one (a / or : of the password is percent-encoded)"
    return None


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535


def _parameters(query: str) -> str | None:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        return "found malformed parameters after ?; expected name=value pairs with & between"
    for name, value in pairs:
        if name not in _PARAMETERS:
            shown = f"the parameter {name}" if name in _NOT_TAKEN else f"an unknown parameter{did_you_mean(name, _PARAMETERS)}"
            return f"found {shown}; expected one of {', '.join(_PARAMETERS)}"
        if value == "":
            return f"found the parameter {name} empty; expected a value"
        if name == "sslmode" and value not in SSL_MODES:
            return f"found another sslmode; expected one of {', '.join(SSL_MODES)}"
        if name == "target_session_attrs" and value not in _SESSION_ATTRS:
            return f"found another target_session_attrs; expected one of {', '.join(_SESSION_ATTRS)}"
        if name == "port" and not all(_is_port(port) for port in value.split(",")):
            return "found a port parameter that is no number from 1 to 65535; expected one"
    return None
