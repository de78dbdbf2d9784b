"""The tree of one instance in the file: the roots of its subtrees, read from the `leaf` column on demand.

Roots of complete subtrees of 1024 leaves and more are cached, because leaves never change. So the first proof reads all leaves
(about a second for a million), and each further one reads a few thousand.
"""

import sqlite3
from typing import Final

from gatewayd.audit.tree import HASH_BYTES, CompactRange, node

_REMEMBERED_LEVEL: Final = 10
_LEAVES: Final = "SELECT leaf FROM audit_events WHERE seq >= ? AND seq < ? ORDER BY seq"


class LeafMissing(Exception):
    """The file does not hold the leaves that are needed: rows were deleted, or the file was changed."""


class StoredTree:
    """The tree of an instance that begins at `first_seq`. `pruned` is the compact range of its deleted rows."""

    def __init__(self, first_seq: int, pruned: CompactRange) -> None:
        self.first_seq = first_seq
        self._pruned_size = pruned.size
        self._known = {(level, index): each for level, index, each in pruned.places()}

    def over(self, connection: sqlite3.Connection) -> "Subtrees":
        """The tree as read through `connection`, for one query."""
        return Subtrees(self, connection, self._known, self._pruned_size)


class Subtrees:
    """The roots of subtrees, read through one connection: a `Subtree` for `tree.py`."""

    def __init__(
        self, tree: StoredTree, connection: sqlite3.Connection, known: dict[tuple[int, int], bytes], pruned_size: int
    ) -> None:
        self._first_seq = tree.first_seq
        self._connection = connection
        self._known = known
        self._pruned_size = pruned_size

    def __call__(self, level: int, index: int) -> bytes:
        """The root over the leaves `index << level` to `(index + 1) << level`. Raises LeafMissing or sqlite3.Error."""
        known = self._known.get((level, index))
        if known is not None:
            return known
        start = index << level
        if level == 0 and start < self._pruned_size:
            raise LeafMissing("rows before this one were deleted")
        if start >= self._pruned_size and level <= _REMEMBERED_LEVEL:
            root = self._read(start, level)
        else:
            root = node(self(level - 1, index * 2), self(level - 1, index * 2 + 1))
        if level >= _REMEMBERED_LEVEL:
            self._known[level, index] = root
        return root

    def _read(self, start: int, level: int) -> bytes:
        seq = self._first_seq + start
        leaves: list[bytes] = [leaf for (leaf,) in self._connection.execute(_LEAVES, (seq, seq + (1 << level)))]
        if len(leaves) != 1 << level or any(not isinstance(leaf, bytes) or len(leaf) != HASH_BYTES for leaf in leaves):
            raise LeafMissing(f"rows from seq {seq} on are missing")
        while len(leaves) > 1:
            leaves = [node(leaves[place], leaves[place + 1]) for place in range(0, len(leaves), 2)]
        return leaves[0]
