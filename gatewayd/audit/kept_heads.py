"""The signed heads that the file keeps, in its `checkpoints` table (docs/audit-format.md, Tree and heads).

Each is kept with the compact range at its size, so that a start hashes only the leaves after the last one. The newest 1024 heads
are kept; of the older ones only the last of each day, and those that a proof leads to.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.audit.heads import Head, head_in
from gatewayd.audit.leaf import canonical
from gatewayd.audit.meta import Heads
from gatewayd.audit.tree import CompactRange
from gatewayd.keys.note import NoteRefused, VerifierKey, open_note

_KEPT: Final = 1024
_THINNED_AT: Final = 2048
_SELECT: Final = "SELECT instance, size, ts, note, frontier, later, proof FROM checkpoints"
_TYPES: Final = ((str,), (int,), (int,), (str,), (bytes,), (int, type(None)), (bytes, type(None)))
_THIN: Final = """
DELETE FROM checkpoints WHERE (instance, size) IN (
  SELECT instance, size FROM (
    SELECT instance, size, row_number() OVER (ORDER BY ts DESC, size DESC) AS age,
           row_number() OVER (PARTITION BY instance, ts / 86400000 ORDER BY size DESC) AS place
    FROM checkpoints
  ) WHERE age > ? AND place > 1
) AND (instance, size) NOT IN (SELECT instance, later FROM checkpoints WHERE later IS NOT NULL)
"""


class KeptHead(msgspec.Struct, frozen=True):
    """One row. Once rows under this head were deleted, `later` is the size of a later head and `proof` the consistency proof to
    it."""

    instance: str
    size: int
    ts: int  # milliseconds since the epoch
    note: str
    frontier: bytes
    later: int | None = None
    proof: bytes | None = None

    def verified(self, keys: Sequence[VerifierKey]) -> tuple[Head, CompactRange]:
        """The head and its tree, if one of `keys` signed the head and all parts of the row agree. Raises NoteRefused."""
        text, signer = open_note(self.note, keys)
        head = head_in(text)
        if head.key_id != signer.key.key_id:
            raise NoteRefused("its origin names another key than the one that signed it")
        if (head.instance, head.size) != (self.instance, self.size):
            raise NoteRefused("it stands in the place of another head")
        try:
            tree = CompactRange.decode(self.size, self.frontier)
        except ValueError as failure:
            raise NoteRefused(f"its compact range: {failure}") from None
        if tree.root() != head.root:
            raise NoteRefused("its compact range does not lead to its root")
        return head, tree


def kept(connection: sqlite3.Connection, instance: str | None = None, *, newest_first: bool = False) -> Iterator[KeptHead]:
    """The rows, in the order of instance and size."""
    where, parameters = ("", ()) if instance is None else (" WHERE instance = ?", (instance,))
    order = "DESC" if newest_first else "ASC"
    for row in connection.execute(f"{_SELECT}{where} ORDER BY instance {order}, size {order}", parameters):
        if any(type(value) not in types for value, types in zip(row, _TYPES, strict=True)):
            raise sqlite3.DatabaseError("the checkpoints table holds values of other types")
        yield KeptHead(*row)


def last(connection: sqlite3.Connection, instance: str) -> KeptHead | None:
    """The instance's head with the largest size."""
    return next(kept(connection, instance, newest_first=True), None)


def keep(connection: sqlite3.Connection, head: KeptHead) -> None:
    """Stores a head within the caller's transaction. A head of the same size that is already there is kept instead."""
    values = (head.instance, head.size, head.ts, head.note, head.frontier, head.later, head.proof)
    connection.execute("INSERT OR IGNORE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    (count,) = connection.execute("SELECT count(*) FROM checkpoints").fetchone()
    if count > _THINNED_AT:
        connection.execute(_THIN, (_KEPT,))


def prove(connection: sqlite3.Connection, instance: str, size: int, later: int, proof: bytes) -> None:
    """Stores the proof that the tree of `size` is the beginning of the tree of `later`."""
    connection.execute(
        "UPDATE checkpoints SET later = ?, proof = ? WHERE instance = ? AND size = ?", (later, proof, instance, size)
    )


def summary(connection: sqlite3.Connection) -> Heads:
    """The count and digest of the table for the signed metadata, so that a removed or inserted row is noticed."""
    digest, count = sha256(), 0
    for each in kept(connection):
        proof = None if each.proof is None else each.proof.hex()
        row = [each.instance, each.size, each.ts, each.note, each.frontier.hex(), each.later, proof]
        digest.update(canonical(row) + b"\n")
        count += 1
    return Heads(count, digest.hexdigest())
