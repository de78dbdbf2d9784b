"""post_exec: what becomes of a statement's output columns, and keyed masks put into rows that have come (decision 10). Pure.

The statement runs as it was written, and the query that the gateway puts around it shows its columns under their masks. A mask
without a key is the server's work there: what nobody may see does not leave the database. A mask with a key is put on here, so
that the key stays and the hashing is not the database's work: the row comes with a mark in that place, and the text of the value
beside it. So no JSON is read here, and every byte of the row stays as PostgreSQL wrote it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from gatewayd.masking.rules.families import Family
from gatewayd.masking.transforms.in_python import Keyed, Transform
from gatewayd.masking.transforms.in_sql import keyless
from gatewayd.policy.file.model import Mask
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.text.tokens import quoted

_MARK: Final = "E'\\001gatewayd'::pg_catalog.text"
_MARK_IN_ROW: Final = b'"\\u0001gatewayd"'
_END: Final = b"\1"  # of a row: no JSON text holds such a character


class WrongShape(Exception):
    """The rows are not what they were proved to be: nothing of them may be shown."""


class Masked(msgspec.Struct, frozen=True):
    """An output column that plainly shows masked ones. `transform` is None where the server can mask it."""

    place: int  # from 0
    name: str  # before equal names got their _2, _3
    mask: Mask
    kind: Family
    transform: Transform | None


class PostExec(msgspec.Struct, frozen=True):
    """The statement runs as it is, and each value of these output columns goes through its mask."""

    width: int  # how many columns every row has; 0 where no column is masked and the number is not known
    masked: tuple[Masked, ...]
    columns: tuple[str, ...]  # schema.table.column
    keeps_heap_order: bool = False
    """An index holds a masked column: rows read in its order would tell the order of the values."""
    instead: Statement | None = None
    """What runs in place of the agent's statement, with the same output columns; it differs in the places of `edits` only."""
    edits: tuple[tuple[int, int, int], ...] = ()

    def is_proved_for(self, names: Sequence[str]) -> bool:
        """Whether a statement with output columns of these names can be the one whose masked columns were found."""
        return len(names) == self.width and all(names[each.place] == each.name for each in self.masked)

    def select_list(self, names: Sequence[str]) -> tuple[str, ...]:
        """The statement's columns, under the alias `q` and these names, all different."""
        items = [f"q.{quoted(name)}" for name in names]
        for each in self.masked:
            item = items[each.place]
            shown = _MARK if isinstance(each.mask, Keyed) else keyless(each.mask, item, each.kind)
            items[each.place] = f"{shown} AS {quoted(names[each.place])}"
        return tuple(items)

    def values(self, names: Sequence[str]) -> tuple[str, ...]:
        """The texts that the marks stand for, in the order of the columns."""
        return tuple(f"q.{quoted(names[each.place])}::pg_catalog.text" for each in self.masked if each.transform is not None)

    def row_mask(self) -> "RowMask | None":
        """The masks as a function over rows; None if no column is masked."""
        transforms = tuple(each.transform for each in self.masked if each.transform is not None)
        return RowMask(transforms) if transforms else None


class RowMask:
    """Puts masked values in place of the marks."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self._transforms = transforms
        self.texts = len(transforms)
        """How many texts come with each row."""

    def __call__(self, rows: Sequence[bytes], columns: Sequence[Sequence[bytes | None]]) -> list[bytes]:
        """`columns` holds the texts, a list for each transform. Raises WrongShape.

        Goes through the columns, not through the rows: one call of a function for each row would cost as much as all of this. A
        value of the statement's own may look like a mark; then there are too many, and which is which cannot be told.
        """
        if not rows:
            return []
        between = _END.join(rows).split(_MARK_IN_ROW)
        if len(between) != 1 + len(rows) * self.texts:
            raise WrongShape("a value looks like the mark of a masked one")
        parts = [b""] * (2 * len(between) - 1)
        parts[::2] = between
        for number, (transform, texts) in enumerate(zip(self._transforms, columns, strict=True)):
            parts[1 + 2 * number :: 2 * self.texts] = transform(texts)
        return b"".join(parts).split(_END)
