"""Clients that dawdle: they send a byte at a time, read nothing, shut half of the connection or die without a word.

How long gatewayd waits for them is held in tests/http, with deadlines of moments; the real ones are waited for in `make soak`.
"""

import contextlib
import json
import socket
from pathlib import Path

import pytest
import trio

from gatewayd.config.bounds import HTTP_BOUNDS, MCP_BOUNDS
from tests.conftest import Postgres
from tests.daemon.daemon_rig import Agent, until
from tests.faults.hostile import PATIENCE_S, Target, attacked, message, unharmed
from tests.faults.raw_requests import post, query, statuses, told

CLIENTS = 100
TCP_REPAIR = 19  # linux/tcp.h: closed in this mode, a socket vanishes without a packet
LARGE = "SELECT repeat('x', 1000) AS wide FROM generate_series(1, 1000) a"
PING = post(json.dumps(message("ping")).encode())
STARTS = (b"", b"P", PING[:30], PING[:-1], b"GET /health HTTP/1.1\r\n", post(b"[" * 1000)[:-1])


async def works(target: Target) -> None:
    async with Agent(target.port) as agent:
        for _ in range(10):
            assert len((await agent.query("SELECT * FROM orders"))["rows"]) == 200


async def test_those_who_send_a_byte_at_a_time(target: Target) -> None:
    async def trickle(stream: trio.SocketStream, data: bytes) -> None:
        for at in range(len(data)):
            await stream.send_all(data[at : at + 1])
            await trio.sleep(0.01)

    async with unharmed(target):
        async with trio.open_nursery() as nursery:
            streams = [await target.connect() for _ in range(CLIENTS)]
            for stream in streams:
                nursery.start_soon(trickle, stream, PING)
            await works(target)
            nursery.cancel_scope.cancel()
        for stream in streams:
            await stream.aclose()
        last = PING.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        whole = [last[at : at + 1] for at in range(len(last))]
        assert statuses(await told(target.port, *whole, all_said=False)) == [400]  # slowly said is said: there is no session


async def test_those_who_read_nothing(target: Target) -> None:
    """Their answers are a mebibyte each, and wait in gatewayd for as long as they are there."""
    async with unharmed(target):
        streams = [await target.connect() for _ in range(CLIENTS // 2)]
        for stream in streams:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await stream.send_all(query(LARGE))
        with trio.fail_after(PATIENCE_S):
            await until(
                lambda: not target.metric("gatewayd_mcp_calls_running") and not target.metric("gatewayd_mcp_calls_waiting")
            )
        await works(target)
        assert target.now().resident_kib - target.start.resident_kib < 2 * CLIENTS * 1024
        for stream in streams:
            await trio.aclose_forcefully(stream)


async def test_those_who_shut_their_half(target: Target) -> None:
    async with unharmed(target):
        for start in STARTS:
            found = statuses(await told(target.port, start))
            assert found in ([], [400]), (start, found)


def vanish(stream: trio.SocketStream) -> None:
    """As when the machine at the other end loses its power. Skips where the test may not do that."""
    try:
        stream.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    except PermissionError:
        pytest.skip("closing a socket without a packet needs CAP_NET_ADMIN")
    stream.socket.close()


@pytest.mark.soak
async def test_every_real_deadline(postgres: Postgres, tmp_path: Path) -> None:
    """Nobody leaves of himself: the dead, those who trickle and those who read nothing are all gone when their time is over."""
    with attacked(postgres, tmp_path) as target:
        began_s = trio.current_time()
        streams = [await target.connect() for _ in range(3 * CLIENTS)]
        for number, stream in enumerate(streams[: 2 * CLIENTS]):
            await stream.send_all(STARTS[number % len(STARTS)])
        for stream in streams[2 * CLIENTS :]:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await stream.send_all(query(LARGE))
        for stream in streams[:CLIENTS]:
            vanish(stream)
        with trio.fail_after(
            max(HTTP_BOUNDS.keep_alive_s, HTTP_BOUNDS.head_s, HTTP_BOUNDS.send_s, MCP_BOUNDS.body_s) + PATIENCE_S
        ):
            await works(target)
            await until(lambda: target.metric("gatewayd_http_connections") == 1)
        seconds = trio.current_time() - began_s
        after = await target.is_unharmed()
        for stream in streams[CLIENTS:]:
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.aclose()
    print(f"{len(streams)} clients who never leave gone after {seconds:.0f} s; {target.start} -> {after}")
