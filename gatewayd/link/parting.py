"""Where the audit file and what the control plane holds part: the first leaf that differs.

A conflict proves one leaf that is held, and with it the tree of all leaves before it. Where that tree is ours, the difference is
at this leaf; else it is before it, and halving finds it: one row is sent again at a time, and its ack or its conflict says on
which side of it to go on. What is believed is what was proved, never that a conflict shows the first difference.
"""

import sqlite3

import msgspec

from gatewayd.audit.meta import Meta
from gatewayd.audit.stored_tree import StoredTree
from gatewayd.audit.tree import range_before, range_from, root_from_inclusion
from gatewayd.link.formats.answers import Conflict
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.rows import AuditBody


class Parting(msgspec.Struct, frozen=True):
    """Counted in leaves of the instance: the first `same` are equal on both sides, one up to the index `differs` is not."""

    same: int
    differs: int

    @property
    def is_found(self) -> bool:
        return self.same == self.differs

    @property
    def middle(self) -> int:
        """The index of the row that is to be sent next."""
        return (self.same + self.differs) // 2


def parting_at(connection: sqlite3.Connection, meta: Meta, body: AuditBody, conflict: Conflict, same: int = 0) -> Parting:
    """What a conflict over this batch proves, where the first `same` leaves are known to be equal.

    Raises DocumentRefused when it proves nothing, LeafMissing when it is about rows that are gone here, sqlite3.Error.
    """
    if conflict.instance != body.instance or not body.first_seq <= conflict.seq <= body.to_seq:
        raise DocumentRefused("version", "it names another event")
    index, size = conflict.seq - body.first_seq, conflict.head.size
    try:
        leaf, root = bytes.fromhex(conflict.leaf), bytes.fromhex(conflict.head.root)
        proof = [bytes.fromhex(each) for each in conflict.proof]
    except ValueError:
        raise DocumentRefused("version", "it holds no hashes") from None
    if root_from_inclusion(leaf, index, size, proof) != root:
        raise DocumentRefused("version", "its proof does not verify")
    pruned = meta.pruned_tree(body.instance)
    subtree = StoredTree(body.first_seq, pruned).over(connection)
    if range_from(index, subtree).nodes != range_before(index, size, proof).nodes:
        return Parting(min(max(same, pruned.size), index), index)
    if leaf == subtree(0, index):
        raise DocumentRefused("version", "it shows the event that was sent")
    return Parting(index, index)
