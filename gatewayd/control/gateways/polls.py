"""Polls: a gateway says how it is and is told what is new, at once or within the time that it waits
(docs/link-protocol.md, Poll).

What it says is kept before the poll is held. A poll that is held looks at the store alone, so whichever replica has it answers.
"""

from typing import Final

import msgspec
import trio

from gatewayd.control.console import Console
from gatewayd.control.gateways import reported, runs
from gatewayd.control.gateways.gateway import FIND, FIND_LOCKED, Gateway, Standing
from gatewayd.control.gateways.reply import NOT_KNOWN, Reply, refusal
from gatewayd.control.gateways.restored import go_on_above
from gatewayd.control.gateways.traffic import Known
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trust.documents import ABOVE, TrustRow, trust_in_force
from gatewayd.control.trust.signing import signers
from gatewayd.link.formats.answers import Freshness, RefusalReason, TreeHead, sign_answer
from gatewayd.link.formats.documents import DocumentRefused, digest
from gatewayd.link.formats.requests import PollOrder, ReadRequest, order_of, read_body
from gatewayd.link.formats.status import PollBody

HELD_MOST_S: Final = 30.0

NEWEST_BUNDLE: Final = Statement(
    "SELECT b.version, b.sha256, b.envelope FROM bundle_heads AS h JOIN bundles AS b ON b.project_id = h.project_id AND"
    " b.version = h.version WHERE h.project_id = $1"
)
HELD_HEAD: Final = Statement(
    "SELECT instance, size, root FROM audit_heads WHERE project_id = $1 AND gateway_id = $2 AND superseded_ms IS NULL"
    " ORDER BY instance DESC LIMIT 1"
)

REFUSED_AS: Final[dict[Standing, RefusalReason]] = {"cut": "cut", "duplicated": "duplicated", "retired": "cut"}


class _Bundle(msgspec.Struct, frozen=True):
    version: int
    sha256: bytes
    envelope: bytes


class _Head(msgspec.Struct, frozen=True):
    instance: str
    size: int
    root: bytes


class _Look(msgspec.Struct, frozen=True):
    """What the store says now."""

    gateway: Gateway | None
    bundle: _Bundle | None
    head: _Head | None
    trusts: list[TrustRow]


async def poll(console: Console, place: ProjectPlace, found: ReadRequest, stop: trio.Event) -> Reply:
    await trust_in_force(console)
    order, gateway = await _ordered(console, place, found)
    if gateway is None:
        return NOT_KNOWN
    if gateway.standing != "active":
        return refusal(console, place.id, found.digest, REFUSED_AS[gateway.standing])
    if order not in ("next", "same"):
        return refusal(console, place.id, found.digest, "clock" if order == "clock" else "late")
    try:
        body = read_body(found.request.body, PollBody)
    except DocumentRefused:
        message = "this control plane does not know all that the gateway reports; upgrade the control plane first"
        return refusal(console, place.id, found.digest, "status", message)
    await reported.keep(console, place.org_id, gateway, body)
    if body.newest is not None or body.acks:
        await go_on_above(console, place, body)
    return await _held(console, place, found, body, stop)


async def _ordered(console: Console, place: ProjectPlace, found: ReadRequest) -> tuple[PollOrder, Gateway | None]:
    """How the poll stands to those before it; with that the gateway, as it is now."""
    now_ms, finding_id = console.now_ms(), console.new_id()

    async def work(tx: Transaction) -> tuple[PollOrder, Gateway | None]:
        gateway = await tx.row(Gateway, FIND_LOCKED, place.project_id, place.id)
        if gateway is None or gateway.standing != "active":
            return "late", gateway
        order = order_of(found, await runs.before(tx, gateway), now_ms)
        if order == "next":
            await runs.keep(tx, gateway, found, now_ms)
        elif order == "duplicated":
            await runs.mark_duplicated(tx, place, gateway, found, finding_id, now_ms)
            gateway = msgspec.structs.replace(gateway, standing="duplicated")
        return order, gateway

    return await console.store.transaction(work)


async def _held(console: Console, place: ProjectPlace, found: ReadRequest, body: PollBody, stop: trio.Event) -> Reply:
    until = trio.current_time() + min(max(body.wait_s, 0.0), HELD_MOST_S)
    while True:
        look = await _looked(console, place, body)
        if look.gateway is None:
            return NOT_KNOWN
        if look.gateway.standing != "active":
            return refusal(console, place.id, found.digest, REFUSED_AS[look.gateway.standing])
        if look.gateway.run_n != found.request.n or look.gateway.run != found.request.run:
            return refusal(console, place.id, found.digest, "late")  # a newer poll is here
        is_new = look.bundle is not None and _is_newer(look.bundle, body)
        if is_new or look.trusts or trio.current_time() >= until or stop.is_set():
            return _answer(console, place, found, look, is_new=is_new)
        version = look.bundle.version if look.bundle is not None else 0
        known = Known(version, max(body.trust_version, 0), "active", found.request.n)
        async with trio.open_nursery() as nursery:

            async def drain(scope: trio.CancelScope = nursery.cancel_scope) -> None:
                await stop.wait()
                scope.cancel()

            nursery.start_soon(drain)
            await console.link.wait(place.project_id, place.id, known, until)
            nursery.cancel_scope.cancel()


async def _looked(console: Console, place: ProjectPlace, body: PollBody) -> _Look:
    async def work(tx: Transaction) -> _Look:
        return _Look(
            await tx.row(Gateway, FIND, place.project_id, place.id),
            await tx.row(_Bundle, NEWEST_BUNDLE, place.project_id),
            await tx.row(_Head, HELD_HEAD, place.project_id, place.id),
            await tx.rows(TrustRow, ABOVE, body.trust_version),
        )

    return await console.store.transaction(work)


def _is_newer(newest: _Bundle, body: PollBody) -> bool:
    """A bundle that the gateway cannot enforce, or has refused, is not sent again: that would change nothing."""
    if (newest.version, newest.sha256.hex()) == (body.version, body.sha256):
        return False
    problem = body.problem
    return problem is None or (problem.version != newest.version and problem.envelope != digest(newest.envelope))


def _answer(console: Console, place: ProjectPlace, found: ReadRequest, look: _Look, *, is_new: bool) -> Reply:
    assert look.gateway is not None
    bundle, head = look.bundle, look.head
    fresh = Freshness(
        gateway=place.id,
        project=place.project_id,
        version=bundle.version if bundle is not None else 0,
        sha256=bundle.sha256.hex() if bundle is not None else "",
        ts=console.now_ms(),
        request=found.digest,
        run=found.request.run,
        n=found.request.n,
        head=TreeHead(head.instance, head.size, head.root.hex()) if head is not None else None,
        public_urls=look.gateway.urls,
    )
    trusts = b",".join(each.envelope for each in look.trusts)
    whole = b'{"freshness":%b,"trust":[%b]' % (sign_answer(fresh, signers(console.secrets.signing)), trusts)
    if is_new and bundle is not None:
        whole += b',"bundle":' + bundle.envelope
    return Reply(200, whole + b"}")
