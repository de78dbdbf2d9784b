"""The state in which an opened file continues: its instance, its next seq, and its tree.

The `leaf` column is trusted here; `audit verify` checks leaves against their rows. A file that does not continue its own heads
gets a new instance, because a head that contradicts an earlier one would look like a forgery by gatewayd.
"""

import base64
import sqlite3
from collections.abc import Mapping
from typing import Final

import msgspec

from gatewayd.audit import kept_heads
from gatewayd.audit.heads import Head
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.meta import Heads, Instance, Meta, MetaDamaged, Previous, Reason, check_signature, read_meta
from gatewayd.audit.tree import HASH_BYTES, CompactRange
from gatewayd.keys.note import NoteRefused, VerifierKey, verifier_key

# max(seq) would read every row: SQLite takes the index only where a row without seq is excluded
_LAST_SEQ: Final = "SELECT coalesce((SELECT seq FROM audit_events WHERE seq IS NOT NULL ORDER BY seq DESC LIMIT 1), 0)"
_LEAVES: Final = "SELECT seq, leaf FROM audit_events WHERE seq >= ? ORDER BY seq"
_NO_HEADS: Final = Heads(0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")


class ResumeState(msgspec.Struct, frozen=True):
    """The new metadata, the present instance's tree, and the seq of the next row.

    `broken` says why the previous instance could not continue; None if nothing is wrong.
    """

    meta: Meta
    tree: CompactRange
    next_seq: int
    broken: Reason | None = None


def resume(
    connection: sqlite3.Connection,
    rows: Mapping[str, str],
    verifier: VerifierKey,
    now_ms: int,
    entropy: bytes,
    signed_last: Head | None = None,
) -> ResumeState:
    """The state of the file with these meta rows. `signed_last` is the last head that this identity signed, kept outside of the
    file. `entropy` are 10 bytes for the id of a new instance. Raises MetaDamaged."""
    instance = Instance(new_ulid(now_ms, lambda _: entropy))
    (last,) = connection.execute(_LAST_SEQ).fetchone()
    if "instance" not in rows:
        first = last + 1
        (largest,) = connection.execute("SELECT max(id) FROM audit_events").fetchone()
        meta = Meta(
            instance, first, verifier.key.key_id, str(verifier), _NO_HEADS, rows.get("last_id", ""), format_1_to=largest or ""
        )
        return ResumeState(meta, CompactRange(), first)
    meta = read_meta(rows)
    last_seq = max(last, meta.pruned_to, meta.first_seq - 1)
    tree, broken = _tree(connection, meta, last_seq)
    if broken is None and signed_last is not None and signed_last.instance == meta.instance and signed_last.size > tree.size:
        broken = "rows missing"
    if broken is None and meta.identity != verifier.key.key_id:
        return begin_instance(ResumeState(meta, tree, last_seq + 1), verifier, "identity", now_ms, instance)
    if broken is None:
        try:
            check_signature(rows, verifier)
        except (NoteRefused, MetaDamaged):
            broken = "damaged"
    state = ResumeState(meta, tree, last_seq + 1, broken)
    return state if broken is None else begin_instance(state, verifier, broken, now_ms, instance)


def begin_instance(state: ResumeState, verifier: VerifierKey, reason: Reason, now_ms: int, instance: Instance) -> ResumeState:
    """The state with a new instance that begins at the next seq; the present one becomes the last of the previous ones."""
    meta = state.meta
    ended = Previous(
        instance=meta.instance,
        first_seq=meta.first_seq,
        size=state.tree.size,
        root=base64.b64encode(state.tree.root()).decode(),
        reason=reason,
        until=now_ms,
        verifier=meta.verifier,
    )
    changed = msgspec.structs.replace(
        meta,
        instance=instance,
        first_seq=state.next_seq,
        identity=verifier.key.key_id,
        verifier=str(verifier),
        previous_instances=(*meta.previous_instances, ended),
        acked=None,
    )
    return ResumeState(changed, CompactRange(), state.next_seq, state.broken)


def _tree(connection: sqlite3.Connection, meta: Meta, last_seq: int) -> tuple[CompactRange, Reason | None]:
    """The present instance's tree up to `last_seq`, or as far as it can be followed, and what is wrong."""
    broken: Reason | None = None
    tree = meta.pruned_tree(meta.instance)
    available = last_seq - meta.first_seq + 1
    key = verifier_key(meta.verifier)
    for head in kept_heads.kept(connection, meta.instance, newest_first=True):
        try:
            _, range_ = head.verified([key])
        except NoteRefused:
            broken = broken or "damaged"
            continue
        if range_.size > available:
            broken = "rows missing"
            continue
        if range_.size >= tree.size:
            tree = range_
        break
    for seq, leaf in connection.execute(_LEAVES, (meta.first_seq + tree.size,)):
        if seq != meta.first_seq + tree.size:
            return tree, "rows missing"
        if not isinstance(leaf, bytes) or len(leaf) != HASH_BYTES:
            return tree, "damaged"
        tree.append(leaf)
    return tree, broken
