"""GET /audit/since and DELETE /audit/before on a real socket: statuses, headers, pages, the guard (decision 7)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio
from quart import Blueprint, Response

from gatewayd.audit.service import Audit, open_audit
from gatewayd.operators.audit_pull import audit_routes, page_rows
from gatewayd.operators.guard import Guard, read_body
from tests.audit.audit_calls import Calls
from tests.http.operators_served import BEARER, TOKEN, serving

SINCE = "/audit/since/0"
LAST = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


@asynccontextmanager
async def gateway(path: Path, token: str | None = TOKEN) -> AsyncGenerator[tuple[httpx.AsyncClient, Audit], None]:
    async with open_audit(str(path / "audit.db")) as audit, serving([audit_routes(audit, Guard(token))]) as client:
        yield client, audit


async def connected(client: httpx.AsyncClient) -> trio.SocketStream:
    """A bare connection to the server that `client` talks to."""
    assert client.base_url.port is not None
    return await trio.open_tcp_stream("127.0.0.1", client.base_url.port)


async def test_pages_are_pulled_then_deleted(tmp_path: Path) -> None:
    calls = Calls()
    async with gateway(tmp_path) as (client, audit):
        for _ in range(4):
            await calls.whole(audit)
        pulled: list[str] = []
        cursor: str | None = "0"
        while cursor is not None:
            answer = await client.get(f"/audit/since/{cursor}?limit=5", headers=BEARER)
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["cache-control"] == "no-store"
            page = answer.json()
            assert list(page) == ["rows", "next_cursor"]
            pulled += [row["id"] for row in page["rows"]]
            assert page["next_cursor"] in (pulled[-1], None)
            cursor = page["next_cursor"]
        assert len(pulled) == 12
        deleted = await client.delete(f"/audit/before/{pulled[4].lower()}", headers=BEARER)
        assert (deleted.status_code, deleted.json()) == (200, {"deleted": 5})
        assert (await client.delete(f"/audit/before/{pulled[4]}", headers=BEARER)).json() == {"deleted": 0}
        assert (await client.delete("/audit/before/0", headers=BEARER)).json() == {"deleted": 0}
        left = (await client.get(SINCE, headers=BEARER)).json()
        assert [row["id"] for row in left["rows"]] == pulled[5:]
        assert left["next_cursor"] is None
        assert left["rows"][-1]["payload"] == {"exec_ms": 3, "overhead_ms": 1, "rows_returned": 1}


@pytest.mark.parametrize(
    ("limit", "rows"),
    [(None, 500), ("", 500), ("0", 500), ("000", 500), ("-1", 500), ("x", 500), ("1.5", 500), ("٣", 500), ("7", 7), ("007", 7),
     ("1000", 1000), ("1001", 1000), ("9" * 5000, 1000)],
)  # fmt: skip
def test_page_size(limit: str | None, rows: int) -> None:
    assert page_rows(limit) == rows


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer \xff",
    ],
)
@pytest.mark.parametrize(("method", "target"), [("GET", SINCE), ("DELETE", f"/audit/before/{LAST}")])
async def test_without_the_token_nothing_is_shown_or_done(
    tmp_path: Path, authorization: str | None, method: str, target: str
) -> None:
    async with gateway(tmp_path) as (client, audit):
        await Calls().whole(audit)
        headers = {} if authorization is None else {b"authorization": authorization.encode("latin-1")}
        answer = await client.request(method, target, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "rows" not in answer.text
        assert len((await client.get(SINCE, headers=BEARER)).json()["rows"]) == 3


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "bEaReR"])
async def test_the_scheme_is_written_in_any_case(tmp_path: Path, scheme: str) -> None:
    async with gateway(tmp_path) as (client, _audit):
        assert (await client.get(SINCE, headers={"authorization": f"{scheme} {TOKEN}"})).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST", "OPTIONS", "PUT"])
@pytest.mark.parametrize("target", [SINCE, "/audit/before/0"])
async def test_without_a_configured_token_the_routes_do_not_exist(tmp_path: Path, method: str, target: str) -> None:
    async with gateway(tmp_path, token=None) as (client, _audit):
        answer = await client.request(method, target, headers=BEARER)
        unknown = await client.request(method, "/no/such/path", headers=BEARER)
        assert answer.status_code == unknown.status_code == 404
        assert answer.content == unknown.content
        ignored = {"date"}
        assert {**answer.headers, **dict.fromkeys(ignored)} == {**unknown.headers, **dict.fromkeys(ignored)}


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [("POST", SINCE, {"GET", "HEAD"}), ("DELETE", SINCE, {"GET", "HEAD"}), ("OPTIONS", SINCE, {"GET", "HEAD"}),
     ("GET", "/audit/before/0", {"DELETE"}), ("OPTIONS", "/audit/before/0", {"DELETE"})],
)  # fmt: skip
async def test_another_method_is_405_with_allow(tmp_path: Path, method: str, target: str, allowed: set[str]) -> None:
    async with gateway(tmp_path) as (client, _audit):
        answer = await client.request(method, target, headers=BEARER)
        assert answer.status_code == 405
        assert {name.strip() for name in answer.headers["allow"].split(",")} == allowed


@pytest.mark.parametrize("cursor", ["1", "null", "01ARYZ6S41TSV4RRFFQ69G5FA", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "%00", "-"])
async def test_a_cursor_that_is_none_is_refused_and_deletes_nothing(tmp_path: Path, cursor: str) -> None:
    async with gateway(tmp_path) as (client, audit):
        await Calls().whole(audit)
        for method, route in (("DELETE", "before"), ("GET", "since")):
            answer = await client.request(method, f"/audit/{route}/{cursor}", headers=BEARER)
            assert answer.status_code == 400
            assert "expected 0 or an id" in answer.json()["error"]
        assert len((await client.get(SINCE, headers=BEARER)).json()["rows"]) == 3


async def test_a_page_of_large_statements_arrives_whole(tmp_path: Path) -> None:
    calls = Calls()
    async with gateway(tmp_path) as (client, audit):
        for _ in range(5):
            await audit.attempted(calls.query(), calls.attempted("é" * (1 << 19)))
        await calls.whole(audit)
        page = (await client.get(SINCE, headers=BEARER)).json()
    assert [row["payload"]["sql_raw"] for row in page["rows"][:5]] == ["é" * (1 << 19)] * 5
    assert len(page["rows"]) == 8


async def test_a_client_that_leaves_midway_holds_nothing(tmp_path: Path) -> None:
    calls = Calls()
    async with gateway(tmp_path) as (client, audit):
        for _ in range(20):
            await audit.attempted(calls.query(), calls.attempted("x" * (1 << 20)))
        await calls.whole(audit)
        async with await connected(client) as stream:
            await stream.send_all(f"GET {SINCE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")
        await calls.whole(audit)
        assert len((await client.get(SINCE, headers=BEARER)).json()["rows"]) == 26


async def test_a_file_that_cannot_be_read_is_503(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (client, _audit):
        (tmp_path / "audit.db").unlink()
        answer = await client.get(SINCE, headers=BEARER)
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text


def echo(guard: Guard, at_most_bytes: int, within_s: float) -> Blueprint:
    routes = guard.blueprint("echo", __name__)

    @routes.post("/echo")
    async def take() -> Response:
        body = await read_body(at_most_bytes, within_s)
        return body if isinstance(body, Response) else Response(body)

    return routes


async def test_bodies_are_read_up_to_their_limit() -> None:
    async with serving([echo(Guard(TOKEN), 1000, 30)]) as client:

        async def chunked(size: int) -> AsyncGenerator[bytes, None]:
            for _ in range(size // 100):
                yield b"x" * 100
            yield b"x" * (size % 100)

        assert (await client.post("/echo", headers=BEARER, content=b"x" * 1000)).content == b"x" * 1000
        assert (await client.post("/echo", headers=BEARER, content=chunked(1000))).content == b"x" * 1000
        for content in (b"x" * 1001, chunked(1001), b"x" * (9 << 20)):
            answer = await client.post("/echo", headers=BEARER, content=content)
            assert answer.status_code == 413
            assert answer.headers["connection"] == "close"
        assert (await client.post("/echo", content=b"x" * 1001)).status_code == 401  # who may not send is told so first


async def test_a_slow_body_is_408() -> None:
    async with serving([echo(Guard(TOKEN), 1000, 0.05)]) as client, await connected(client) as stream:
        head = f"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nAuthorization: Bearer {TOKEN}\r\n\r\nhalf"
        await stream.send_all(head.encode())
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 408 ")


def test_a_token_beyond_ascii_is_compared_by_its_bytes() -> None:
    guard = Guard("töken")
    assert guard.admits("Bearer " + "töken".encode().decode("latin-1"))  # as an ASGI server hands it over
    assert not guard.admits("Bearer t?ken")


def test_a_guard_without_a_token_admits_nobody() -> None:
    assert not Guard(None).is_enabled
    assert not Guard(None).admits("Bearer ")
    assert not Guard(TOKEN).admits("Bearer ")
    assert not Guard(None).admits("Bearer None")
