"""LoopShare: so many requests a pass of the loop, in order; what leaves is never refused; /health passes by."""

import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gatewayd.config.bounds import HttpBounds
from gatewayd.fairness.loop_share import LoopShare
from gatewayd.fairness.unsent_budget import UnsentBudget
from gatewayd.http.connection import HttpConnection
from gatewayd.http.connection_sweep import ConnectionSweep
from gatewayd.http.exchange import Exchange
from gatewayd.http.server import HttpServer
from gatewayd.operators.app import AGENTS_REQUESTS, create_app

CALL = b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
HEALTH = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


@asynccontextmanager
async def running(intake: LoopShare) -> AsyncIterator[LoopShare]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(intake.run)
        await wait_all_tasks_blocked()
        yield intake
        nursery.cancel_scope.cancel()


class Passes(trio.abc.Instrument):
    """Counts the passes of the loop."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


async def test_a_pass_has_its_share() -> None:
    """Tasks that are ready in one pass are let through a few at a time, one pass after the other, in the order they came."""
    begun: dict[int, int] = {}
    waiting: list[int] = []

    async def request(number: int) -> None:
        if not intake.take():
            waiting.append(number)
            assert await intake.wait()
        begun[number] = passes.count

    trio.lowlevel.add_instrument(passes := Passes())
    async with running(LoopShare(a_pass=2, waiting=100)) as intake, trio.open_nursery() as requests:
        for number in range(9):
            requests.start_soon(request, number)
    assert max(Counter(begun.values()).values()) <= 2
    assert [begun[number] for number in waiting] == sorted(begun[number] for number in waiting)
    assert len(waiting) >= 7


async def test_too_many_are_turned_away_but_may_leave() -> None:
    intake = LoopShare(a_pass=1, waiting=1)
    assert intake.take()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(intake.wait)
        await wait_all_tasks_blocked()
        assert not await intake.wait()
        nursery.start_soon(lambda: intake.wait(is_leaving=True))
        await wait_all_tasks_blocked()
        assert (intake.statistics().waiting, intake.statistics().refused) == (2, 1)
        nursery.cancel_scope.cancel()
    assert intake.statistics().waiting == 0


@pytest.fixture
async def closed_port() -> AsyncIterator[int]:
    """A server that begins no agent's request and has no room to wait."""

    async def mcp(_exchange: Exchange) -> None:
        raise AssertionError("it was let in")

    closed = HttpBounds(begun_in_a_pass=0, waiting_unread=0)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def serve(task_status: trio.TaskStatus[int]) -> None:
            server = HttpServer(create_app(mcp), grace_s=1, in_turns=AGENTS_REQUESTS, bounds=closed)
            await server.serve("127.0.0.1", 0, stop=stop, task_status=task_status)

        yield await nursery.start(serve)
        stop.set()
        nursery.cancel_scope.deadline = trio.current_time() + 10


async def asked(port: int, request: bytes) -> bytes:
    """Everything that comes until the server closes; it must, or answer once."""
    with trio.fail_after(20):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(request)
            return bytes(await stream.receive_some(65536))


async def test_an_agent_that_is_turned_away_is_told_when_to_return(closed_port: int) -> None:
    for request in (CALL, CALL.replace(b"content-length: 2", b"content-length: 100000") + b"x" * 100_000):
        answer = await asked(closed_port, request)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in answer.lower()


async def test_health_is_answered_while_agents_are_turned_away(closed_port: int) -> None:
    assert (await asked(closed_port, HEALTH)).startswith(b"HTTP/1.1 200 ")


async def test_what_nobody_waits_for_is_not_begun() -> None:
    """Requests that wait for the intake: of three the first client leaves, and only the others are begun."""
    begun: list[bytes] = []
    intake = LoopShare(a_pass=1, waiting=100)
    assert intake.take()  # and nobody runs it yet

    async def mcp(exchange: Exchange) -> None:
        begun.append(await exchange.body(100, 10))
        await exchange.answer(200, b"{}")

    async with trio.open_nursery() as nursery:
        clients = []
        for number in range(3):
            theirs, ours = trio.socket.socketpair()
            stream, sweep = trio.SocketStream(theirs), ConnectionSweep((), 75)
            connection = HttpConnection(create_app(mcp), stream, intake, sweep, UnsentBudget(1000), in_turns=AGENTS_REQUESTS)
            nursery.start_soon(connection.serve)
            await ours.send(CALL.replace(b"{}", b"%02d" % number))
            await wait_all_tasks_blocked()
            clients.append(ours)
        assert intake.statistics().waiting == 3
        clients[0].close()
        nursery.start_soon(intake.run)
        with trio.fail_after(20):
            for ours in clients[1:]:
                assert (await ours.recv(4096)).startswith(b"HTTP/1.1 200 ")
                ours.close()
        nursery.cancel_scope.cancel()
    assert begun == [b"01", b"02"]


async def test_a_crowd_is_accepted_at_once(closed_port: int) -> None:
    """More connections than one pass accepts; each is served."""
    crowd = [socket.create_connection(("127.0.0.1", closed_port)) for _ in range(100)]
    try:
        assert (await asked(closed_port, HEALTH)).startswith(b"HTTP/1.1 200 ")
    finally:
        for each in crowd:
            each.close()
