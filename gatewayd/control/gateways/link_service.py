"""The link service: what gateways ask, each request an envelope signed by the identity of its gateway (docs/link-protocol.md).

The one answer for an unknown gateway and for a request that its identity did not sign is 404. A gateway that is cut hears so in a
signed refusal, whatever it asks.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

import trio

from gatewayd import log
from gatewayd.control.audit.receive import receive
from gatewayd.control.console import Console
from gatewayd.control.gateways import catalogs, polls
from gatewayd.control.gateways.enrolment import enrol
from gatewayd.control.gateways.gateway import FIND, PLACE, Gateway, GatewayPlace, place_key
from gatewayd.control.gateways.reply import BAD, NOT_KNOWN, Reply, refusal, refused
from gatewayd.control.gateways.traffic import BODIES_BYTES
from gatewayd.control.store.failures import StoreUnavailable, sqlstate
from gatewayd.control.taint import over_link as taint
from gatewayd.control.trust.documents import TrustProblem, trust_in_force
from gatewayd.control.web.call import Incoming
from gatewayd.http.exchange import BodyTooLarge, BodyTooSlow, BodyUnwelcome
from gatewayd.http.open_exchange import HttpExchange
from gatewayd.link.formats.documents import REQUEST_BYTES, DocumentRefused
from gatewayd.link.formats.requests import PATHS, ReadRequest, RequestKind, claimed, is_off_clock, read_request

PREFIX: Final = "/link/v1"
BODY_S: Final = 60.0
_BODY_BYTES: Final = REQUEST_BYTES * 4 // 3 + 4096
_SMALL_BYTES: Final = 8 * 1024 * 1024
_NO_TABLE: Final = "42P01"

T = TypeVar("T")
Handler = Callable[[Console, GatewayPlace, ReadRequest], Awaitable[Reply]]
HANDLERS: Final[Mapping[RequestKind, Handler]] = {
    "audit": receive,
    "catalog": catalogs.receive,
    "taint": taint.answer,
}
_KIND_OF: Final[Mapping[str, RequestKind]] = {path: kind for kind, path in PATHS.items()}


async def link_service(console: Console, exchange: HttpExchange, incoming: Incoming, stop: trio.Event) -> None:
    kind = _KIND_OF.get(incoming.path)
    if kind is None:
        await _answer(exchange, NOT_KNOWN)
        return
    if incoming.method != "POST":
        await _answer(exchange, refused(405, "expected POST", ((b"allow", b"POST"),)))
        return
    try:
        data = await _body(console, exchange, _BODY_BYTES if kind == "audit" else _SMALL_BYTES)
    except BodyTooLarge:
        await _answer(exchange, refused(413, "this is too long", ((b"connection", b"close"),)))
        return
    except BodyTooSlow:
        await _answer(exchange, refused(408, "the body did not arrive in time", ((b"connection", b"close"),)))
        return
    except BodyUnwelcome:
        await _answer(exchange, refused(429, "too much is arriving", ((b"retry-after", b"1"), (b"connection", b"close"))))
        return
    with trio.CancelScope() as scope:
        exchange.watch(scope)
        try:
            reply = await _replied(console, kind, data, stop)
        finally:
            exchange.watch(None)
    if not scope.cancelled_caught:
        await _answer(exchange, reply)


async def _replied(console: Console, kind: RequestKind, data: bytes, stop: trio.Event) -> Reply:
    try:
        return await _reply(console, kind, data, stop)
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


async def _reply(console: Console, kind: RequestKind, data: bytes, stop: trio.Event) -> Reply:
    if kind == "enrol":
        return await enrol(console, data)
    try:
        key = place_key((await _off_loop(claimed, data)).gateway)
    except DocumentRefused:
        return BAD
    place = await console.store.row(GatewayPlace, PLACE, key) if key is not None else None
    gateway = await console.store.row(Gateway, FIND, place.project_id, place.id) if place is not None else None
    if place is None or gateway is None:
        return NOT_KNOWN
    try:
        found = await _off_loop(lambda envelope: read_request(envelope, gateway.key), data)
    except DocumentRefused:
        return NOT_KNOWN
    request = found.request
    trust = (await trust_in_force(console)).trust
    if request.kind != kind or request.gateway != place.id or request.issuer != trust.issuer:
        return BAD
    if gateway.standing != "active":
        return refusal(console, place.id, found.digest, polls.REFUSED_AS[gateway.standing])
    if kind == "poll":
        return await polls.poll(console, place, found, stop)
    if is_off_clock(request, console.now_ms()):
        return refusal(console, place.id, found.digest, "clock")
    handler = HANDLERS.get(kind)
    return await handler(console, place, found) if handler is not None else NOT_KNOWN


async def _off_loop(work: Callable[[bytes], T], data: bytes) -> T:
    """A large envelope takes some milliseconds: in a thread, so that others are served meanwhile."""
    return await trio.to_thread.run_sync(work, data) if len(data) > 100_000 else work(data)


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


async def _answer(exchange: HttpExchange, reply: Reply) -> None:
    await exchange.answer(reply.status, reply.body, reply.headers)
