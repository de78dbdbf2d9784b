"""The Trio side of the audit writer: the queue of rows, when a commit is made, and its outcome.

The rows of all tasks that are ready together make one commit. It is made here if it needs no waiting, and otherwise in the
writer's thread (see `committer.py`).
"""

from collections.abc import Callable
from typing import Final

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.batch import BatchOutcome, Ticket
from gatewayd.audit.committer import Committer
from gatewayd.audit.file import AuditFile
from gatewayd.audit.heads import unproved_head
from gatewayd.audit.open_file import AuditFileUnusable
from gatewayd.audit.thread import Chore, WriterThread

_ROWS: Final = 1024  # a few batches: more would only make callers wait longer for a disk that does not keep up
_CHARACTERS: Final = 16 * 1024 * 1024
_ROUNDS: Final = 8  # of the run loop, at most, that a commit waits for more to come
_STOPPED: Final = "the audit writer has stopped"


class AuditUnavailable(Exception):
    """None of the rows was written. `reason` is fit for a tool error: it contains no path and no SQL."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AuditStatistics(msgspec.Struct, frozen=True):
    """Counts of one audit, all of the same moment."""

    available: bool  # whether the last batch was committed
    queued: int  # rows handed over and not yet committed
    queued_characters: int  # of their payloads
    batches: int  # committed since start
    rows: int  # committed since start
    failures: int  # batches that could not be committed
    last_batch_rows: int
    last_commit_s: float
    wal_bytes: int  # after the last commit
    unsigned_s: float  # the age of the oldest row that no signed head covers


class CommitQueue:
    """Passes rows to `committer` while `run` runs. Methods are for the Trio thread."""

    def __init__(self, path: str, committer: Committer) -> None:
        self.on_commit: Callable[[float, int], None] | None = None
        self.crash: BaseException | None = None
        self._path = path
        self._is_closed = False
        self._rows = self._characters = 0  # handed over and not yet committed
        self._batches = self._rows_committed = self._failures = self._last_batch_rows = self._wal_bytes = 0
        self._last_commit_s = 0.0
        self._available = True
        self._generation = committer.generation
        self.signed: str | None = None
        """The newest head that was signed since the start."""
        self._room = trio.lowlevel.ParkingLot()
        self._committer = committer
        self._thread = WriterThread(committer, self._deliver, self.note_head, self._note_crash)
        self._at_work = trio.CancelScope(shield=True)
        self._has_work = False
        self._resting: trio.lowlevel.Task | None = None

    def note_head(self, note: str) -> None:
        """Tells of a new head: the journal, and whatever collects it, is the witness."""
        self.signed = note
        head = unproved_head(note)
        log.info(log.AUDIT_CHECKPOINT, instance=head.instance, size=head.size, note=note)

    def head_now(self, file: AuditFile) -> tuple[str | None, bool]:
        """In the thread: the head over all that is committed, and whether it was made now."""
        return self._committer.head_now(file)

    def check_open(self) -> None:
        """Raises AuditUnavailable once the writer has stopped."""
        if self._is_closed or self.crash is not None:
            raise AuditUnavailable(_STOPPED)

    async def room(self) -> None:
        """Waits while the queue is full."""
        self.check_open()
        while self._rows >= _ROWS or self._characters >= _CHARACTERS:
            await self._room.park()
            self.check_open()

    def append(self, ticket: Ticket) -> None:
        """Queues a ticket for the next commit. Never waits; call `room` first where waiting is allowed."""
        self._rows += len(ticket.rows)
        self._characters += ticket.characters
        self._committer.append(ticket)
        self._has_work = True
        self._wake()

    async def committed(self, ticket: Ticket) -> str:
        """Waits until `ticket` is committed; returns the id of its last row. Cancelled: the row is written nevertheless."""
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
        ticket.after = None  # otherwise each query would keep all its rows in memory
        return ticket.audit_id

    async def call(self, call: Callable[[AuditFile], object]) -> object:
        """Calls `call` with the file in the thread, between two batches. Returns its result, or a failure of FILE_FAILURES."""
        self.check_open()
        done = trio.Event()
        results: list[object] = []

        def take(result: object) -> None:
            results.append(result)
            done.set()

        self._thread.do(Chore(call, take))
        await done.wait()
        return results[0]

    def statistics(self) -> AuditStatistics:
        """The counts now."""
        return AuditStatistics(
            available=self._available,
            queued=self._rows,
            queued_characters=self._characters,
            batches=self._batches,
            rows=self._rows_committed,
            failures=self._failures,
            last_batch_rows=self._last_batch_rows,
            last_commit_s=self._last_commit_s,
            wal_bytes=self._wal_bytes,
            unsigned_s=self._committer.unsigned_s,
        )

    def close(self) -> None:
        """Accepts no more rows; a task that waits for room gets AuditUnavailable."""
        self._is_closed = True
        self._room.unpark_all()

    async def aclose(self) -> None:
        """Writes the queued rows, makes the last head and the final checkpoint, and closes the file; `run` then ends. For use in
        a shielded scope, after `close`."""
        self._at_work.cancel()
        self._thread.stop()
        await trio.to_thread.run_sync(self._thread.join)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commits the queued rows as soon as no further ones arrive, so that all tasks that are ready together share a commit.

        Runs until `aclose`, even while everything around it is cancelled, because closing rows must still be written. Raises the
        bug that ended a commit or the thread.
        """
        self._thread.start()
        task_status.started()
        with self._at_work:
            while True:
                if not self._has_work:
                    await self._rest()
                if self.crash is not None:
                    raise self.crash
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

    def _wake(self) -> None:
        if self._resting is not None:
            trio.lowlevel.reschedule(self._resting)
            self._resting = None

    async def _rest(self) -> None:
        self._resting = trio.lowlevel.current_task()

        def abort(_raise: object) -> trio.lowlevel.Abort:
            self._resting = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _commit(self) -> None:
        """Commits the queued rows here if that needs no waiting, and otherwise in the thread."""
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

    def _deliver(self, outcome: BatchOutcome) -> None:
        for ticket in outcome.tickets:
            self._rows -= len(ticket.rows)
            self._characters -= ticket.characters
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
        if not outcome.rows:
            return  # all were refused because of earlier rows: nothing was written, so this is not a recovery
        if outcome.generation > self._generation:  # the loop's outcome may arrive before that of the thread that opened it
            self._generation = outcome.generation
            self._note_unavailable("the audit file was deleted or replaced")
        if not self._available:
            self._available = True
            log.info(log.AUDIT_RECOVERED)
        self._batches += 1
        self._rows_committed += outcome.rows
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
        self.crash = failure
        self._has_work = True
        self._wake()
        tickets = self._committer.abandon()
        outcome = BatchOutcome(tickets)
        outcome.error = _STOPPED
        for ticket in tickets:
            ticket.error = ticket.error or _STOPPED
        self._deliver(outcome)
        for chore in self._thread.abandon():
            chore.done(AuditFileUnusable(self._path, _STOPPED))
