"""A batch of audit rows as it comes over the link: what follows is stored with its head in one transaction, what is
held already is
compared leaf by leaf, what contradicts it is answered with a proof (docs/link-protocol.md, Audit push).
"""

from collections.abc import Callable
from datetime import date
from typing import Final

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.tree import HASH_BYTES, CompactRange
from gatewayd.control.audit import statement_days, tiles
from gatewayd.control.audit.batch import (
    DETAIL_COLUMNS,
    EVENT_COLUMNS,
    CheckedBatch,
    Origin,
    RowsRefused,
    asked_before,
    check_batch,
)
from gatewayd.control.audit.erasure import erase
from gatewayd.control.audit.findings import find_out
from gatewayd.control.audit.held import ADD_HEAD, FIND_LOCKED, MOVE, SPANS, SUPERSEDE, HeldHead, Span
from gatewayd.control.audit.rollup import add as add_rollup
from gatewayd.control.audit.rollup import summed
from gatewayd.control.audit.statement_texts import keep_statements
from gatewayd.control.audit.witness import BETWEEN, KeptNote
from gatewayd.control.console import Console
from gatewayd.control.gateways.reply import Reply, refusal, refused
from gatewayd.control.store.days import day_number, day_of
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Copy, DayStatement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trust.signing import signers
from gatewayd.link.formats.answers import Ack, Conflict, TreeHead, sign_answer
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.requests import ReadRequest, read_body
from gatewayd.link.formats.rows import AuditBody

BUSY_S: Final = 1
_COPIED_AT_ONCE: Final = 500

EVENTS: Final = Copy(
    "{events}",
    ("project_id", "gateway_id", "instance", "seq", "id", "query_id", "ts", "received_ms", "event_type", "tenant_id",
     "database_name", "agent_name", "agent_version", "has_intent", "token_id", "payload", "schema_version", "commitment",
     "unproved", "keys"),
)  # fmt: skip
DETAILS: Final = Copy("{details}", ("project_id", "gateway_id", "instance", "seq", "details", "salt"))
ASKED: Final = DayStatement(
    "SELECT query_id, payload FROM {events} WHERE project_id = $1 AND query_id = ANY($2) AND event_type = 'ATTEMPTED'"
)
assert EVENTS.columns == EVENT_COLUMNS
assert DETAILS.columns == DETAIL_COLUMNS


class _Asked(msgspec.Struct, frozen=True):
    query_id: str
    payload: str


class _Fingerprint(msgspec.Struct, frozen=True):
    sql_fingerprint: str = ""


class _Contradicted(Exception):
    """Another leaf is held at `seq`, or somewhere before it."""

    def __init__(self, seq: int) -> None:
        super().__init__(seq)
        self.seq: Final = seq


class _DoesNotFollow(Exception):
    """Rows before the batch are missing here."""


class _Taken(msgspec.Struct, frozen=True):
    """The batch is held: the tree up to its last row."""

    size: int
    root: bytes


async def receive(console: Console, place: ProjectPlace, found: ReadRequest) -> Reply:
    """The signed answer, or 422 with what is wrong, or 429 while too many others are being stored."""
    if console.link.is_full:
        return refused(429, "too much is being stored; try again", ((b"retry-after", b"%d" % BUSY_S),))
    async with console.link.batches:
        try:
            body = await trio.to_thread.run_sync(read_body, found.request.body, AuditBody)
            return await _receive(console, place, found, body)
        except (RowsRefused, DocumentRefused) as wrong:
            log.info(log.AUDIT_BATCH_REFUSED, gateway=place.id, error=str(wrong)[:200])
            return refused(422, str(wrong))


async def _receive(console: Console, place: ProjectPlace, found: ReadRequest, body: AuditBody) -> Reply:
    received_ms = console.now_ms()
    day = day_of(received_ms)
    fingerprints = await _fingerprints(console, place, body, day)
    origin = Origin(place.project_id, place.id, received_ms)
    batch = await trio.to_thread.run_sync(check_batch, body, origin, fingerprints)
    await keep_statements(console, place.project_id, list(batch.statements.values()))
    instance = (place.project_id, place.id, body.instance)

    async def work(tx: Transaction) -> _Taken:
        return await _store(tx, place, instance, body, batch, day, received_ms, console.new_id)

    try:
        taken = await console.store.transaction(work)
    except _Contradicted as contradicted:
        return await _conflict(console, place, found, body, contradicted.seq)
    except _DoesNotFollow:
        return refusal(console, place.id, found.digest, "not_now", "the rows before these are not held")
    ack = Ack(
        gateway=place.id, instance=body.instance, from_seq=body.from_seq, to_seq=body.to_seq, request=found.digest,
        size=taken.size, root=taken.root.hex(), ts=console.now_ms(),
    )  # fmt: skip
    return Reply(200, sign_answer(ack, signers(console.secrets.signing)))


async def _store(
    tx: Transaction,
    place: ProjectPlace,
    instance: tiles.Instance,
    body: AuditBody,
    batch: CheckedBatch,
    day: date,
    now_ms: int,
    new_id: Callable[[], str],
) -> _Taken:
    """In one transaction: rows, leaves, head. Raises _Contradicted, _DoesNotFollow, RowsRefused."""
    head = await tx.row(HeldHead, FIND_LOCKED, *instance)
    if head is None:
        head = await _begin(tx, place, instance, body, now_ms, new_id)
    if head.first_seq != body.first_seq:
        raise RowsRefused(f"first_seq: found {body.first_seq}, the instance began at {head.first_seq}")
    start = body.from_seq - body.first_seq
    if start > head.size:
        raise _DoesNotFollow
    overlap = min(head.size - start, len(body.rows))
    if overlap:
        await _compare(tx, instance, start, batch.leaves[:overlap], body.first_seq)
    new = batch.after(overlap)
    if not new.leaves:
        root = await tiles.root_at(tx, instance, body.size)
        if root.hex() != body.root:
            raise _Contradicted(body.to_seq)  # the same rows after another one: the proof tells
        return _Taken(body.size, root)
    tree = CompactRange.decode(head.size, head.frontier)
    tree.extend(new.leaves)
    if tree.root().hex() != body.root:
        if head.size == 0:
            raise RowsRefused("root: the rows do not lead to it")
        raise _Contradicted(body.first_seq + head.size - 1)
    if not await tx.run(MOVE, *instance, head.size, tree.size, tree.root(), tree.encode(), now_ms):
        raise AssertionError("the head moved under a row lock")
    for at in range(0, len(new.events), _COPIED_AT_ONCE):
        await tx.copy(EVENTS.on(day), new.events[at : at + _COPIED_AT_ONCE])
    for at in range(0, len(new.details), _COPIED_AT_ONCE):
        await tx.copy(DETAILS.on(day), new.details[at : at + _COPIED_AT_ONCE])
    last = await tiles.read(tx, instance, tiles.edge(head.size))
    await tiles.write(tx, instance, tiles.added(head.size, last, new.leaves))
    await add_rollup(tx, instance[0], summed(new.counted))
    await statement_days.add(tx, instance[0], day_number(day), new.calls)
    await _compare_notes(tx, place, instance, head.size, tree, new_id, now_ms)
    if batch.erased:
        await erase(tx, instance, batch.erased, day)
    return _Taken(tree.size, tree.root())


async def _begin(
    tx: Transaction, place: ProjectPlace, instance: tiles.Instance, body: AuditBody, now_ms: int, new_id: Callable[[], str]
) -> HeldHead:
    """An instance that nothing is held of: from its first row on, or from where both sides have lost what was before."""
    gap = CompactRange()
    if body.from_seq != body.first_seq:
        if body.gap is None:
            raise _DoesNotFollow
        try:
            gap = CompactRange.decode(body.from_seq - body.first_seq, bytes.fromhex(body.gap))
        except ValueError:
            raise RowsRefused("gap: it is no compact range of the rows before") from None
    project_id, gateway_id, name = instance
    spans = await tx.rows(Span, SPANS, project_id, gateway_id)
    newest = next((each for each in spans if each.superseded_ms is None), None)
    await tx.run(ADD_HEAD, *instance, body.first_seq, gap.size, gap.root(), gap.encode(), now_ms)
    if gap.size:
        filled = {at: bytes((gap.size >> 8 * (at >> 56)) % tiles.TILE * HASH_BYTES) for at in tiles.edge(gap.size)}
        await tiles.write(tx, instance, filled)
        text = {"instance": name, "from": body.first_seq, "to": body.from_seq - 1}
        await find_out(tx, place, "gap", text, new_id(), now_ms)
    elif newest is not None and body.first_seq < newest.first_seq + newest.size:
        text = {"instance": newest.instance, "held_to": newest.first_seq + newest.size - 1, "from": body.first_seq, "new": name}
        await find_out(tx, place, "fork", text, new_id(), now_ms)
    await tx.run(SUPERSEDE, project_id, gateway_id, name, now_ms)
    return HeldHead(name, body.first_seq, gap.size, gap.root(), gap.encode(), now_ms)


async def _compare(tx: Transaction, instance: tiles.Instance, start: int, leaves: list[bytes], first_seq: int) -> None:
    held = await tiles.leaves_between(tx, instance, start, start + len(leaves))
    for place, (ours, theirs) in enumerate(zip(held, leaves, strict=True)):
        if ours != theirs:
            raise _Contradicted(first_seq + start + place)


async def _compare_notes(
    tx: Transaction,
    place: ProjectPlace,
    instance: tiles.Instance,
    before: int,
    tree: CompactRange,
    new_id: Callable[[], str],
    now_ms: int,
) -> None:
    """Heads that the gateway signed over rows which have come now."""
    for kept in await tx.rows(KeptNote, BETWEEN, *instance, before, tree.size):
        root = await tiles.root_at(tx, instance, kept.size)
        if kept.head.root != root:
            text = {"instance": instance[2], "size": kept.size}
            await find_out(tx, place, "head", text, new_id(), now_ms)


async def _conflict(console: Console, place: ProjectPlace, found: ReadRequest, body: AuditBody, seq: int) -> Reply:
    instance = (place.project_id, place.id, body.instance)
    finding_id, now_ms = console.new_id(), console.now_ms()
    text = {"instance": body.instance, "seq": seq}

    async def work(tx: Transaction) -> Conflict:
        head = await tx.row(HeldHead, FIND_LOCKED, *instance)
        assert head is not None
        index = seq - head.first_seq
        (leaf,) = await tiles.leaves_between(tx, instance, index, index + 1)
        proof = await tiles.prove(tx, instance, index, head.size)
        await find_out(tx, place, "conflict", text, finding_id, now_ms)
        return Conflict(
            gateway=place.id, instance=body.instance, request=found.digest, seq=seq, leaf=leaf.hex(),
            proof=tuple(each.hex() for each in proof), head=TreeHead(body.instance, head.size, head.root.hex()),
            first_seq=head.first_seq, ts=now_ms,
        )  # fmt: skip

    conflict = await console.store.transaction(work)
    return Reply(409, sign_answer(conflict, signers(console.secrets.signing)))


async def _fingerprints(console: Console, place: ProjectPlace, body: AuditBody, day: date) -> dict[str, str]:
    """Of queries that were asked in an earlier batch and are decided in this one. Over midnight a search by it may miss them."""
    wanted = asked_before(body)
    if not wanted:
        return {}
    rows = await console.store.rows(_Asked, ASKED.on(day), place.project_id, wanted)
    return {each.query_id: msgspec.json.decode(each.payload, type=_Fingerprint).sql_fingerprint for each in rows}
