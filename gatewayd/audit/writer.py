"""The audit service: callers hand events over and wait for the commit; only here an Allowed becomes a Permit (decision 4).

What may stand in the file for a query, whose caller may be cancelled at any await:

    nothing                                 cancelled while ATTEMPTED waited for room, or nothing could be written
    ATTEMPTED                               held and not decided in time; cancelled or failed before the decision; DECIDED could
                                            not be written
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

from gatewayd.audit.batch import Ticket
from gatewayd.audit.committer import FILE_FAILURES
from gatewayd.audit.events import (
    APPROVED_BY_CHARACTERS,
    Attempted,
    AuditId,
    Decided,
    Event,
    Executed,
    Failed,
    Payload,
    PolicyReloaded,
    Query,
    QueryId,
)
from gatewayd.audit.lock import AuditFileLocked, OwnershipLock
from gatewayd.audit.queue import AuditStatistics, AuditUnavailable, CommitQueue
from gatewayd.audit.reader import AuditReader, Page
from gatewayd.audit.rows import row_of
from gatewayd.audit.store import AuditFile, AuditFileUnusable, Synchronous, reason_of
from gatewayd.policy.decide.outcomes import Allowed, Denied, Permit

__all__ = ["Audit", "AuditFileLocked", "AuditFileUnusable", "AuditStatistics", "AuditUnavailable", "open_audit"]

_DIALECT: Final = "postgres"
_QUERIES_REMEMBERED: Final = 16384
_DELETE_ROWS: Final = 1024  # at once, at most
_DELETE_S: Final = 0.01
_NO_ROW: Final = "the earlier audit row of this query is not in the file"


class Audit:
    """Made by `open_audit`. Methods are for the Trio thread; each `async` one but `attempted` waits for its commit."""

    def __init__(self, file: AuditFile, lock: OwnershipLock, synchronous: Synchronous, clock_ms: Callable[[], int]) -> None:
        self.path = file.path
        self._clock_ms = clock_ms
        self._attempted: OrderedDict[QueryId, Ticket] = OrderedDict()
        self._decided: OrderedDict[QueryId, Ticket] = OrderedDict()
        self._reader = AuditReader(file.path)
        self._queue = CommitQueue(file, lock, synchronous)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Runs until cancelled; raises what made the writer's thread end."""
        task_status.started()
        await self._queue.crashed.wait()
        assert self._queue.crash is not None
        raise self._queue.crash

    async def attempted(self, query: Query, attempted: Attempted) -> None:
        """Hands the ATTEMPTED row over; waits only while the queue is full. Cancelled meanwhile: no row is written.

        Only this makes callers wait for room: a query once let in has its few further rows taken at once, so that a cancelled
        caller can still close it.
        """
        await self._queue.room()
        ticket = self._hand_over(query, attempted, None)
        _remember(self._attempted, query.query_id, ticket)

    @overload
    async def decided(self, query: Query, decision: Allowed, *, approved_by: str | None = None) -> Permit: ...
    @overload
    async def decided(self, query: Query, decision: Denied) -> AuditId: ...
    async def decided(self, query: Query, decision: Allowed | Denied, *, approved_by: str | None = None) -> Permit | AuditId:
        """Writes DECIDED and returns when it and ATTEMPTED are committed. Raises AuditUnavailable: nothing may run then.

        `approved_by` names who let a held write through.
        """
        self._queue.check_open()
        attempted = self._attempted.pop(query.query_id, None)
        if attempted is None or attempted.error:
            raise AuditUnavailable(attempted.error if attempted is not None else _NO_ROW)
        match decision:
            case Allowed(statement=statement, tables=tables):
                by = approved_by and approved_by[:APPROVED_BY_CHARACTERS]
                payload = Decided("ALLOW", statement.kind, tables, dialect=_DIALECT, approved_by=by)
            case Denied(policy_rule=rule, reason=reason, statement_type=kind, tables=tables):
                payload = Decided("DENY", kind, None if kind is None else tables, rule, reason, dialect=_DIALECT)
        ticket = self._hand_over(query, payload, attempted)
        if isinstance(decision, Allowed):
            _remember(self._decided, query.query_id, ticket)
        audit_id = AuditId(await self._queue.committed(ticket))
        return Permit(decision, query.query_id, audit_id) if isinstance(decision, Allowed) else audit_id

    async def recorded(self, query: Query) -> None:
        """Returns when ATTEMPTED is committed, for who is about to tell others of the query. Raises AuditUnavailable."""
        attempted = self._attempted.get(query.query_id)
        if attempted is None:
            raise AuditUnavailable(_NO_ROW)
        await self._queue.committed(attempted)

    def undecided(self, query: Query) -> None:
        """No DECIDED row will follow its ATTEMPTED."""
        self._attempted.pop(query.query_id, None)

    async def closed(self, query: Query, outcome: Executed | Failed) -> None:
        """Writes the closing row of an allowed query, once; its DECIDED may still be on its way.

        For use in a short shielded scope. Raises AuditUnavailable when the row cannot be written, also because the query's
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
        """Returns when the writer has just gone round, whether or not it could write: a full disk is no reason to restart."""
        await self._queue.call(lambda _file: None)

    async def delete_before(self, cursor: str) -> int:
        """Deletes the rows with an id up to and including `cursor`, in chunks between batches; returns how many.

        Cancelled midway, the chunks done so far are gone for good and the rest stands.
        """
        deleted, at_most = 0, 8

        def delete_some(file: AuditFile) -> int:
            return file.delete_before(cursor, at_most)

        while True:
            began = time.perf_counter()
            result = await self._queue.call(delete_some)
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
        return self._queue.statistics()

    def on_commit(self, told: Callable[[float, int], None]) -> None:
        """Has `told` called after each commit with its seconds and rows: what a histogram needs and a snapshot cannot give."""
        self._queue.on_commit = told

    async def aclose(self) -> None:
        """Takes nothing more, writes what waits, makes the final checkpoint and closes the file. Not interrupted by a cancel."""
        self._queue.close()
        with trio.CancelScope(shield=True):
            async with self._reader.limiter:  # the last connection to close makes the final checkpoint, and a reader cannot
                self._reader.close()
            await self._queue.aclose()

    def _hand_over(self, query: Query, payload: Payload, after: Ticket | None, *, is_closing: bool = False) -> Ticket:
        if query.preview_of is not None and not isinstance(payload, PolicyReloaded):
            payload = msgspec.structs.replace(payload, preview_of=query.preview_of)
        ticket = Ticket((row_of(Event(query, self._clock_ms(), payload)),), after, is_closing=is_closing)
        self._queue.append(ticket)
        return ticket


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
        audit = Audit(file, lock, synchronous, clock_ms)
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
        lock = OwnershipLock(real)
    except OSError as failure:
        raise AuditFileUnusable(path, reason_of(failure)) from failure
    try:
        return lock, AuditFile(real, synchronous)
    except BaseException:
        lock.release()
        raise
