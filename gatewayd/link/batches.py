"""Batches of audit rows out of the file: which come next, and the tree up to them. Blocking, for the audit's reading thread."""

import contextlib
import os
import sqlite3
from typing import Final

import msgspec

from gatewayd.audit.meta import Meta
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.stored_tree import LeafMissing, StoredTree
from gatewayd.audit.tree import CompactRange, range_from
from gatewayd.link.formats.rows import BATCH_BYTES, BATCH_ROWS, AuditBody, PushedRow
from gatewayd.link.projection import NotProjected, Statements, StoredRow, pushed

_ROWS: Final = (
    f"SELECT {', '.join(COLUMNS)}, seq, leaf, salt, (SELECT commitment FROM erased e WHERE e.seq = a.seq)"
    " FROM audit_events a WHERE seq > ? ORDER BY seq LIMIT ?"
)
_ROW_OVERHEAD: Final = 600  # of a row's JSON beside its payload and intent


class Position(msgspec.Struct, frozen=True):
    """How far the push has come in one instance: the next row is `first_seq + tree.size`, and `tree` covers all before it."""

    instance: str
    first_seq: int
    tree: CompactRange
    end_seq: int | None = None
    """Where the next instance begins; None in the present one."""
    after_gap: bool = False
    """The rows before are gone here and were never taken there, so the next batch brings their compact range."""

    @property
    def next_seq(self) -> int:
        return self.first_seq + self.tree.size


class Batch(msgspec.Struct, frozen=True):
    """`tree` covers the rows of the batch too. `left_out` are seqs whose statement could not be redacted."""

    body: AuditBody
    tree: CompactRange
    leaves: tuple[bytes, ...]
    left_out: tuple[int, ...]


def position_at(connection: sqlite3.Connection, meta: Meta, instance: str, size: int) -> Position:
    """The position after the first `size` leaves of the instance; after what was pruned of it, where that is further.

    Raises LeafMissing.
    """
    first_seq, end_seq = next((first, end) for name, first, end in meta.spans() if name == instance)
    pruned = meta.pruned_tree(instance)
    if size < pruned.size:
        return Position(instance, first_seq, pruned, end_seq, after_gap=True)
    tree = StoredTree(first_seq, pruned)
    return Position(instance, first_seq, range_from(size, tree.over(connection)), end_seq)


def has_rows_from(connection: sqlite3.Connection, seq: int) -> bool:
    """Whether the file has a row with this seq or a later one."""
    return connection.execute("SELECT 1 FROM audit_events WHERE seq >= ? LIMIT 1", (seq,)).fetchone() is not None


def next_batch(
    connection: sqlite3.Connection, path: str, position: Position, statements: Statements, at_most: int = BATCH_ROWS
) -> Batch | None:
    """The next rows, synced to the disk: an acknowledged row that a power cut then loses would look like a forgery."""
    rows: list[PushedRow] = []
    leaves: list[bytes] = []
    left_out: list[int] = []
    size = 0
    tree = position.tree.copy()
    if position.end_seq is not None:
        at_most = min(at_most, position.end_seq - position.next_seq)
    for found in connection.execute(_ROWS, (position.next_seq - 1, min(at_most, BATCH_ROWS))):
        *columns, seq, leaf, salt, commitment = found
        if seq != position.next_seq + len(rows):
            raise LeafMissing(f"rows from seq {position.next_seq + len(rows)} on are missing")
        try:
            row = pushed(StoredRow(tuple(columns), seq, leaf, salt, commitment), statements)
        except NotProjected as bare:
            left_out.append(seq)
            row = bare.row
        size += len(str(row.row["payload"]).encode()) + len(row.statement or "") + _ROW_OVERHEAD
        if rows and size > BATCH_BYTES:
            break
        rows.append(row)
        leaves.append(leaf)
        tree.append(leaf)
    if not rows:
        return None
    _sync(path)
    body = AuditBody(
        instance=position.instance,
        first_seq=position.first_seq,
        from_seq=rows[0].seq,
        to_seq=rows[-1].seq,
        rows=tuple(rows),
        size=tree.size,
        root=tree.root().hex(),
        gap=position.tree.encode().hex() if position.after_gap else None,
    )
    return Batch(body, tree, tuple(leaves), tuple(seq for seq in left_out if seq <= rows[-1].seq))


def last_before(connection: sqlite3.Connection, up_to_seq: int, before_ms: int) -> str | None:
    """The id of the last row up to `up_to_seq` that is older than `before_ms`, with nothing younger before it."""
    row = connection.execute(
        "SELECT max(id) FROM audit_events WHERE seq <= ? AND seq < coalesce("
        "(SELECT min(seq) FROM audit_events WHERE seq <= ? AND ts >= ?), ?)",
        (up_to_seq, up_to_seq, before_ms, up_to_seq + 1),
    ).fetchone()
    return row[0] if row else None


def _sync(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # carried over to the file, and synced then
        descriptor = os.open(path + "-wal", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
