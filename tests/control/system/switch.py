"""A balancer in a few lines: each connection goes to a server that takes it, drawn at random. It reads nothing of what passes."""

from collections.abc import Sequence
from random import Random
from typing import Final

import trio

_PIECE: Final = 64 * 1024


class Switch:
    """Before servers on ports of 127.0.0.1. A connection that nobody takes is closed at once, as a balancer's is."""

    def __init__(self, targets: Sequence[int], dice: Random) -> None:
        self._targets: Final = tuple(targets)
        self._dice: Final = dice
        self._passing: Final[set[trio.CancelScope]] = set()

    async def serve(self, port: int) -> None:
        """Never returns."""
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
        await trio.serve_listeners(self._pass, listeners)

    def cut(self) -> int:
        """Ends all that passes now; how many connections that were."""
        count = len(self._passing)
        for scope in self._passing:
            scope.cancel()
        return count

    async def _pass(self, client: trio.SocketStream) -> None:
        server = await self._open()
        if server is None:
            return
        with trio.CancelScope() as scope:
            self._passing.add(scope)
            try:
                async with server, trio.open_nursery() as nursery:
                    nursery.start_soon(_copy, client, server, nursery.cancel_scope)
                    nursery.start_soon(_copy, server, client, nursery.cancel_scope)
            finally:
                self._passing.discard(scope)

    async def _open(self) -> trio.SocketStream | None:
        for target in self._dice.sample(self._targets, len(self._targets)):
            try:
                return await trio.open_tcp_stream("127.0.0.1", target)
            except OSError:
                continue
        return None


async def _copy(source: trio.SocketStream, target: trio.SocketStream, both: trio.CancelScope) -> None:
    """An end is passed on; anything else that ends one direction ends the other."""
    try:
        while data := await source.receive_some(_PIECE):
            await target.send_all(data)
        await target.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        both.cancel()
