"""The audit service: callers hand events over and wait for the commit; only here an Allowed becomes a Permit (contract 4).

Trio side of `committer.py` and `thread.py`. What may stand in the file for a query, whose caller may be cancelled at any await:

    nothing                                 cancelled while ATTEMPTED waited for room, or nothing could be written
    ATTEMPTED                               held; cancelled or failed before the decision; DECIDED could not be written
    ATTEMPTED, DECIDED DENY
    ATTEMPTED, DECIDED ALLOW, closing row   EXECUTED or FAILED; FAILED 57014 when cancelled, also before a Permit was given
    ATTEMPTED, DECIDED ALLOW                only when the closing row could not be written, or the process died

`decided()` has handed its row over when it first waits: a caller cancelled there owes `closed(query, Failed(… "57014" …))`.
"""

import os
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, overload

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.batch import BatchOutcome, Ticket
from gatewayd.audit.committer import FILE_FAILURES, Committer
from gatewayd.audit.events import Attempted, AuditId, Decided, Event, Executed, Failed, Payload, Query, QueryId
from gatewayd.audit.lock import AuditFileLocked, OwnershipLock
from gatewayd.audit.reader import AuditReader, Page
from gatewayd.audit.rows import row_of
from gatewayd.audit.store import AuditFile, AuditFileUnusable, Synchronous, reason_of
from gatewayd.audit.thread import Chore, WriterThread
from gatewayd.policy.decision import Allowed, Denied, Permit

__all__ = ["Audit", "AuditFileLocked", "AuditFileUnusable", "AuditStatistics", "AuditUnavailable", "open_audit"]

_DIALECT: Final = "postgres"
_QUEUE_ROWS: Final = 1024  # a few batches: more would only make callers wait longer for a disk that does not keep up
_QUEUE_CHARACTERS: Final = 16 * 1024 * 1024
_QUERIES_REMEMBERED: Final = 16384
_ROUNDS: Final = 8  # of the run loop, at most, that a commit waits for more to come
_DELETE_ROWS: Final = 1024  # at once, at most
_DELETE_S: Final = 0.01
_STOPPED: Final = "the audit writer has stopped"
_NO_ROW: Final = "the earlier audit row of this query is not in the file"


class AuditUnavailable(Exception):
    """The rows could not be written; none of them counts. `reason` is fit for a tool error: no path, no SQL."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AuditStatistics(msgspec.Struct, frozen=True):
    available: bool  # whether the last batch was committed
    queued: int  # rows handed over and not yet committed
    queued_characters: int  # of their payloads
    batches: int  # committed since start
    rows: int  # committed since start
    failures: int  # batches that could not be committed
    last_batch_rows: int
    last_commit_s: float
    wal_bytes: int  # after the last commit


class Audit:
    """Made by `open_audit`. Methods are for the Trio thread; each `async` one but `attempted` waits for its commit."""

    def __init__(self, file: AuditFile, synchronous: Synchronous, clock_ms: Callable[[], int]) -> None:
        self.path = file.path
        self.on_commit: Callable[[float, int], None] | None = None
        """Called after each commit with its seconds and rows: what a histogram needs and a snapshot cannot give."""
        self._clock_ms = clock_ms
        self._attempted: OrderedDict[QueryId, Ticket] = OrderedDict()
        self._decided: OrderedDict[QueryId, Ticket] = OrderedDict()
        self._queued = self._queued_characters = 0
        self._batches = self._rows = self._failures = self._last_batch_rows = self._wal_bytes = 0
        self._last_commit_s = 0.0
        self._available = True
        self._is_closed = False
        self._crash: BaseException | None = None
        self._crashed = trio.Event()
        self._room = trio.lowlevel.ParkingLot()
        self._reader = AuditReader(file.path)
        self._committer = Committer(file, synchronous)
        self._thread = WriterThread(self._committer, self._deliver, self._note_crash)
        self._at_work = trio.CancelScope()
        self._has_work = False
        self._resting: trio.lowlevel.Task | None = None
        trio.lowlevel.spawn_system_task(self._work)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Runs until cancelled; raises what made the writer's thread end."""
        task_status.started()
        await self._crashed.wait()
        assert self._crash is not None
        raise self._crash

    async def attempted(self, query: Query, attempted: Attempted) -> None:
        """Hands the ATTEMPTED row over; waits only while the queue is full. Cancelled meanwhile: no row is written.

        Only this makes callers wait for room: a query once let in has its few further rows taken at once, so that a cancelled
        caller can still close it.
        """
        self._check_open()
        while self._queued >= _QUEUE_ROWS or self._queued_characters >= _QUEUE_CHARACTERS:
            await self._room.park()
            self._check_open()
        ticket = self._hand_over(query, attempted, None)
        _remember(self._attempted, query.query_id, ticket)

    @overload
    async def decided(self, query: Query, decision: Allowed) -> Permit: ...
    @overload
    async def decided(self, query: Query, decision: Denied) -> AuditId: ...
    async def decided(self, query: Query, decision: Allowed | Denied) -> Permit | AuditId:
        """Writes DECIDED and returns when it and ATTEMPTED are committed. Raises AuditUnavailable: nothing may run then."""
        self._check_open()
        attempted = self._attempted.pop(query.query_id, None)
        if attempted is None or attempted.error:
            raise AuditUnavailable(attempted.error if attempted is not None else _NO_ROW)
        match decision:
            case Allowed(statement=statement, tables=tables):
                payload = Decided("ALLOW", statement.kind, tables, dialect=_DIALECT)
            case Denied(policy_rule=rule, reason=reason, statement_type=kind, tables=tables):
                payload = Decided("DENY", kind, None if kind is None else tables, rule, reason, dialect=_DIALECT)
        ticket = self._hand_over(query, payload, attempted)
        if isinstance(decision, Allowed):
            _remember(self._decided, query.query_id, ticket)
        audit_id = AuditId(await self._committed(ticket))
        return Permit(decision, query.query_id, audit_id) if isinstance(decision, Allowed) else audit_id

    async def closed(self, query: Query, outcome: Executed | Failed) -> None:
        """Writes the closing row of an allowed query, once; its DECIDED may still be on its way.

        For use in a short shielded scope. Raises AuditUnavailable when the row cannot be written, also because the query's
        DECIDED was not.
        """
        self._check_open()
        decided = self._decided.pop(query.query_id, None)
        if decided is None or decided.error:
            raise AuditUnavailable(decided.error if decided is not None else _NO_ROW)
        await self._committed(self._hand_over(query, outcome, decided, is_closing=True))

    async def reloaded(self, events: Sequence[Event]) -> None:
        """Writes the POLICY_RELOADED rows of one swap, all in one transaction."""
        self._check_open()
        ticket = Ticket(tuple(map(row_of, events)))
        self._append(ticket)
        await self._committed(ticket)

    async def answers(self) -> None:
        """Returns when the writer has just gone round, whether or not it could write: a full disk is no reason to restart."""
        await self._chore(lambda _file: None)

    async def delete_before(self, cursor: str) -> int:
        """Deletes the rows with an id up to and including `cursor`, in chunks between batches; returns how many.

        Cancelled midway, the chunks done so far are gone for good and the rest stands.
        """
        deleted, at_most = 0, 8

        def delete_some(file: AuditFile) -> int:
            return file.delete_before(cursor, at_most)

        while True:
            began = time.perf_counter()
            result = await self._chore(delete_some)
            if isinstance(result, FILE_FAILURES):
                raise AuditUnavailable(reason_of(result)) from result
            assert isinstance(result, int)
            deleted += result
            if result < at_most:
                return deleted
            # A row may be 100 bytes or 1 MiB: what counts is how long the others waited.
            is_quick = time.perf_counter() - began < _DELETE_S
            at_most = min(at_most * 2, _DELETE_ROWS) if is_quick else max(at_most // 4, 1)

    def page(self, cursor: str, limit: int) -> Page:
        """Up to `limit` committed rows with an id above `cursor` (reader.START or a ULID), as JSON in pieces."""
        return self._reader.page(cursor, limit)

    def statistics(self) -> AuditStatistics:
        return AuditStatistics(
            available=self._available,
            queued=self._queued,
            queued_characters=self._queued_characters,
            batches=self._batches,
            rows=self._rows,
            failures=self._failures,
            last_batch_rows=self._last_batch_rows,
            last_commit_s=self._last_commit_s,
            wal_bytes=self._wal_bytes,
        )

    async def aclose(self) -> None:
        """Takes nothing more, writes what waits, makes the final checkpoint and closes the file. Not interrupted by a cancel."""
        self._is_closed = True
        self._room.unpark_all()
        with trio.CancelScope(shield=True):
            async with self._reader.limiter:  # the last connection to close makes the final checkpoint, and a reader cannot
                self._reader.close()
            self._at_work.cancel()
            self._thread.stop()
            await trio.to_thread.run_sync(self._thread.join)

    def _check_open(self) -> None:
        if self._is_closed or self._crash is not None:
            raise AuditUnavailable(_STOPPED)

    def _hand_over(self, query: Query, payload: Payload, after: Ticket | None, *, is_closing: bool = False) -> Ticket:
        ticket = Ticket((row_of(Event(query, self._clock_ms(), payload)),), after, is_closing=is_closing)
        self._append(ticket)
        return ticket

    def _append(self, ticket: Ticket) -> None:
        self._queued += len(ticket.rows)
        self._queued_characters += ticket.characters
        self._committer.append(ticket)
        self._has_work = True
        if self._resting is not None:
            trio.lowlevel.reschedule(self._resting)
            self._resting = None

    async def _work(self) -> None:
        """Commits what was handed over as soon as nobody hands over more: so the tasks that are ready together share a commit.

        A task beside all nurseries, as the thread is; `aclose` ends it.
        """
        with self._at_work:
            while True:
                if not self._has_work:
                    await self._rest()
                for _ in range(_ROUNDS):
                    waiting = len(self._committer)
                    await trio.lowlevel.checkpoint()
                    if len(self._committer) == waiting:
                        break
                self._has_work = False
                try:
                    self._commit()
                except BaseException as bug:
                    self._note_crash(bug)

    async def _rest(self) -> None:
        self._resting = trio.lowlevel.current_task()

        def abort(_raise: object) -> trio.lowlevel.Abort:
            self._resting = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _commit(self) -> None:
        """Commits what waits here if that takes no waiting, else in the thread."""
        committer = self._committer
        if committer.owner.acquire(blocking=False):
            try:
                while committer and (outcome := committer.commit_at_once()) is not None:
                    self._deliver(outcome)
            finally:
                committer.owner.release()
            self._thread.await_rest()
        if committer:
            self._thread.wake()

    async def _committed(self, ticket: Ticket) -> str:
        """Waits for the batch that holds `ticket`; returns the id of its last row. Cancelled: the row is written all the same."""
        if ticket.is_done:
            await trio.lowlevel.checkpoint()
        else:
            ticket.task = trio.lowlevel.current_task()

            def abort(_raise: object) -> trio.lowlevel.Abort:
                ticket.task = None
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)
        if ticket.error:
            raise AuditUnavailable(ticket.error)
        ticket.after = None  # or every query would hold on to all its rows
        return ticket.audit_id

    async def _chore(self, call: Callable[[AuditFile], object]) -> object:
        self._check_open()
        done = trio.Event()
        results: list[object] = []

        def take(result: object) -> None:
            results.append(result)
            done.set()

        self._thread.do(Chore(call, take))
        await done.wait()
        return results[0]

    def _deliver(self, outcome: BatchOutcome) -> None:
        for ticket in outcome.tickets:
            self._queued -= len(ticket.rows)
            self._queued_characters -= ticket.characters
            ticket.rows = ()  # a statement may be 1 MiB, and the ticket lives as long as its query
            ticket.characters = 0
            if ticket.task is not None:
                trio.lowlevel.reschedule(ticket.task)
                ticket.task = None
        self._room.unpark_all()
        if outcome.error:
            self._failures += 1
            self._note_unavailable(outcome.error)
            return
        if outcome.file_changed and self._available:
            self._note_unavailable("the audit file was deleted or replaced")
        if not self._available:
            self._available = True
            log.info(log.AUDIT_RECOVERED)
        self._batches += 1
        self._rows += outcome.rows
        self._last_batch_rows = outcome.rows
        self._last_commit_s = outcome.commit_s
        self._wal_bytes = outcome.wal_bytes
        if self.on_commit is not None:
            self.on_commit(outcome.commit_s, outcome.rows)

    def _note_unavailable(self, reason: str) -> None:
        if self._available:
            self._available = False
            log.error(log.AUDIT_UNAVAILABLE, reason=reason)

    def _note_crash(self, failure: BaseException) -> None:
        self._crash = failure
        self._crashed.set()
        tickets = self._committer.abandon()
        outcome = BatchOutcome(tickets)
        outcome.error = _STOPPED
        for ticket in tickets:
            ticket.error = ticket.error or _STOPPED
        self._deliver(outcome)
        for chore in self._thread.abandon():
            chore.done(AuditFileUnusable(self.path, _STOPPED))


def _remember(queries: OrderedDict[QueryId, Ticket], query_id: QueryId, ticket: Ticket) -> None:
    """Keeps the last row of a query for the next one. Bounded: a forgotten query is refused, never let through."""
    queries[query_id] = ticket
    if len(queries) > _QUERIES_REMEMBERED:
        queries.popitem(last=False)


@asynccontextmanager
async def open_audit(
    path: str,
    synchronous: Synchronous = "normal",
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> AsyncGenerator[Audit, None]:
    """Owns the audit file, its lock and its thread. Raises AuditFileLocked (exit 69) or AuditFileUnusable (exit 78)."""
    lock, file = await trio.to_thread.run_sync(_open, path, synchronous)
    try:
        audit = Audit(file, synchronous, clock_ms)
    except BaseException:
        file.close()
        lock.release()
        raise
    try:
        yield audit
    finally:
        await audit.aclose()
        lock.release()


def _open(path: str, synchronous: Synchronous) -> tuple[OwnershipLock, AuditFile]:
    real = os.path.realpath(path)  # one lock for one file, by whatever name
    try:
        os.makedirs(os.path.dirname(real), mode=0o700, exist_ok=True)
        lock = OwnershipLock(real)
    except OSError as failure:
        raise AuditFileUnusable(path, reason_of(failure)) from failure
    try:
        return lock, AuditFile(real, synchronous)
    except BaseException:
        lock.release()
        raise
