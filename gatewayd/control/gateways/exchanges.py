"""Requests of gateways outside of the table of routes: the body read within bounds, every failure an answer, and the work ended
when the other side leaves."""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from gatewayd import log
from gatewayd.control.console import Console
from gatewayd.control.gateways.reply import Reply, refused
from gatewayd.control.gateways.traffic import BODIES_BYTES
from gatewayd.control.store.failures import StoreUnavailable, sqlstate
from gatewayd.control.trust.documents import TrustProblem
from gatewayd.http.exchange import BodyTooLarge, BodyTooSlow, BodyUnwelcome
from gatewayd.http.open_exchange import HttpExchange

BODY_S: Final = 60.0
_NO_TABLE: Final = "42P01"
_CLOSE: Final = (b"connection", b"close")


class Presence:
    """Whether a held request is still worth an answer."""

    def __init__(self, exchange: HttpExchange, stop: trio.Event) -> None:
        self.stop: Final = stop
        """Set when this replica ends: what is held is answered at once."""
        self._exchange: Final = exchange

    async def check(self) -> None:
        """Cancelled here when whoever asked has left, also unseen until now."""
        self._exchange.look()
        await trio.lowlevel.checkpoint()


async def serve(console: Console, exchange: HttpExchange, at_most: int, work: Callable[[bytes], Awaitable[Reply]]) -> None:
    """Answer one request whose body has at most so many bytes. `work` is cancelled when the other side leaves."""
    try:
        data = await _body(console, exchange, at_most)
    except BodyTooLarge:
        await send(exchange, refused(413, "this is too long", (_CLOSE,)))
        return
    except BodyTooSlow:
        await send(exchange, refused(408, "the body did not arrive in time", (_CLOSE,)))
        return
    except BodyUnwelcome:
        await send(exchange, refused(429, "too much is arriving", ((b"retry-after", b"1"), _CLOSE)))
        return
    with trio.CancelScope() as scope:
        exchange.watch(scope)
        try:
            reply = await answered(lambda: work(data))
        finally:
            exchange.watch(None)
    if not scope.cancelled_caught:
        await send(exchange, reply)


async def answered(work: Callable[[], Awaitable[Reply]]) -> Reply:
    """What `work` replies, or what its failure is told as."""
    try:
        return await work()
    except StoreUnavailable:
        return refused(503, "the store does not answer now", ((b"retry-after", b"2"),))
    except TrustProblem as problem:
        log.error(log.SERVICE_UNAVAILABLE, error=str(problem))
        return refused(503, "the control plane cannot sign now", ((b"retry-after", b"30"),))
    except Exception as bug:
        if sqlstate(bug) == _NO_TABLE:  # the day's tables are about to be made
            return refused(503, "the store is not ready", ((b"retry-after", b"2"),))
        log.error(log.UNEXPECTED_FAILURE, **log.places(bug))
        return refused(500, "this failed, and it is our fault; the log says where")


async def send(exchange: HttpExchange, reply: Reply) -> None:
    await exchange.answer(reply.status, reply.body, reply.headers)


async def _body(console: Console, exchange: HttpExchange, at_most: int) -> bytes:
    """All bodies that arrive at once have a bound together."""
    counted = 0

    def grows(size: int) -> bool:
        nonlocal counted
        console.link.body_bytes += size - counted
        counted = size
        return console.link.body_bytes <= BODIES_BYTES

    try:
        return await exchange.body(at_most, BODY_S, grows)
    finally:
        console.link.body_bytes -= counted
