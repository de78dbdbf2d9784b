"""Clients that are broken, hostile or far too many: the daemon keeps serving, and its memory stays where it was.

A small part in `make test`; a hundred thousand connections and ten thousand at once in `make soak`.
"""

import contextlib
import json
import random
import resource
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import trio

from gatewayd.config.bounds import HTTP_BOUNDS
from tests.conftest import Postgres
from tests.daemon.daemon_rig import chains, kinds
from tests.faults.hostile import PATIENCE_S, attacked

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


class Fuzzed(NamedTuple):
    connected: int
    answered: int


async def fuzz(port: int, connections: int, seed: int) -> Fuzzed:
    """Open so many connections, send each a damaged request, leave in some way. One that could not be opened is tried again."""
    chance = random.Random(seed)
    wanted = iter(range(connections))
    connected = answered = 0

    async def one(number: int) -> None:
        nonlocal connected, answered
        data, leave = damaged(chance), chance.choice(("told", "close", "reset"))
        while True:
            try:  # several addresses of our own: one has too few ports for those that the kernel still remembers
                stream = await trio.open_tcp_stream("127.0.0.1", port, local_address=f"127.0.0.{2 + number % 8}")
                break
            except OSError:
                await trio.sleep(0.05)
        connected += 1
        with contextlib.suppress(OSError, trio.BrokenResourceError), trio.fail_after(PATIENCE_S):
            async with stream:
                await stream.send_all(data)
                if leave == "told":  # that nothing more comes: the daemon answers, or closes
                    await stream.send_eof()
                    if await stream.receive_some():
                        answered += 1
                elif leave == "reset":
                    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def client() -> None:
        for number in wanted:
            await one(number)

    async with trio.open_nursery() as nursery:
        for _ in range(64):
            nursery.start_soon(client)
    return Fuzzed(connected, answered)


async def hold_on(postgres: Postgres, folder: Path, connections: int) -> None:
    with attacked(postgres, folder) as target:
        began_s = trio.current_time()
        fuzzed = await fuzz(target.port, connections, seed=1)
        seconds = trio.current_time() - began_s
        after = await target.is_unharmed()
    print(f"{fuzzed} in {seconds:.0f} s; {target.start} -> {after}")
    assert fuzzed.connected == connections
    assert fuzzed.answered > connections / 20
    assert {kinds(chain) for chain in chains(folder).values()} == {"ATTEMPTED ALLOW EXECUTED"}


async def crowd(postgres: Postgres, folder: Path, connections: int) -> None:
    """So many open connections that say nothing, and one agent among them."""
    with attacked(postgres, folder) as target:
        silent = []
        began_s = trio.current_time()
        try:
            for number in range(connections):
                peer = socket.socket()
                peer.setblocking(False)
                peer.bind((f"127.0.0.{2 + number % 8}", 0))
                peer.connect_ex(("127.0.0.1", target.port))
                silent.append(peer)
                if len(silent) % 200 == 0:
                    await trio.sleep(0.01)  # the backlog is shorter than the crowd
            async with httpx.AsyncClient(timeout=10) as client:
                answers = [await client.get(f"http://127.0.0.1:{target.port}/health") for _ in range(3)]
            statuses = {answer.status_code for answer in answers}
            open_then, held = target.metric("gatewayd_http_connections"), target.now()
        finally:
            for peer in silent:
                peer.close()
        # Over the cap a connection is told so; below it, it is served.
        assert statuses <= {200, 503}
        assert connections >= HTTP_BOUNDS.connections or statuses == {200}
        after = await target.is_unharmed()
        seconds = trio.current_time() - began_s
    print(f"{connections} connections in {seconds:.0f} s, {open_then:g} open at once, {statuses}")
    print(f"{target.start} -> {held} -> {after}")


async def test_damaged_requests(postgres: Postgres, tmp_path: Path) -> None:
    await hold_on(postgres, tmp_path, 2000)


async def test_a_crowd(postgres: Postgres, tmp_path: Path) -> None:
    await crowd(postgres, tmp_path, 500)


@pytest.mark.soak
async def test_a_hundred_thousand_connections(postgres: Postgres, tmp_path: Path) -> None:
    await hold_on(postgres, tmp_path, 100_000)


@pytest.mark.soak
async def test_ten_thousand_connections(postgres: Postgres, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(12_000, hard), hard))
    try:
        await crowd(postgres, tmp_path, 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
