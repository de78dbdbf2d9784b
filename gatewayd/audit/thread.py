"""The one thread that writes the audit file: group commit, ids, deletion in between, checkpoints, recovery (contract 4).

Blocking code; `writer.py` is its Trio side. Work comes in over a deque, a wake-up over a SimpleQueue: appending wakes nobody, so
all that the loop's tasks hand over before they rest makes one batch. Results go back once per batch.
"""

import contextlib
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import trio

from gatewayd.audit.ids import RisingIds
from gatewayd.audit.rows import Row
from gatewayd.audit.store import AuditFile, AuditFileUnusable, Synchronous, reason_of

_BATCH_ROWS: Final = 256
_BATCH_CHARACTERS: Final = 8 * 1024 * 1024
_IDLE_S: Final = 1.0  # a checkpoint at rest is one that nobody waits for

_Told = TypeVar("_Told")
_TS: Final = 7  # index of `ts` in a Row
_PAYLOAD: Final = 9


class Ticket:
    """Rows on their way into the file, committed together, and whoever waits for them."""

    __slots__ = ("after", "audit_id", "characters", "error", "generation", "is_closing", "rows", "task")

    def __init__(self, rows: tuple[Row, ...], after: "Ticket | None" = None, *, is_closing: bool = False) -> None:
        self.rows = rows
        self.characters = sum([len(row[_PAYLOAD]) for row in rows])
        self.after = after  # the query's earlier row, without which these must not stand in the file
        self.is_closing = is_closing
        self.audit_id = ""  # of the last row, once committed
        self.error = ""  # why it is not in the file
        self.generation = 0  # which file it went to: the count of files opened
        self.task: trio.lowlevel.Task | None = None

    @property
    def is_done(self) -> bool:
        return bool(self.audit_id or self.error)

    def refusal(self, generation: int) -> str:
        """Why these rows must not be written to the file of `generation`; empty when they may."""
        earlier = self.after
        if earlier is None:
            return ""
        if earlier.error:
            return earlier.error
        # An earlier row that is not done stands before these in the same batch: they share their fate.
        if earlier.is_done and not self.is_closing and earlier.generation != generation:
            return "the audit file was replaced between the rows of one query"
        return ""


class Chore:
    """A call that needs the file, run between two batches; `done` is called in the Trio thread with its result."""

    __slots__ = ("call", "done")

    def __init__(self, call: Callable[[AuditFile], object], done: Callable[[object], None]) -> None:
        self.call = call
        self.done = done


class BatchOutcome:
    """One finished batch. `file_changed`: the file before it had been deleted or replaced."""

    __slots__ = ("commit_s", "error", "file_changed", "rows", "tickets", "wal_bytes")

    def __init__(self, tickets: Sequence[Ticket]) -> None:
        self.tickets = tickets
        self.error = ""
        self.rows = 0  # committed
        self.file_changed = False
        self.commit_s = 0.0
        self.wal_bytes = 0


class WriterThread:
    """Starts with an open file; `stop()` lets it write what waits, checkpoint and close the file.

    `deliver(outcome)`, `crashed(exception)` and each Chore's `done` run in the Trio thread. After `crashed` nothing is written.
    """

    def __init__(
        self,
        file: AuditFile,
        synchronous: Synchronous,
        deliver: Callable[[BatchOutcome], None],
        crashed: Callable[[BaseException], None],
    ) -> None:
        self._file: AuditFile | None = file
        self._path = file.path
        self._synchronous = synchronous
        self._deliver = deliver
        self._crashed = crashed
        self._ids = RisingIds(os.urandom)
        self._generation = 1
        self._inode: tuple[int, int] | None = file.inode
        file.start(self._ids)
        self._tickets: deque[Ticket] = deque()
        self._chores: deque[Chore] = deque()
        self._wakes: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._is_woken = False
        self._checkpoint_owed = False
        self._in_hand: list[Ticket] = []
        self._chore_in_hand: Chore | None = None
        self._trio = trio.lowlevel.current_trio_token()
        # A daemon thread: a disk that never answers must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="gatewayd-audit", daemon=True)
        self._thread.start()

    # the Trio thread's side

    def append(self, ticket: Ticket) -> None:
        """Puts rows into the queue; they are written with the next batch that somebody wakes the thread for."""
        self._tickets.append(ticket)

    def wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._wakes.put(True)

    def do(self, chore: Chore) -> None:
        self._chores.append(chore)
        self.wake()

    def stop(self) -> None:
        self._wakes.put(False)

    def join(self) -> None:
        self._thread.join()

    def abandoned(self) -> tuple[list[Ticket], list[Chore]]:
        """What a thread that crashed left undone."""
        chores = [self._chore_in_hand] if self._chore_in_hand is not None else []
        return [*self._in_hand, *self._tickets], [*chores, *self._chores]

    # the thread's side

    def _run(self) -> None:
        try:
            going_on = True
            while going_on:
                try:
                    going_on = self._wakes.get(timeout=_IDLE_S if self._checkpoint_owed else None)
                except queue.Empty:
                    self._checkpoint()
                    continue
                self._is_woken = False  # before looking: who appends after the look wakes again
                self._work()
        except BaseException as failure:  # told, not swallowed: `crashed` ends the daemon
            self._tell(self._crashed, failure)
        finally:
            if self._file is not None:
                self._file.close()

    def _work(self) -> None:
        while self._tickets or self._chores:
            if self._tickets:
                self._in_hand = self._batch()
                self._commit(self._in_hand)
                self._in_hand = []
            if self._chores:
                self._chore_in_hand = self._chores.popleft()
                self._do(self._chore_in_hand)
                self._chore_in_hand = None

    def _batch(self) -> list[Ticket]:
        """What waits, oldest first, up to the size of one transaction."""
        batch: list[Ticket] = []
        rows = characters = 0
        while self._tickets and rows < _BATCH_ROWS and characters < _BATCH_CHARACTERS:
            ticket = self._tickets.popleft()
            batch.append(ticket)
            rows += len(ticket.rows)
            characters += ticket.characters
        return batch

    def _commit(self, batch: list[Ticket]) -> None:
        outcome = BatchOutcome(batch)
        began = time.perf_counter()
        generation = self._generation
        try:
            file = self._usable_file()
            rows: list[tuple[str, Row]] = []
            written: list[tuple[Ticket, str]] = []
            for ticket in batch:
                ticket.error = ticket.refusal(self._generation)
                if not ticket.error:
                    rows += [(self._ids.next(row[_TS]), row) for row in ticket.rows]
                    written.append((ticket, rows[-1][0]))
            if rows:
                file.insert(rows)
                if not file.is_in_place():
                    raise AuditFileUnusable(self._path, "the audit file was deleted or replaced")
                self._checkpoint_owed = True
            for ticket, audit_id in written:
                ticket.generation = self._generation
                ticket.audit_id = audit_id
            outcome.rows = len(rows)
            outcome.wal_bytes = file.wal_bytes()
        except (sqlite3.Error, OSError, AuditFileUnusable) as failure:
            outcome.error = reason_of(failure)
            for ticket in batch:
                ticket.error = ticket.error or outcome.error
            self._give_up_file()
        outcome.file_changed = generation != self._generation
        outcome.commit_s = time.perf_counter() - began
        self._tell(self._deliver, outcome)

    def _usable_file(self) -> AuditFile:
        if self._file is not None and self._file.is_in_place():
            return self._file
        self._give_up_file()
        file = AuditFile(self._path, self._synchronous)
        try:
            file.start(self._ids)
        except AuditFileUnusable:
            file.close()
            raise
        if file.is_new or file.inode != self._inode:
            self._generation += 1
        self._file = file
        self._inode = file.inode
        return file

    def _give_up_file(self) -> None:
        """After any failure the file is opened anew: one way back for every cause, and nothing of the failed batch stays open."""
        if self._file is not None:
            if not self._file.is_in_place():
                self._inode = None  # closed, its number is free for another file
            self._file.close()
            self._file = None

    def _do(self, chore: Chore) -> None:
        result: object
        try:
            result = chore.call(self._usable_file())
        except (sqlite3.Error, OSError, AuditFileUnusable) as failure:
            result = failure
            self._give_up_file()
        self._tell(chore.done, result)

    def _checkpoint(self) -> None:
        self._checkpoint_owed = False
        if self._file is not None:
            try:
                self._file.checkpoint()
            except (sqlite3.Error, OSError):  # the next commit meets the same cause, and then there is somebody to tell
                self._give_up_file()

    def _tell(self, receiver: Callable[[_Told], None], value: _Told) -> None:
        with contextlib.suppress(trio.RunFinishedError):  # nobody is left to tell
            self._trio.run_sync_soon(receiver, value)
