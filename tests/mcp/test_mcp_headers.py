"""Header rules as tables: media ranges, who may ask, mirrored values, token ids."""

import pytest

from gatewayd.config.settings import LOOPBACK_HOSTS
from gatewayd.mcp import header_rules as headers
from gatewayd.mcp.header_rules import Callers

JSON = b"application/json"
ULID = b"01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (b"application/json", True),
        (b"APPLICATION/JSON", True),
        (b"text/html, application/json;q=0.5", True),
        (b"application/*", True),
        (b"*/*;q=0.1", True),
        (b"application/json; charset=utf-8 ; q=1", True),
        (b"", False),
        (b"application/json;q=0", False),
        (b"application/json;q=0.000", False),
        (b"application/json-seq", False),
        (b"xapplication/json", False),
        (b"text/event-stream", False),
        (b"text/*", False),
    ],
)
def test_accept(value: bytes, accepted: bool) -> None:
    assert headers.accepts(value, JSON) is accepted


@pytest.mark.parametrize("value", [b"application/json", b"Application/JSON ; charset=utf-8"])
def test_json(value: bytes) -> None:
    assert headers.is_json(value)


@pytest.mark.parametrize("value", [b"", b"text/plain", b"application/jsonp", b"application/x-www-form-urlencoded"])
def test_not_json(value: bytes) -> None:
    assert not headers.is_json(value)


def test_repeated_headers_are_named_and_accept_is_joined() -> None:
    found, repeated = headers.read(
        [(b"accept", b"a/b"), (b"accept", b"c/d"), (b"mcp-name", b"x"), (b"mcp-name", b"y"), (b"x-other", b"z")]
    )
    assert found == {b"accept": b"a/b, c/d", b"mcp-name": b"x"}
    assert repeated == {b"mcp-name"}


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        (b"localhost", True),
        (b"LOCALHOST:8080", True),
        (b"127.0.0.1:9", True),
        (b"[::1]:80", True),
        (b"evil.example", False),
        (b"localhost.evil.example", False),
        (b"127.0.0.1.evil.example:80", False),
        (b"", False),
    ],
)
def test_loopback_hosts(host: bytes, allowed: bool) -> None:
    assert Callers(LOOPBACK_HOSTS, None).allows_host(host) is allowed


def test_hosts_by_setting() -> None:
    assert Callers(None, None).allows_host(b"anything")
    listed = Callers(["gw.example", "other.example:8443"], None)
    assert listed.allows_host(b"GW.example:1234")
    assert listed.allows_host(b"other.example:8443")
    assert not listed.allows_host(b"other.example:80")
    assert not listed.allows_host(b"localhost")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (b"http://localhost", True),
        (b"https://localhost:5173", True),
        (b"http://127.0.0.1:80", True),
        (b"http://[::1]:80", True),
        (b"null", False),
        (b"", False),
        (b"https://evil.example", False),
        (b"http://localhost.evil.example", False),
        (b"http://localhost@evil.example", False),
        (b"file://localhost", False),
        (b"http://[::1", False),
    ],
)
def test_loopback_origins(origin: bytes, allowed: bool) -> None:
    assert Callers(None, None).allows_origin(origin) is allowed


def test_origins_by_setting() -> None:
    listed = Callers(None, ["https://app.example", "null"])
    assert listed.allows_origin(b"https://APP.example/")
    assert listed.allows_origin(b"null")
    assert not listed.allows_origin(b"https://app.example:8443")
    assert not listed.allows_origin(b"http://localhost")
    assert Callers(None, ["*"]).allows_origin(b"https://any.example")


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (b"query", "query"),
        (b" \tquery ", "query"),
        (b"=?base64?cXVlcnk=?=", "query"),
        (b"=?base64?w6k=?=", "é"),
        (b"=?base64?cXVl*?=", "=?base64?cXVl*?="),
        (b"=?base64?cXVlc?=", None),
        (b"=?base64?/w==?=", None),
        (b"\xff", None),
    ],
)
def test_mirrored(value: bytes, meant: str | None) -> None:
    assert headers.mirrored(value) == meant


def test_token_id() -> None:
    one = {b"x-gateway-token-id": ULID}
    assert headers.token_id(one, frozenset()) == ULID.decode()
    assert headers.token_id(one, frozenset({b"x-gateway-token-id"})) is None
    assert headers.token_id({}, frozenset()) is None
    for malformed in (b"", ULID[:-1], ULID + b"0", b"8" + ULID[1:], ULID.replace(b"A", b"U"), ULID.lower()):
        assert headers.token_id({b"x-gateway-token-id": malformed}, frozenset()) is None


def test_session_id() -> None:
    assert headers.session_id({}, frozenset()) is None
    assert headers.session_id({b"mcp-session-id": b"abc"}, frozenset()) == "abc"
    for unknown in (b"", b"a b", b"\xff", b"a" * 1501):
        assert headers.session_id({b"mcp-session-id": unknown}, frozenset()) == ""
