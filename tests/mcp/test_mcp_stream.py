"""Event streams: progress ahead of an answer, and the GET stream of a session."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from gatewayd.config.bounds import MCP_BOUNDS
from gatewayd.mcp.eras.handshake import Peer
from gatewayd.mcp.eras.sessions import Sessions
from tests.mcp.mcp_rig import META, PATIENCE_S, Client, MemoryExchange, Rig, client_of, serving, text_of


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"] == "text/event-stream"
    found = []
    for event in answer.text.split("\n\n"):
        if event:
            kind, data = event.split("\n")
            assert kind == "event: message"
            found.append(json.loads(data.removeprefix("data: ")))
    return found


def with_token(client: Client, token: object) -> dict[str, Any]:
    return {"name": "steps", "arguments": {}, "_meta": {"progressToken": token}}


@pytest.mark.parametrize("token", ["t", 7])
async def test_progress_rises_and_the_answer_is_last(client: Client, token: object) -> None:
    await client.initialize()
    answer = await client.post(client.request("tools/call", with_token(client, token)))
    *progress, result = events(answer)
    assert [note["params"] for note in progress] == [{"progressToken": token, "progress": step, "total": 3} for step in (0, 1, 2)]
    assert {note["method"] for note in progress} == {"notifications/progress"}
    assert (result["id"], text_of(result)) == (client.id, "done")


async def test_without_a_token_it_stays_json(client: Client) -> None:
    await client.initialize()
    answer = await client.call("steps")
    assert (answer.headers["content-type"], text_of(answer)) == ("application/json", "done")


async def test_progress_in_the_stateless_era(client: Client) -> None:
    answer = await client.stateless("tools/call", {"name": "steps", "_meta": {**META, "progressToken": 1}})
    *progress, result = events(answer)
    assert len(progress) == 3
    assert result["result"]["resultType"] == "complete"


class EventStream:
    """A GET on a socket of its own, read by hand."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.seen = b""

    async def until(self, text: bytes) -> None:
        with trio.fail_after(PATIENCE_S):
            while text not in self.seen:
                data = await self.stream.receive_some()
                assert data, self.seen
                self.seen += data

    async def rest(self) -> bytes:
        """Everything up to the last chunk."""
        await self.until(b"0\r\n\r\n")
        return self.seen.partition(b"\r\n\r\n")[2]


@asynccontextmanager
async def event_stream(client: Client) -> AsyncIterator[EventStream]:
    async with await trio.open_tcp_stream("127.0.0.1", client.rig.port) as stream:
        head = f"GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {client.session}\r\n\r\n"
        await stream.send_all(head.encode())
        yield EventStream(stream)


FIRST = b"3\r\n:\n\n\r\n"
LAST = b"0\r\n\r\n"


async def test_the_stream_opens_at_once_and_ends_with_its_session(client: Client) -> None:
    await client.initialize()
    async with event_stream(client) as events:
        await events.until(FIRST)
        assert events.seen.startswith(b"HTTP/1.1 200 ")
        assert b"content-type: text/event-stream\r\n" in events.seen
        assert client.rig.mcp.statistics().streams == 1
        await client.http.delete(client.rig.url, headers={"mcp-session-id": client.session or ""})
        assert await events.rest() == FIRST + LAST
    assert client.rig.mcp.statistics().streams == 0


async def test_a_newer_stream_replaces_the_older(client: Client) -> None:
    await client.initialize()
    async with event_stream(client) as older:
        await older.until(FIRST)
        async with event_stream(client) as newer:
            await newer.until(FIRST)
            assert await older.rest() == FIRST + LAST
            assert client.rig.mcp.statistics().streams == 1


async def test_a_stream_whose_client_left_is_closed(client: Client) -> None:
    await client.initialize()
    async with event_stream(client) as events:
        await events.until(FIRST)
    with trio.fail_after(PATIENCE_S):
        while client.rig.mcp.statistics().streams:
            await client.post(client.request("ping"))  # the server's tasks run between its answers


async def test_stopping_ends_streams_at_once() -> None:
    rig = Rig()
    async with serving(rig, grace_s=30), client_of(rig) as client:
        await client.initialize()
        async with event_stream(client) as events:
            await events.until(FIRST)
            rig.mcp.drain()
            rig.stop.set()
            assert await events.rest() == FIRST + LAST


async def test_the_stream_wants_its_media_type(client: Client) -> None:
    await client.initialize()
    headers = {"accept": "application/json", "mcp-session-id": client.session or ""}
    assert (await client.http.get(client.rig.url, headers=headers)).status_code == 406


async def test_an_idle_stream_is_kept_alive(autojump_clock: trio.testing.MockClock) -> None:
    """Comments at intervals; over memory, so that the clock can jump."""
    sessions = Sessions()
    rig = Rig(sessions=sessions)
    session = sessions.open(Peer(), 0)
    assert session is not None
    headers = [(b"host", b"localhost"), (b"accept", b"*/*"), (b"mcp-session-id", session.id.encode())]
    exchange = MemoryExchange("GET", headers)

    async def leave() -> None:
        await trio.sleep(3.5 * MCP_BOUNDS.keep_alive_s)
        exchange.left.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        await rig.mcp(exchange)
    assert exchange.sent == [b":\n\n"] * 4
    assert trio.current_time() - session.last_used_s < 1
    assert session.is_idle
