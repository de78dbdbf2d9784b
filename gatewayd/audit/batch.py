"""Rows that wait to be written into the audit file, and the outcome of a batch. Plain data, passed between two threads."""

from collections.abc import Sequence

import trio

from gatewayd.audit.rows import Row


class Ticket:
    """Rows that are committed together, and the tasks that wait for the commit."""

    __slots__ = ("after", "audit_id", "characters", "error", "generation", "is_closing", "rows", "task")

    def __init__(self, rows: tuple[Row, ...], after: "Ticket | None" = None, *, is_closing: bool = False) -> None:
        self.rows = rows
        self.characters = sum([row.characters for row in rows])
        self.after = after  # the query's earlier row, without which these must not be written
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
        # An earlier row that is not done is in the same batch, before these: they are committed together or not at all.
        if earlier.is_done and not self.is_closing and earlier.generation != generation:
            return "the audit file was replaced between the rows of one query"
        return ""


class BatchOutcome:
    """One finished batch. `generation` counts the files opened so far: it names the file that holds the rows."""

    __slots__ = ("commit_s", "error", "generation", "rows", "tickets", "wal_bytes")

    def __init__(self, tickets: Sequence[Ticket]) -> None:
        self.tickets = tickets
        self.error = ""
        self.rows = 0  # committed
        self.generation = 0
        self.commit_s = 0.0
        self.wal_bytes = 0
