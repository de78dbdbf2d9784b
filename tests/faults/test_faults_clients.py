"""Clients that are broken, hostile or far too many: the daemon keeps serving, and its memory stays where it was.

A small part in `make test`; a hundred thousand connections and ten thousand at once in `make soak`.
"""

import json
import random
import resource
import socket
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import SHOP, Agent, chains, gatewayd, kinds
from tests.faults.test_faults_soak import resources

CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
HEAD = (
    b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(CALL)
)
# What a request may begin as before it is damaged.
SEEDS: Sequence[bytes] = (
    HEAD + CALL,
    HEAD.replace(b"content-length", b"transfer-encoding: chunked\r\ncontent-length") + CALL,
    (
        b"GET /mcp HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: eA==\r\n"
        b"sec-websocket-version: 13\r\n\r\nx"
    ),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n" * 20,
    b"POST /mcp HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"GET /audit/since/0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    HEAD + b"[" * 5000,
    HEAD + b'{"jsonrpc":"2.0","id":null,"method":"\xff\xfe"}',
)


def damaged(chance: random.Random) -> bytes:
    """A request, most often no longer one."""
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at : at + chance.randrange(8)] = chance.randbytes(chance.randrange(8))
            case 1:
                del data[at : at + chance.randrange(64)]
            case 2:
                data[at:at] = data[at : at + 200]
            case 3:
                data[at:at] = chance.choice((b"\r\n", b"\0", b"\r\n\r\n", b": ", b"\x80", b"0\r\n\r\n"))
    return bytes(data)


async def fuzz(port: int, connections: int, seed: int) -> int:
    """Open so many connections, send each a damaged request, leave in some way; how many were answered at all."""
    chance = random.Random(seed)
    limit = trio.CapacityLimiter(64)
    answered = 0

    async def one(data: bytes, linger: float) -> None:
        nonlocal answered
        async with limit:
            with trio.move_on_after(5):
                try:
                    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                        await stream.send_all(data)
                        with trio.move_on_after(linger):
                            if await stream.receive_some(4096):
                                answered += 1
                except (OSError, trio.BrokenResourceError):
                    pass

    async with trio.open_nursery() as nursery:
        for _ in range(connections):
            await trio.lowlevel.checkpoint()
            while limit.statistics().tasks_waiting > 256:  # noqa: ASYNC110 - a limiter has no event for this
                await trio.sleep(0.005)
            nursery.start_soon(one, damaged(chance), chance.choice((0.0, 0.01, 1.0)))
    return answered


async def hold_on(postgres: Postgres, folder: Path, port: int, connections: int) -> None:
    with gatewayd(postgres.create_database(SHOP), folder, port) as daemon:
        await fuzz(port, 500, seed=0)
        before, _ = resources(daemon.process.pid)
        assert await fuzz(port, connections, seed=1) > connections / 20
        async with Agent(port) as agent:
            assert (await agent.query("SELECT 1 AS one"))["rows"] == [{"one": 1}]
        await trio.sleep(0.5)  # what the last ones left closes
        after, descriptors = resources(daemon.process.pid)
        assert await trio.to_thread.run_sync(daemon.stop) == 0
    print(f"{connections} connections; resident KiB {before} -> {after}; descriptors {descriptors}")
    assert after - before < 20 * 1024
    assert "unexpected failure" not in daemon.text
    assert {kinds(chain) for chain in chains(folder).values()} == {"ATTEMPTED ALLOW EXECUTED"}


async def crowd(postgres: Postgres, folder: Path, port: int, connections: int) -> None:
    """So many open connections that say nothing, and one agent among them."""
    with gatewayd(postgres.create_database(SHOP), folder, port) as daemon:
        silent = []
        try:
            for _ in range(connections):
                peer = socket.socket()
                peer.setblocking(False)
                peer.connect_ex(("127.0.0.1", port))
                silent.append(peer)
                if len(silent) % 200 == 0:
                    await trio.sleep(0.01)  # the backlog is shorter than the crowd
            async with httpx.AsyncClient(timeout=10) as client:
                answers = [await client.get(f"http://127.0.0.1:{port}/health") for _ in range(3)]
            statuses = {answer.status_code for answer in answers}
        finally:
            for peer in silent:
                peer.close()
        # Over the cap a connection is told so; below it, it is served.
        assert statuses <= {200, 503}
        assert connections >= 4096 or statuses == {200}
        with trio.fail_after(20):
            while True:
                try:
                    async with Agent(port) as agent:
                        assert (await agent.query("SELECT 1 AS one"))["rows"]
                    break
                except httpx.HTTPError:
                    await trio.sleep(0.1)
        assert await trio.to_thread.run_sync(daemon.stop) == 0


pytestmark = [
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]


async def test_damaged_requests(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    await hold_on(postgres, tmp_path, free_port, 2000)


async def test_a_crowd(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    await crowd(postgres, tmp_path, free_port, 500)


@pytest.mark.soak
async def test_a_hundred_thousand_damaged_requests(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    await hold_on(postgres, tmp_path, free_port, 100_000)


@pytest.mark.soak
async def test_ten_thousand_connections(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(12_000, hard), hard))
    try:
        await crowd(postgres, tmp_path, free_port, 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
