"""The link service: what gateways ask, each request an envelope signed by the identity of its gateway (docs/link-protocol.md).

The one answer for an unknown gateway and for a request that its identity did not sign is 404. A gateway that is cut hears so in a
signed refusal, whatever it asks.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

import trio

from gatewayd.control.approvals import over_link as approvals
from gatewayd.control.audit.receive import receive
from gatewayd.control.console import Console
from gatewayd.control.gateways import catalogs, polls
from gatewayd.control.gateways.enrolment import enrol
from gatewayd.control.gateways.exchanges import Presence, send, serve
from gatewayd.control.gateways.gateway import FIND, Gateway
from gatewayd.control.gateways.reply import BAD, NOT_KNOWN, Reply, refusal, refused
from gatewayd.control.gateways.rotation import rotate
from gatewayd.control.store import directory
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.taint import over_link as taint
from gatewayd.control.trust.documents import trust_in_force
from gatewayd.control.web.call import Incoming
from gatewayd.http.open_exchange import HttpExchange
from gatewayd.link.formats.documents import REQUEST_BYTES, DocumentRefused
from gatewayd.link.formats.requests import PATHS, ReadRequest, RequestKind, claimed, is_off_clock, read_request

PREFIX: Final = "/link/v1"
_BODY_BYTES: Final = REQUEST_BYTES * 4 // 3 + 4096
_SMALL_BYTES: Final = 8 * 1024 * 1024

T = TypeVar("T")
Handler = Callable[[Console, ProjectPlace, ReadRequest], Awaitable[Reply]]
HANDLERS: Final[Mapping[RequestKind, Handler]] = {
    "approval": approvals.ask,
    "approval_status": approvals.status,
    "approval_outcome": approvals.outcome,
    "audit": receive,
    "catalog": catalogs.receive,
    "taint": taint.answer,
}
_KIND_OF: Final[Mapping[str, RequestKind]] = {path: kind for kind, path in PATHS.items()}


async def link_service(console: Console, exchange: HttpExchange, incoming: Incoming, stop: trio.Event) -> None:
    kind = _KIND_OF.get(incoming.path)
    if kind is None:
        await send(exchange, NOT_KNOWN)
        return
    if incoming.method != "POST":
        await send(exchange, refused(405, "expected POST", ((b"allow", b"POST"),)))
        return
    at_most = _BODY_BYTES if kind == "audit" else _SMALL_BYTES
    presence = Presence(exchange, stop)
    await serve(console, exchange, at_most, lambda data: _reply(console, kind, data, presence))


async def _reply(console: Console, kind: RequestKind, data: bytes, presence: Presence) -> Reply:
    if kind == "enrol":
        return await enrol(console, data)
    try:
        key = directory.lookup_of_id((await _off_loop(claimed, data)).gateway)
    except DocumentRefused:
        return BAD
    place = await directory.find(console.store, ProjectPlace, "gateway", key) if key is not None else None
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
        return await polls.poll(console, place, found, presence.stop)
    if is_off_clock(request, console.now_ms()):
        return refusal(console, place.id, found.digest, "clock")
    if kind == "approval_wait":
        return await approvals.wait(console, place, found, presence)
    if kind == "rotate":
        return await rotate(console, place, gateway, found)
    return await HANDLERS[kind](console, place, found)


async def _off_loop(work: Callable[[bytes], T], data: bytes) -> T:
    """A large envelope takes some milliseconds: in a thread, so that others are served meanwhile."""
    return await trio.to_thread.run_sync(work, data) if len(data) > 100_000 else work(data)
