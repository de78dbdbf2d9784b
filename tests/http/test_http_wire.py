"""The bytes of one connection, below HTTP."""

import os
import socket

import trio

from gatewayd.fairness.unsent_budget import UnsentBudget
from gatewayd.http.wire import Wire


async def test_a_read_that_wakes_for_nothing_waits_on() -> None:
    """Another reader of the same socket takes each byte first about every second time, so that the wire finds nothing there."""
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
    wire = Wire(stream, UnsentBudget(1 << 20), 30)
    got, taken = [], []
    second = os.dup(ours.fileno())

    async def other() -> None:
        while True:
            await trio.lowlevel.wait_readable(second)
            try:
                taken.append(os.read(second, 1))
            except BlockingIOError:
                continue

    async def own() -> None:
        while data := await wire.read(1):
            got.append(data)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(own)
        nursery.start_soon(other)
        with trio.fail_after(60):
            for sent in range(1, 41):
                peer.send(b"x")
                while len(got) + len(taken) < sent:
                    await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert not wire.is_gone
    await wire.close()
    os.close(second)
    peer.close()
