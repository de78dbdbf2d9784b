"""Deleting the oldest rows so that all proofs about the rest stay valid (docs/audit-format.md, Pruning).

Before the first row is deleted, a head at the end of the deletion is signed, and each older head gets its consistency proof to
it. Rows are then deleted in chunks; each chunk extends the compact range of the deleted rows.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from gatewayd.audit import kept_heads
from gatewayd.audit.meta import Instance, Meta, Pruned
from gatewayd.audit.stored_tree import LeafMissing, StoredTree
from gatewayd.audit.tree import CompactRange, consistency_proof, range_from
from gatewayd.keys.ed25519 import base64_of

_LAST_SEQ: Final = "SELECT seq FROM audit_events WHERE id <= ? AND seq IS NOT NULL ORDER BY id DESC LIMIT 1"


class Target(msgspec.Struct, frozen=True):
    """The tree of an instance at the end of the deletion, and (size, consistency proof) for each kept head before it."""

    instance: Instance
    tree: CompactRange
    proofs: tuple[tuple[int, list[bytes]], ...]


class PruningPlan(msgspec.Struct, frozen=True):
    """What a deletion needs. No row above `last_seq` is deleted; it is 0 if no row with a seq is."""

    last_seq: int
    targets: tuple[Target, ...]


def plan_pruning(connection: sqlite3.Connection, meta: Meta, cursor: str, at_most_seq: int | None = None) -> PruningPlan:
    """The plan for deleting the rows up to `cursor` (an id) and up to `at_most_seq`. Reads the leaves of these rows, which takes
    about a second for a million. Raises LeafMissing or sqlite3.Error."""
    found = connection.execute(_LAST_SEQ, (cursor,)).fetchone()
    last_seq = found[0] if found is not None else 0
    if at_most_seq is not None:
        last_seq = min(last_seq, at_most_seq)
    targets: list[Target] = []
    for instance, first_seq, end_seq in meta.spans():
        size = min(last_seq + 1, end_seq if end_seq is not None else last_seq + 1) - first_seq
        pruned = meta.pruned_tree(instance)
        if size <= pruned.size:
            continue
        subtree = StoredTree(first_seq, pruned).over(connection)
        tree = range_from(size, subtree)
        inside = [head.size for head in kept_heads.kept(connection, instance) if head.later is None and 0 < head.size < size]
        proofs = tuple((each, consistency_proof(each, size, subtree)) for each in inside)
        targets.append(Target(instance, tree, proofs))
    return PruningPlan(last_seq, tuple(targets))


def pruned_meta(meta: Meta, rows: Sequence[tuple[str, int | None, bytes]]) -> Meta:
    """The metadata after the deletion of these rows (id, seq, leaf), which are the oldest. Raises LeafMissing if one is not the
    next row of its instance."""
    trees = {instance: meta.pruned_tree(instance) for instance, _, _ in meta.spans()}
    pruned_to = meta.pruned_to
    spans = meta.spans()
    for _, seq, leaf in rows:
        if seq is None:
            continue
        while spans and (end := spans[0][2]) is not None and seq >= end:
            spans.pop(0)
        instance, first_seq, _ = spans[0]
        if seq != first_seq + trees[instance].size or not isinstance(leaf, bytes):
            raise LeafMissing(f"the rows before seq {seq} are not the ones that were recorded")
        trees[instance].append(leaf)
        pruned_to = seq
    pruned = tuple(Pruned(each, tree.size, base64_of(tree.encode())) for each, tree in trees.items() if tree.size)
    return msgspec.structs.replace(meta, pruned_to=pruned_to, pruned=pruned)
