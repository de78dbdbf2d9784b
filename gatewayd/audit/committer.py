"""Writing rows into the audit file: group commit, rising ids, recovery, checkpoints (decision 4).

One thread at a time owns the file: the one that holds the lock `owner`. A commit that syncs nothing is 100 µs of work in memory,
less than passing it to a thread costs, so the event loop's thread makes it itself (`commit_at_once`). A commit that may wait is
made in the writer's thread (`commit`): a sync, a checkpoint, opening the file anew, a lock of another process, a slow disk.
`commit_at_once` therefore never reports a failure: it leaves the batch in the queue.
"""

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic, perf_counter
from typing import Final

from gatewayd.audit.batch import BatchOutcome, Ticket
from gatewayd.audit.file import AuditFile, HeadDraft
from gatewayd.audit.ids import RisingIds
from gatewayd.audit.last_head import LastHead
from gatewayd.audit.lock import AuditFileLocked, OwnershipLock
from gatewayd.audit.open_file import AuditFileUnusable, reason_of
from gatewayd.audit.pace import Pace
from gatewayd.audit.rows import Row
from gatewayd.audit.stored_tree import LeafMissing

FILE_FAILURES: Final = (sqlite3.Error, OSError, AuditFileUnusable, LeafMissing)
_BATCH_ROWS: Final = 256
_BATCH_CHARACTERS: Final = 8 * 1024 * 1024
_AT_ONCE_CHARACTERS: Final = 1024 * 1024  # about 2 ms
_PAGES_PER_COMMIT: Final = 9  # seven b-trees, and now and then one that grows
_PAGE_BYTES: Final = 4096
_REPLACED: Final = "the audit file was deleted or replaced"


class Committer:
    """Starts with an open file. `append` is for the event loop's thread, everything else for the owner.

    `reopen` opens the file that is at the path now; `last_head` keeps each head outside of the file.
    """

    def __init__(
        self,
        file: AuditFile,
        lock: OwnershipLock,
        reopen: Callable[[], AuditFile],
        last_head: LastHead,
        pace: Pace,
        clock_s: Callable[[], float] = monotonic,
    ) -> None:
        self.pace = pace
        self._clock_s = clock_s
        self.owner = threading.Lock()
        self.committed_at = self._clock_s()
        self.owes_checkpoint = False
        self._file: AuditFile | None = file
        self._lock = lock
        self._path = file.path
        self._reopen = reopen
        self._last_head = last_head
        self._syncs_each = file.synchronous == "full"
        self._head_at = self._clock_s()
        self._unsigned_since: float | None = None
        self._ids = RisingIds(os.urandom)
        self.generation = 1
        self._inode: tuple[int, int] | None = file.inode
        file.start(self._ids)
        self._tickets: deque[Ticket] = deque()
        self._in_hand: Sequence[Ticket] = ()
        self._next_syncs = True  # the first commit after a checkpoint may begin the log anew, and syncs its header
        self._log_pages = 0  # an estimate: SQLite has no interface for it
        self._slow_until = 0.0

    def __len__(self) -> int:
        """The number of tickets that wait."""
        return len(self._tickets)

    @property
    def log_is_long(self) -> bool:
        """Whether a checkpoint is due before the next commit."""
        return self._log_pages >= self.pace.log_pages

    def append(self, ticket: Ticket) -> None:
        """Queues a ticket for the next commit."""
        self._tickets.append(ticket)

    def commit_at_once(self) -> BatchOutcome | None:
        """Writes a batch if that needs no waiting. Returns None otherwise; the batch stays in the queue."""
        file = self._file
        is_threads = self._next_syncs or self._syncs_each or self.log_is_long
        if file is None or is_threads or self._clock_s() < self._slow_until:
            return None
        batch, characters = self._take_batch()
        if characters <= _AT_ONCE_CHARACTERS:
            try:
                file.wait_for_others(0)
                outcome = self._insert(file, batch, characters)
            except FILE_FAILURES:
                pass  # `commit` runs into it again, and may take the time to handle it
            else:
                if outcome.commit_s > self.pace.slow_s:
                    self._slow_until = self.committed_at + self.pace.slow_for_s
                return outcome
        self._tickets.extendleft(reversed(batch))
        self._in_hand = ()
        self._next_syncs = True
        return None

    def commit(self) -> BatchOutcome:
        """Writes a batch, into a newly opened file if necessary. A failure is reported in the outcome and in its tickets."""
        batch, characters = self._take_batch()
        if self._none_may_be_written(batch):  # the file is not opened without need: an operator may be repairing it
            self._in_hand = ()
            return BatchOutcome(batch)
        try:
            file = self._usable_file()
            file.wait_for_others(self.pace.locked_by_others_ms)
            if self._next_syncs:  # once for each filling of the log, and after every rest
                file.ensure_readable()
            outcome = self._insert(file, batch, characters)
            self._next_syncs = False
        except FILE_FAILURES as failure:
            outcome = BatchOutcome(batch)
            outcome.error = reason_of(failure)
            for ticket in batch:
                ticket.error = ticket.error or outcome.error
            self._in_hand = ()
            self._give_up_file()
        return outcome

    def call(self, chore: Callable[[AuditFile], object]) -> object:
        """Calls `chore` with the file. Returns its result, or the failure that it raised."""
        try:
            file = self._usable_file()
            file.wait_for_others(self.pace.locked_by_others_ms)
            return chore(file)
        except FILE_FAILURES as failure:
            self._give_up_file()
            return failure

    def checkpoint(self) -> None:
        """Checkpoints: copies the write-ahead log into the file."""
        self.owes_checkpoint = False
        self._log_pages = 0
        self._next_syncs = True
        if self._file is not None:
            try:
                self._file.checkpoint()
            except FILE_FAILURES:  # the next commit fails for the same reason, and reports it to its callers
                self._give_up_file()

    @property
    def unsigned_s(self) -> float:
        """The age in seconds of the oldest row that no signed head covers; 0 if there is none. For any thread."""
        since, file = self._unsigned_since, self._file
        return 0.0 if since is None or file is None or file.size == file.head_size else self._clock_s() - since

    def head_due_s(self) -> float | None:
        """Seconds until the next head is due; None while a head covers every row."""
        if self._file is None or self._file.size == self._file.head_size:
            return None
        pace, now = self.pace, self._clock_s()
        settled_at = (self._unsigned_since or now) + min(pace.settle_s, pace.head_s)
        return max(self._head_at + pace.head_s - now, settled_at - now, 0.0)

    def draft_head(self) -> tuple[AuditFile, HeadDraft] | None:
        """The draft of the next head. The caller syncs the log, without owning the file, and then calls `keep_head`."""
        self._head_at = self._clock_s()  # also of one that fails: the next is tried after the same time
        if self._file is None or not self._file.is_in_place():
            return None
        draft = self._file.draft_head()
        return None if draft is None else (self._file, draft)

    def head_now(self, file: AuditFile) -> tuple[str | None, bool]:
        """The head over all that is committed, and whether it was made now: then it is kept outside of the file, too."""
        before = file.head_size
        note = file.head_now()
        is_new = note is not None and file.head_size != before
        if note is not None and is_new:
            self._last_head.write(note)
            self._unsigned_since = None
        return note, is_new

    def keep_head(self, file: AuditFile, draft: HeadDraft) -> str | None:
        """Signs and keeps the head. Returns the note, or None if the file cannot be written; the next commit then reports why."""
        if file is not self._file or not file.is_in_place():
            return None
        try:
            file.wait_for_others(self.pace.locked_by_others_ms)
            note = file.keep_head(draft)
        except FILE_FAILURES:
            self._give_up_file()
            return None
        if note is not None:
            self._last_head.write(note)
            self._unsigned_since = None if file.size == file.head_size else self._clock_s()
        return note

    def close(self) -> None:
        """Closes the file and releases its lock."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def abandon(self) -> list[Ticket]:
        """Removes and returns all tickets that wait, and those of a commit that a bug ended."""
        left = [*self._in_hand, *self._tickets]
        self._in_hand = ()
        self._tickets.clear()
        return left

    def _take_batch(self) -> tuple[list[Ticket], int]:
        """The oldest tickets, up to the size of one transaction, and the number of characters of their payloads."""
        batch: list[Ticket] = []
        rows = characters = 0
        tickets = self._tickets
        while tickets and rows < _BATCH_ROWS and characters < _BATCH_CHARACTERS:
            ticket = tickets.popleft()
            batch.append(ticket)
            rows += len(ticket.rows)
            characters += ticket.characters
        self._in_hand = batch
        return batch, characters

    def _none_may_be_written(self, batch: list[Ticket]) -> bool:
        """Whether every ticket is refused because of an earlier row; sets the tickets' errors. Once refused, always refused."""
        for ticket in batch:
            ticket.error = ticket.refusal(self.generation)
        return all(ticket.error for ticket in batch)

    def _insert(self, file: AuditFile, batch: list[Ticket], characters: int) -> BatchOutcome:
        """Inserts the rows of a batch. Sets each ticket's id, or its error if its rows must not be in this file."""
        began = perf_counter()
        if not file.is_in_place():
            raise AuditFileUnusable(self._path, _REPLACED)
        rows: list[tuple[str, Row]] = []
        written: list[tuple[Ticket, str]] = []
        for ticket in batch:
            ticket.error = ticket.refusal(self.generation)
            if not ticket.error:
                rows += [(self._ids.next(row.ts_ms), row) for row in ticket.rows]
                written.append((ticket, rows[-1][0]))
        is_all_signed = file.size == file.head_size
        if rows:
            file.insert(rows)
            if not file.is_in_place():
                raise AuditFileUnusable(self._path, _REPLACED)
        for ticket, audit_id in written:
            ticket.generation = self.generation
            ticket.audit_id = audit_id
        self._in_hand = ()
        outcome = BatchOutcome(batch)
        outcome.rows = len(rows)
        outcome.generation = self.generation
        outcome.wal_bytes = file.wal_bytes()
        self.committed_at = self._clock_s()
        self.owes_checkpoint = True
        if is_all_signed or self._unsigned_since is None:
            self._unsigned_since = self.committed_at
        self._log_pages += _PAGES_PER_COMMIT + characters // _PAGE_BYTES
        outcome.commit_s = perf_counter() - began
        return outcome

    def _usable_file(self) -> AuditFile:
        if self._file is not None and self._file.is_in_place():
            return self._file
        self._give_up_file()
        try:
            self._lock.hold()
        except AuditFileLocked as owned:
            raise AuditFileUnusable(self._path, "it belongs to another gatewayd that is running") from owned
        file = self._reopen()
        try:
            file.start(self._ids)
        except AuditFileUnusable:
            file.close()
            raise
        if file.is_new or file.inode != self._inode:
            self.generation += 1
        self._file = file
        self._inode = file.inode
        return file

    def _give_up_file(self) -> None:
        """Closes the file after any failure. Opening it anew is the recovery from every cause, and ends the failed
        transaction."""
        self._next_syncs = True
        if self._file is not None:
            if not self._file.is_in_place():
                self._inode = None  # once closed, its inode number may be given to another file
            self.close()
