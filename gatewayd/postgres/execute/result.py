"""What execution gives back: rows as PostgreSQL's own JSON text, or a named failure (decisions 6, 11)."""

from typing import Final

import msgspec

UNMASKABLE: Final = "column_masking"
"""Stands for the SQLSTATE of a write that was rolled back because its rows could not be masked."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """`rows` are JSON objects, each one row, in order; nothing here decodes them."""

    rows: tuple[bytes, ...] = ()
    rows_returned: int | None = None  # None for a statement that returns no rows
    rows_affected: int | None = None  # exact, also when RETURNING was cut by the limits
    truncated: bool = False
    withheld: str | None = None  # why no row may be shown after all, as it could not be masked


class ExecutionFailed(Exception):
    """The database refused or lost an allowed statement. `sqlstate` has five characters (decision 4).

    `position` is a character position in the agent's own text, 1-based as PostgreSQL counts. `is_inner`: the words come out of
    what the statement set off (a trigger, a function, a cascade of keys), so they may be about rows that it does not name.
    """

    def __init__(
        self, sqlstate: str, message: str, hint: str | None = None, position: int | None = None, *, is_inner: bool = False
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.hint = hint
        self.position = position
        self.is_inner = is_inner


class CatalogChanged(ExecutionFailed):
    """Objects that the decision rests on changed while the statement ran: nothing of it may be told, and a write is undone."""

    def __init__(self) -> None:
        super().__init__(
            "40001",
            "tables, views or functions that this statement uses were changed while it ran, so it was stopped and nothing took "
            "effect",
            "send the statement again; where that fails too, wait until the change of the schema is done",
        )


class AnswerTooLarge(ExecutionFailed):
    """One piece of an answer (a row, the words of an error) is larger than what may be held of it. The session is closed."""

    def __init__(self) -> None:
        super().__init__(
            "54000",
            "the database's answer to this statement has a row or an error text that is larger than the gateway takes",
            "ask for less: fewer columns, or a part of a long value with substr()",
        )
