"""The audit push: rows out of the file in order, each batch acknowledged under the tree (docs/link-protocol.md, Audit push).

It reads the file, so nothing is queued and nothing is lost; one batch is in flight. Only an ack that verifies moves it on. What
else may come back is one table, `_answered`, and what each costs is in its rows.
"""

import base64
import random
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeVar

import trio

from gatewayd import log
from gatewayd.audit.meta import Acked, Linked, Meta
from gatewayd.audit.open_file import reason_of
from gatewayd.audit.service import Audit, AuditUnavailable
from gatewayd.audit.stored_tree import LeafMissing
from gatewayd.audit.tree import CompactRange
from gatewayd.link import batches
from gatewayd.link.batches import Batch, Position
from gatewayd.link.client import ControlAnswer, ControlPlane, RequestRefused, Unreachable
from gatewayd.link.formats.answers import Ack, Conflict, TreeHead, read_answer
from gatewayd.link.formats.bundle import AuditTerms
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.rows import BATCH_ROWS
from gatewayd.link.formats.trust import Trust
from gatewayd.link.parting import Parting, parting_at
from gatewayd.link.poll import UNTOLD, AuditHeads, Untold
from gatewayd.link.retention import prune

READY_ROWS: Final = 500
READY_S: Final = 2.0
LOOK_S: Final = 0.25
WITHIN_S: Final = 60.0
BACKOFF_MOST_S: Final = 300.0
LATER_S: Final = 300.0
BUSY_LEAST_S: Final = 1.0
BUSY_MOST_S: Final = 30.0
BUSY_SILENT_S: Final = 120.0
FORK_S: Final = 3600.0
LAST_S: Final = 1.0
"""How long what is left may take to be sent when the gateway stops."""

T = TypeVar("T")
A = TypeVar("A", Ack, Conflict)
Trouble = Literal["failed", "waiting", "unverified", "conflict", "refused", "missing"]


class Push:
    """`trust` and `terms` are asked anew at each batch: they change while it runs."""

    def __init__(
        self,
        control: ControlPlane,
        audit: Audit,
        trust: Callable[[], Trust],
        terms: Callable[[], AuditTerms],
        dice: random.Random | None = None,
    ) -> None:
        self.acknowledged = 0
        """Rows, since the start."""
        self.last_success_s = 0.0
        self._control = control
        self._audit = audit
        self._trust = trust
        self._terms = terms
        self._dice = dice or random.Random()
        self._position: Position | None = None
        self._held: Callable[[], TreeHead | Untold | None] = lambda: None
        self._acked: TreeHead | None = None
        self._ack: bytes | None = None
        self._at_most = BATCH_ROWS
        self._owes = True
        self._committed = 0
        self._failures = 0
        self._told: dict[Trouble, str] = {}
        self._busy_since: float | None = None
        self._forked_at: float | None = None
        self._parting: Parting | None = None
        """While the first difference is looked for."""
        self._terms_kept: Linked | None = None

    def heads(self) -> AuditHeads:
        """For the poll."""
        return AuditHeads(acked=self._acked, acks=(self._ack,) if self._ack is not None else ())

    async def run(self, held: Callable[[], TreeHead | Untold | None]) -> None:
        """Sends until cancelled. `held` gives what the control plane has of this gateway's instance, as of its last answer;
        where that was not told, what it acknowledged counts."""
        self._held = held
        self._audit.only_acknowledged = True
        await self._until_possible(self._begin)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(prune, self._audit, self._control.clock, lambda: self._terms().retention_h, self._prunable)
            while True:
                try:
                    batch = await self._until_possible(self._next)
                except trio.Cancelled:
                    await self._send_the_rest()
                    raise
                await trio.sleep(await self.send(batch))

    async def _send_the_rest(self) -> None:
        """The rows that a stop found waiting for more of them. A batch in progress is left to the next start, which knows what
        became of it; and what fails is: the rows stay in the file."""
        if self._failures:
            return
        with trio.move_on_after(LAST_S, shield=True):
            try:
                while (batch := await self._ready()) is not None and await self.send(batch) == 0:
                    pass
            except (AuditUnavailable, sqlite3.Error, OSError, LeafMissing):
                return

    # -- where to go on

    async def _begin(self) -> bool:
        held, self._parting = self._held(), None
        meta = await self._audit.meta()
        acked = meta.acked.size if meta.acked is not None else 0
        instance, size = str(meta.instance), acked
        earlier = {str(each.instance): each.size for each in meta.previous_instances}
        if held is UNTOLD:
            pass
        elif held is not None and held.instance in earlier:
            # The file went on as a new instance while nobody pushed: it was restored, or lost rows, or the identity was rotated.
            # What is left of the old one goes first.
            named: dict[str, str | int] = {"from": held.instance, "instance": instance, "seq": meta.first_seq}
            if {each.reason for each in meta.previous_instances if str(each.instance) in _since(held.instance, meta)} == {
                "identity"
            }:
                log.info(log.AUDIT_NEW_IDENTITY, **named)
            else:
                log.error(log.AUDIT_FORKED, **named)
            # Where more is held than was left of it here, its last row is sent again: it may be another one.
            is_longer = held.size > earlier[held.instance]
            instance, acked = held.instance, 0
            size = max(0, earlier[instance] - 1) if is_longer else held.size
        elif held is None or held.instance != instance:
            size = 0
        elif held.size < acked:
            size = held.size
        position = await self._audit.ask(lambda connection: batches.position_at(connection, meta, instance, size))
        if size < acked:
            gone = position.tree.size if position.after_gap else size
            fields = {"from": meta.first_seq + size, "to": meta.first_seq + acked - 1, "gone": gone - size}
            log.error(log.AUDIT_LOST, **fields)
        self._position = position
        self._acked = TreeHead(meta.instance, acked, base64.b64decode(meta.acked.root).hex()) if meta.acked is not None else None
        return True

    async def _next(self) -> Batch | None:
        """The next batch once there are rows for it: READY_ROWS at once, fewer after READY_S. The file is not asked while
        nothing was committed."""
        position = self._position
        assert position is not None
        if position.end_seq is not None and position.next_seq >= position.end_seq:
            position = self._position = await self._following(position)
        await self._keep_terms()
        if not self._owes:
            await self._until_committed(1)
            with trio.move_on_after(READY_S):
                await self._until_committed(min(READY_ROWS, self._at_most))
        return await self._ready()

    async def _ready(self) -> Batch | None:
        """The next batch of the rows there are."""
        position = self._position
        assert position is not None
        self._committed = self._audit.statistics().rows
        statements, at_most = self._terms().statements, self._at_most
        path = self._audit.path
        batch = await self._audit.ask(lambda connection: batches.next_batch(connection, path, position, statements, at_most))
        self._owes = batch is not None
        return batch

    async def _following(self, position: Position) -> Position:
        """The beginning of the instance after a past one whose rows are all sent."""
        meta = await self._audit.meta()
        names = [str(name) for name, _, _ in meta.spans()]
        following = names[names.index(position.instance) + 1]
        return await self._audit.ask(lambda connection: batches.position_at(connection, meta, following, 0))

    async def _until_committed(self, rows: int) -> None:
        while self._audit.statistics().rows - self._committed < rows:  # noqa: ASYNC110 - commits do not wait for who is told
            await trio.sleep(LOOK_S)

    async def _keep_terms(self) -> None:
        linked = Linked(True, float(self._terms().retention_h))
        if linked != self._terms_kept:
            await self._audit.note_linked(linked)
            self._terms_kept = linked

    async def _until_possible(self, step: Callable[[], Awaitable[T | None]]) -> T:
        """What `step` gives, once the file gives it: an audit that is away comes back, and rows come."""
        while True:
            try:
                found = await step()
            except (AuditUnavailable, sqlite3.Error, OSError, LeafMissing) as failure:
                wait_s = self._failed(reason_of(failure) if not isinstance(failure, AuditUnavailable) else failure.reason)
                await trio.sleep(wait_s)
            else:
                if found is not None:
                    return found

    # -- one batch

    async def send(self, batch: Batch) -> float:
        """Sends one batch and deals with the answer. Returns the seconds until the next."""
        for seq in batch.left_out:
            log.warning(log.AUDIT_DETAILS_LEFT_OUT, seq=seq)
        sent = self._control.numbered("audit", batch.body)
        try:
            answered = await self._control.send(sent, WITHIN_S, self._trust())
        except Unreachable as failure:
            if failure.status == 429:
                return self._is_busy(batch, failure.retry_after_s)
            return self._failed(failure.reason)
        except RequestRefused as refused:
            if refused.refusal.reason == "clock":
                self._control.clock.learn(refused.refusal.ts)
                return BUSY_LEAST_S
            if refused.refusal.reason == "not_now" and self._position is not None:
                # It holds less than it acknowledged: restored from a backup. The polls say what it holds now.
                before = self._position
                await self._until_possible(self._begin)
                if self._position.tree.size < before.tree.size:
                    return 0
            return self._jittered(BUSY_MOST_S)  # cut: the poll has said so
        self._busy_since = None
        return await self._answered(batch, answered)

    async def _answered(self, batch: Batch, answered: ControlAnswer) -> float:
        body = batch.body
        match answered.status:
            case 404:
                self._tell(log.AUDIT_NOT_TAKEN, "missing")
                return self._jittered(LATER_S)
            case 422 if len(body.rows) > 1:
                self._at_most = max(1, len(body.rows) // 2)
                return 0
            case 422:
                self._tell(log.AUDIT_REFUSED, "refused", **{"from": body.from_seq, "to": body.to_seq})
                return self._jittered(LATER_S)
            case 409:
                return await self._conflicting(batch, answered)
        try:
            ack = self._read(answered, Ack)
            if (ack.instance, ack.from_seq, ack.to_seq, ack.size, ack.root) != (
                body.instance,
                body.from_seq,
                body.to_seq,
                body.size,
                body.root,
            ):
                raise DocumentRefused("version", "it names other events")
        except DocumentRefused as refused:
            return self._unverified(refused)
        return await self._advance(batch, ack, answered.data)

    async def _advance(self, batch: Batch, ack: Ack, data: bytes) -> float:
        root = base64.b64encode(bytes.fromhex(ack.root)).decode()
        position = self._position
        assert position is not None
        if self._parting is not None and ack.size <= self._parting.differs:
            return await self._look_for(Parting(ack.size, self._parting.differs))
        self._parting = None
        if position.end_seq is None:
            try:
                await self._audit.note_acknowledged(Acked(ack.size, root, ack.ts))
            except AuditUnavailable:
                return self._jittered(BUSY_LEAST_S)  # sent again: the control plane answers the same
            self._acked, self._ack = TreeHead(ack.instance, ack.size, ack.root), data
        self._position = Position(position.instance, position.first_seq, batch.tree, position.end_seq)
        self.acknowledged += len(batch.body.rows)
        self.last_success_s = self._control.clock.now_ms() / 1000
        self._failures = 0
        self._at_most = min(BATCH_ROWS, self._at_most * 2)
        if self._told:
            self._told = {}
            log.info(log.AUDIT_PUSH_RECOVERED)
        return 0

    async def _conflicting(self, batch: Batch, answered: ControlAnswer) -> float:
        """Another leaf is held there. The file goes on as a new instance from the first difference on, at most once an hour."""
        body, position = batch.body, self._position
        assert position is not None
        same = self._parting.same if self._parting is not None else 0
        try:
            conflict = self._read(answered, Conflict)
            meta = await self._audit.meta()
            parting = await self._audit.ask(lambda connection: parting_at(connection, meta, body, conflict, same))
        except DocumentRefused as refused:
            return self._unverified(refused)
        except AuditUnavailable as unavailable:
            return self._failed(unavailable.reason)
        except (sqlite3.Error, OSError, LeafMissing) as failure:
            return self._failed(reason_of(failure))
        if position.end_seq is not None:  # of an instance that has ended, so nothing can take its place
            self._tell(log.AUDIT_REFUSED, "refused", **{"from": conflict.seq, "to": position.end_seq - 1})
            self._position = await self._following(position)
            return 0
        now = trio.current_time()
        if self._forked_at is not None and now - self._forked_at < FORK_S:
            self._tell(log.AUDIT_FORK_CONFLICT, "conflict", instance=body.instance, seq=conflict.seq)
            return self._backoff()
        if not parting.is_found:
            return await self._look_for(parting)
        seq = body.first_seq + parting.differs
        try:
            meta = await self._audit.begin_instance("fork", seq)
        except AuditUnavailable as unavailable:
            return self._failed(unavailable.reason)
        self._forked_at = now
        named: dict[str, str | int] = {"from": body.instance, "instance": str(meta.instance), "seq": seq}
        log.error(log.AUDIT_FORKED, **named)
        self._begin_instance(meta)
        return 0

    async def _look_for(self, parting: Parting) -> float:
        """Sends the row in the middle again."""
        position = self._position
        assert position is not None
        try:
            meta = await self._audit.meta()
            name, middle = position.instance, parting.middle
            found = await self._audit.ask(lambda connection: batches.position_at(connection, meta, name, middle))
        except AuditUnavailable as unavailable:
            return self._failed(unavailable.reason)
        except (sqlite3.Error, OSError, LeafMissing) as failure:
            return self._failed(reason_of(failure))
        self._parting, self._position, self._at_most = parting, found, 1
        return 0

    def _begin_instance(self, meta: Meta) -> None:
        self._position = Position(meta.instance, meta.first_seq, CompactRange())
        self._acked = self._ack = self._parting = None
        self._at_most = BATCH_ROWS

    def _read(self, answered: ControlAnswer, shape: type[A]) -> A:
        """Raises DocumentRefused."""
        control = self._control
        request = answered.sent.digest
        return read_answer(answered.data, shape, self._trust(), control.clock.now_ms(), gateway=control.gateway, request=request)

    def _prunable(self) -> int | None:
        """The last row that is acknowledged. What is sent again stays until then; while a difference is looked for, all does."""
        position = self._position
        if position is None or self._acked is None or position.end_seq is not None or self._parting is not None:
            return None
        return min(position.first_seq + self._acked.size, position.next_seq) - 1

    # -- what is told, and how long to wait

    def _unverified(self, refused: DocumentRefused) -> float:
        self._tell(log.AUDIT_ANSWER_UNVERIFIED, "unverified", error=str(refused))
        return self._backoff()

    def _failed(self, reason: str) -> float:
        self._tell(log.AUDIT_PUSH_FAILED, "failed", error=reason)
        return self._backoff()

    def _is_busy(self, batch: Batch, retry_after_s: float | None) -> float:
        """429 is nothing to speak of for two minutes."""
        now = trio.current_time()
        if self._busy_since is None:
            self._busy_since = now
        if now - self._busy_since >= BUSY_SILENT_S:
            fields = {"from": batch.body.from_seq, "to": batch.body.to_seq}
            if "waiting" in self._told:
                log.error(log.AUDIT_PUSH_FAILED, error="answered status 429", **fields)
            self._tell(log.AUDIT_PUSH_WAITING, "waiting", **fields)
        return self._jittered(min(BUSY_MOST_S, max(BUSY_LEAST_S, retry_after_s or BUSY_LEAST_S)))

    def _tell(self, msg: str, trouble: Trouble, **fields: str | int) -> None:
        """Once until it has recovered, and again where it is another failure."""
        key = str(fields.get("error", ""))
        if self._told.get(trouble) != key:
            self._told[trouble] = key
            log.error(msg, **fields)

    def _backoff(self) -> float:
        self._failures += 1
        return self._jittered(min(BACKOFF_MOST_S, 2.0 ** min(self._failures - 1, 10)))

    def _jittered(self, seconds: float) -> float:
        return seconds * self._dice.uniform(0.8, 1.2)


def _since(instance: str, meta: Meta) -> list[str]:
    """The past instances from this one on."""
    names = [str(each.instance) for each in meta.previous_instances]
    return names[names.index(instance) :]
