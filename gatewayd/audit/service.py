"""The audit service: callers hand in events and wait for the commit. Only here an Allowed becomes a Permit (decision 4).

The rows that a query may leave in the file, whose caller may be cancelled at any await:

    nothing                                 cancelled while ATTEMPTED waited for room, or nothing could be written
    ATTEMPTED                               held and not decided in time; cancelled or failed before the decision; DECIDED could
                                            not be written
    ATTEMPTED, DECIDED DENY
    ATTEMPTED, DECIDED ALLOW, closing row   EXECUTED or FAILED; FAILED 57014 when cancelled, also before a Permit was given
    ATTEMPTED, DECIDED ALLOW                only when the closing row could not be written, or the process died

`decided()` has handed in its row when it first waits: a caller that is cancelled there must call `closed(query, Failed(… "57014"
…))`.
"""

import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, TypeVar, cast, overload

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.batch import Ticket
from gatewayd.audit.committer import FILE_FAILURES, Committer
from gatewayd.audit.erasing import ErasureChoice, find
from gatewayd.audit.events import (
    APPROVED_BY_CHARACTERS,
    Attempted,
    AuditId,
    Decided,
    Erased,
    Event,
    Executed,
    Failed,
    Payload,
    PolicyReloaded,
    Query,
    QueryId,
)
from gatewayd.audit.file import AuditFile
from gatewayd.audit.last_head import LastHead
from gatewayd.audit.lock import AuditFileLocked, OwnershipLock
from gatewayd.audit.meta import Acked, Linked, Meta, Reason
from gatewayd.audit.open_file import AuditFileUnusable, Synchronous, reason_of
from gatewayd.audit.pace import Pace
from gatewayd.audit.proof import prove
from gatewayd.audit.pruning import plan_pruning
from gatewayd.audit.queue import AuditStatistics, AuditUnavailable, CommitQueue
from gatewayd.audit.reader import AuditReader, Page
from gatewayd.audit.rows import row_of
from gatewayd.keys.identity import IdentityRefused, ensure_identity, verifier_of
from gatewayd.policy.decide.outcomes import Allowed, Denied, Permit

__all__ = [
    "Audit",
    "AuditFileLocked",
    "AuditFileUnusable",
    "AuditStatistics",
    "AuditUnavailable",
    "IdentityRefused",
    "open_audit",
]

T = TypeVar("T")

_DIALECT: Final = "postgres"
_QUERIES_REMEMBERED: Final = 16384
_DELETE_ROWS: Final = 1024  # at once, at most
_DELETE_S: Final = 0.01
_ERASE_ROWS: Final = 250  # at once, at most: some 10 ms
_EMPTY_LOG_AGAIN_S: Final = 0.1
_NO_ROW: Final = "the earlier audit row of this query is not in the file"


class Under(msgspec.Struct, frozen=True, gc=False):
    """The policy of a decision: the SHA-256 of the policy in force, and the version of its bundle."""

    sha256: str | None = None
    bundle: int | None = None


NO_POLICY: Final = Under()


class Audit:
    """Made by `open_audit`. Methods are for the Trio thread; each `async` one but `attempted` waits for its commit."""

    def __init__(self, path: str, queue: CommitQueue, clock_ms: Callable[[], int], empty_log_s: float) -> None:
        self.path = path
        self._empty_log_s = empty_log_s
        self.only_acknowledged = False
        """Whether `delete_before` keeps the rows that the control plane has not acknowledged."""
        self._clock_ms = clock_ms
        self._attempted: OrderedDict[QueryId, Ticket] = OrderedDict()
        self._decided: OrderedDict[QueryId, Ticket] = OrderedDict()
        self._reader = AuditReader(path)
        self._queue = queue
        self._rewriting = trio.Lock()

    async def attempted(self, query: Query, attempted: Attempted) -> None:
        """Hands in the ATTEMPTED row; waits only while the queue is full. Cancelled meanwhile: no row is written.

        This is the only method that waits for room: the few further rows of an accepted query are taken at once, so that a
        cancelled caller can still close it.
        """
        await self._queue.room()
        ticket = self._hand_over(query, attempted, None)
        _remember(self._attempted, query.query_id, ticket)

    @overload
    async def decided(
        self, query: Query, decision: Allowed, under: Under = NO_POLICY, *, approved_by: str | None = None
    ) -> Permit: ...
    @overload
    async def decided(self, query: Query, decision: Denied, under: Under = NO_POLICY) -> AuditId: ...
    async def decided(
        self, query: Query, decision: Allowed | Denied, under: Under = NO_POLICY, *, approved_by: str | None = None
    ) -> Permit | AuditId:
        """Writes DECIDED and returns when it and ATTEMPTED are committed. Raises AuditUnavailable: nothing may run then.

        `under` is the policy of the decision, `approved_by` the name of the person who approved a held write.
        """
        self._queue.check_open()
        attempted = self._attempted.pop(query.query_id, None)
        if attempted is None or attempted.error:
            raise AuditUnavailable(attempted.error if attempted is not None else _NO_ROW)
        match decision:
            case Allowed(statement=statement, tables=tables):
                by = approved_by and approved_by[:APPROVED_BY_CHARACTERS]
                payload = Decided(
                    "ALLOW", statement.kind, tables, dialect=_DIALECT, approved_by=by, policy=under.sha256, bundle=under.bundle
                )
            case Denied(policy_rule=rule, reason=reason, statement_type=kind, tables=tables):
                named = None if kind is None else tables
                payload = Decided("DENY", kind, named, rule, reason, dialect=_DIALECT, policy=under.sha256, bundle=under.bundle)
        ticket = self._hand_over(query, payload, attempted)
        if isinstance(decision, Allowed):
            _remember(self._decided, query.query_id, ticket)
        audit_id = AuditId(await self._queue.committed(ticket))
        return Permit(decision, query.query_id, audit_id) if isinstance(decision, Allowed) else audit_id

    async def recorded(self, query: Query) -> None:
        """Returns when ATTEMPTED is committed, for a caller that is about to pass the query on. Raises AuditUnavailable."""
        attempted = self._attempted.get(query.query_id)
        if attempted is None:
            raise AuditUnavailable(_NO_ROW)
        await self._queue.committed(attempted)

    def undecided(self, query: Query) -> None:
        """Notes that no DECIDED row will follow the query's ATTEMPTED."""
        self._attempted.pop(query.query_id, None)

    async def closed(self, query: Query, outcome: Executed | Failed) -> None:
        """Writes the closing row of an allowed query, once; its DECIDED may not be committed yet.

        For use in a short shielded scope. Raises AuditUnavailable if the row cannot be written, for example because the query's
        DECIDED was not.
        """
        self._queue.check_open()
        decided = self._decided.pop(query.query_id, None)
        if decided is None or decided.error:
            raise AuditUnavailable(decided.error if decided is not None else _NO_ROW)
        await self._queue.committed(self._hand_over(query, outcome, decided, is_closing=True))

    async def reloaded(self, events: Sequence[Event]) -> None:
        """Writes the POLICY_RELOADED rows of one swap, all in one transaction."""
        self._queue.check_open()
        ticket = Ticket(tuple(map(row_of, events)))
        self._queue.append(ticket)
        await self._queue.committed(ticket)

    async def answers(self) -> None:
        """Returns once the writer has completed a cycle, even if it could not write: a full disk is no reason to restart."""
        await self._queue.call(lambda _file: None)

    async def delete_before(self, cursor: str) -> int:
        """Deletes the rows with an id up to and including `cursor`, in chunks between batches; returns how many.

        The remaining rows stay provable (see pruning.py). Cancelled midway, the chunks done so far are deleted.
        """
        deleted, at_most = 0, 8
        async with self._rewriting:
            meta = await self.meta()
            limit = None
            if self.only_acknowledged:
                limit = meta.first_seq - 1 + (meta.acked.size if meta.acked is not None else 0)
            try:
                plan = await self._reader.ask(lambda connection: plan_pruning(connection, meta, cursor, limit))
            except FILE_FAILURES as failure:
                raise AuditUnavailable(reason_of(failure)) from failure
            await self.call(lambda file: file.keep_plan(plan))
            while True:
                began = time.perf_counter()
                chunk = at_most
                count = await self.call(partial(AuditFile.delete_before, cursor=cursor, at_most=chunk, plan=plan))
                deleted += count
                if count < chunk:
                    return deleted
                # The size of a row is 100 bytes to 1 MiB, so the time that other callers waited decides.
                is_quick = time.perf_counter() - began < _DELETE_S
                at_most = min(at_most * 2, _DELETE_ROWS) if is_quick else max(at_most // 4, 1)

    async def erase(self, choice: ErasureChoice, reason: str) -> int:
        """Erases the details of the chosen rows and records that; returns the number of rows.

        It works in chunks between batches, each in one transaction with its ERASED row. When it returns, neither the file nor its
        log holds the texts. Cancelled midway, the chunks done so far are erased. Raises AuditUnavailable.
        """
        async with self._rewriting:
            try:
                erased = await self._erase_rows(choice, reason)
                with trio.move_on_after(self._empty_log_s):
                    while erased and not await self.call(AuditFile.empty_log):  # noqa: ASYNC110 - SQLite sends no event
                        await trio.sleep(_EMPTY_LOG_AGAIN_S)  # a reader still uses an old state of the file
                    return erased
            except (trio.Cancelled, AuditUnavailable):
                with trio.CancelScope(shield=True), suppress(AuditUnavailable):
                    await self.call(AuditFile.empty_log)
                raise
        raise AuditUnavailable(
            "the details are erased, but a reader keeps the write-ahead log, which holds them, from being emptied"
        )

    async def _erase_rows(self, choice: ErasureChoice, reason: str) -> int:
        erased = after_seq = 0
        while True:
            try:
                found = await self._reader.ask(partial(find, choice=choice, after_seq=after_seq, at_most=_ERASE_ROWS))
            except FILE_FAILURES as failure:
                raise AuditUnavailable(reason_of(failure)) from failure
            if not found.rows:
                return erased
            erased += await self.call(partial(AuditFile.erase, erasable=found, reason=reason, now_ms=self._clock_ms()))
            after_seq = found.last_seq

    async def proof(self, id_: str) -> str:
        """The proof of the query that `id_` names, as a text (see proof.py). Raises NoProof, LeafMissing, MetaDamaged,
        AuditUnavailable, sqlite3.Error or OSError."""
        await self.head()
        return await self._reader.ask(lambda connection: prove(connection, id_, self._reader.trees))

    async def meta(self) -> Meta:
        """The file's metadata: instance, first seq, identity, what was pruned and acknowledged. Raises AuditUnavailable."""
        return await self.call(lambda file: file.meta)

    async def head(self) -> str | None:
        """A signed head over every row committed so far; None if this instance has no row. Raises AuditUnavailable."""
        note, is_new = await self.call(self._queue.head_now)
        if is_new and note is not None:
            self._queue.note_head(note)
        self._queue.signed = note or self._queue.signed
        return note

    @property
    def signed(self) -> str | None:
        """The newest head that was signed since the start, by itself or on demand."""
        return self._queue.signed

    async def begin_instance(self, reason: Reason, first_seq: int | None = None) -> Meta:
        """Begins a new instance at the next seq, or at `first_seq` of the present one, whose rows from there on then belong to
        the new one. Returns the new metadata. Raises AuditUnavailable, also for a seq outside of the present instance."""
        return await self.call(lambda file: file.begin_instance(reason, first_seq))

    async def note_acknowledged(self, acked: Acked) -> None:
        """Stores what the control plane has acknowledged of the present instance."""
        await self.call(lambda file: file.note_acknowledged(acked))

    async def note_linked(self, linked: Linked) -> None:
        """Stores whether the gateway is linked, for the next start."""
        await self.call(lambda file: file.note_linked(linked))

    async def note_taints_kept(self) -> None:
        """Keeps that a file of taints is there from now on. Raises AuditUnavailable."""
        await self.call(lambda file: file.note_taints_kept())

    async def call(self, chore: Callable[[AuditFile], T]) -> T:
        """Calls `chore` with the file in the writer's thread, between two batches. Raises AuditUnavailable."""
        result = await self._queue.call(chore)
        if isinstance(result, FILE_FAILURES):
            raise AuditUnavailable(reason_of(result)) from result
        return cast(T, result)

    async def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Calls `question` with a read-only connection in a thread. Raises sqlite3.Error or OSError."""
        return await self._reader.ask(question)

    def page(self, cursor: str, limit: int) -> Page:
        """Up to `limit` committed rows with an id above `cursor` (reader.START or a ULID), as JSON in pieces."""
        return self._reader.page(cursor, limit)

    def statistics(self) -> AuditStatistics:
        """The counts now."""
        return self._queue.statistics()

    def on_commit(self, observer: Callable[[float, int], None]) -> None:
        """Calls `observer` with the seconds and the rows of each commit, for histograms."""
        self._queue.on_commit = observer

    async def aclose(self) -> None:
        """Writes the queued rows, makes the final checkpoint and closes the file. Shielded from cancellation."""
        self._queue.close()
        with trio.CancelScope(shield=True):
            async with self._reader.limiter:  # the last connection to close makes the final checkpoint, and a reader cannot
                self._reader.close()
            await self._queue.aclose()

    def _hand_over(self, query: Query, payload: Payload, after: Ticket | None, *, is_closing: bool = False) -> Ticket:
        if query.preview_of is not None and not isinstance(payload, PolicyReloaded | Erased):
            payload = msgspec.structs.replace(payload, preview_of=query.preview_of)
        ticket = Ticket((row_of(Event(query, self._clock_ms(), payload)),), after, is_closing=is_closing)
        self._queue.append(ticket)
        return ticket


def _remember(queries: OrderedDict[QueryId, Ticket], query_id: QueryId, ticket: Ticket) -> None:
    """Keeps the last row of a query for its next one. Bounded: if a query was dropped, its next row is refused."""
    queries[query_id] = ticket
    if len(queries) > _QUERIES_REMEMBERED:
        queries.popitem(last=False)


@asynccontextmanager
async def open_audit(
    path: str,
    synchronous: Synchronous = "normal",
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    *,
    state_dir: str | None = None,
    credentials_dir: str | None = None,
    pace: Pace = Pace(),  # noqa: B008 - a frozen value
    file_type: type[AuditFile] = AuditFile,
) -> AsyncGenerator[Audit, None]:
    """The audit while the block runs: its file, lock, task and thread. A crash of the writer cancels the block.

    The signing identity is in `credentials_dir` or `state_dir` (by default the audit file's folder) and is created there if it
    does not exist. `file_type` is the class of the opened file. Raises AuditFileLocked (exit 69), AuditFileUnusable or
    IdentityRefused (exit 78).
    """
    opened = await trio.to_thread.run_sync(_Opened, path, synchronous, state_dir, credentials_dir, file_type)
    committer = Committer(opened.file, opened.lock, opened.open_file, opened.last_head, pace)
    queue = CommitQueue(opened.path, committer)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(queue.run)
            audit = Audit(opened.path, queue, clock_ms, pace.empty_log_s)
            try:
                yield audit
            finally:
                await audit.aclose()
    finally:
        opened.lock.release()


class _Opened:
    """The lock on the file, the identity, and the file. Blocking."""

    def __init__(
        self,
        path: str,
        synchronous: Synchronous,
        state_dir: str | None,
        credentials_dir: str | None,
        file_type: type[AuditFile],
    ) -> None:
        self.path = os.path.realpath(path)  # one lock for one file, by whatever name
        self._synchronous: Synchronous = synchronous
        self._file_type = file_type
        try:
            self.lock = OwnershipLock(self.path)
        except OSError as failure:
            raise AuditFileUnusable(path, reason_of(failure)) from failure
        try:
            folder = state_dir if state_dir is not None else os.path.dirname(self.path)
            self._identity = ensure_identity(folder, credentials_dir)
            self.last_head = LastHead(folder)
            self.file = file = self.open_file()
            if file.size > file.head_size:  # after a crash, or rows that somebody inserted
                first_seq = file.meta.first_seq + file.head_size
                log.info(log.AUDIT_UNSIGNED_TAKEN, rows=file.size - file.head_size, first_seq=first_seq)
        except BaseException:
            self.lock.release()
            raise

    def open_file(self) -> AuditFile:
        """Opens the file that is at the path now."""
        signed_last = self.last_head.read(verifier_of(self._identity))
        file = self._file_type(self.path, self._synchronous, self._identity, signed_last)
        if file.broken is not None:
            log.error(log.AUDIT_BROKEN, reason=file.broken, instance=file.meta.instance, first_seq=file.meta.first_seq)
        return file
