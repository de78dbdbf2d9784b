"""What people did, as a Merkle tree for each organisation: who may change the store cannot change that unseen.

Each act is a leaf, made in the transaction of the act itself: `leaf = SHA-256(0x00 ‖ "gatewayd organisation 1\\n" ‖ seq, 8 bytes
big-endian ‖ SHA-256(envelope) ‖ SHA-256(salt ‖ details, padded))`. Envelope and details are canonical JSON; details (names,
addresses, notes) can be erased without breaking the tree. docs/control-plane.md, What people did, has the format.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.audit.tree import CompactRange
from gatewayd.control.console import Console
from gatewayd.control.notifications.sources import tell_act
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

SALT_BYTES: Final = 32
_LEAF: Final = b"\x00gatewayd organisation 1\n"
_BLOCK: Final = 256

HEAD: Final = Statement("SELECT instance, size, frontier FROM org_heads WHERE org_id = $1 FOR UPDATE")
BEGIN: Final = Statement("INSERT INTO org_heads (org_id, instance, size, frontier) VALUES ($1, $2, 0, $3)")
MOVE: Final = Statement("UPDATE org_heads SET size = $3, frontier = $4 WHERE org_id = $1 AND size = $2")
ADD: Final = Statement(
    "INSERT INTO org_events (org_id, seq, event_id, ts_ms, action, person_id, project_id, envelope, details, salt, leaf)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
)
NEWEST: Final = Statement(
    "SELECT seq, event_id, ts_ms, action, person_id, project_id, envelope, details, salt, leaf FROM org_events"
    " WHERE org_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3"
)


class Act(msgspec.Struct, frozen=True):
    """`action`: a word of what was done, such as `key.made`. `target`: the id of what it was done to."""

    action: str
    person_id: str | None
    project_id: str | None = None
    target: str | None = None
    details: Mapping[str, str] = msgspec.field(default_factory=dict)


class Event(msgspec.Struct, frozen=True):
    """One row, as `NEWEST` gives it."""

    seq: int
    event_id: str
    ts_ms: int
    action: str
    person_id: str | None
    project_id: str | None
    envelope: str
    details: str | None
    salt: bytes | None
    leaf: bytes


class _Head(msgspec.Struct, frozen=True):
    instance: str
    size: int
    frontier: bytes


class NewTrail(msgspec.Struct, frozen=True):
    """The beginning of an organisation's tree."""

    instance: str

    async def begin(self, tx: Transaction, org_id: str) -> None:
        await tx.run(BEGIN, org_id, self.instance, b"")


def new_organisation_trail(console: Console) -> NewTrail:
    return NewTrail(console.new_id())


async def record(tx: Transaction, org_id: str, act: Act, event_id: str, salt: bytes, now_ms: int) -> None:
    """Append the act, in the transaction that does it, and queue who is told of it.

    `event_id` and `salt` are made before the transaction, for it may run again."""
    head = await tx.row(_Head, HEAD, org_id)
    assert head is not None, "an organisation has its tree from its first moment"
    tree = CompactRange.decode(head.size, head.frontier)
    seq = head.size + 1
    envelope = canonical(
        {
            "action": act.action, "event": event_id, "instance": head.instance, "organisation": org_id,
            "person": act.person_id or "", "project": act.project_id or "", "seq": seq, "target": act.target or "", "ts": now_ms,
        }
    )  # fmt: skip
    details = canonical(act.details)
    leaf = leaf_of(seq, envelope, commitment_of(salt, details))
    tree.append(leaf)
    await tx.run(
        ADD, org_id, seq, event_id, now_ms, act.action, act.person_id, act.project_id, envelope, details, salt, leaf
    )  # fmt: skip
    if not await tx.run(MOVE, org_id, head.size, tree.size, tree.encode()):
        raise AssertionError("the head moved under a row lock")
    await tell_act(
        tx, org_id, act.action, person_id=act.person_id, project_id=act.project_id, target=act.target, details=act.details,
        event_id=event_id, now_ms=now_ms,
    )  # fmt: skip


def canonical(value: object) -> str:
    """UTF-8 JSON with sorted keys and no white space; strings and integers only."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def commitment_of(salt: bytes, details: str) -> bytes:
    data = details.encode()
    framed = len(data).to_bytes(8, "big") + data
    return sha256(salt + framed + bytes(-len(framed) % _BLOCK)).digest()


def leaf_of(seq: int, envelope: str, commitment: bytes) -> bytes:
    return sha256(_LEAF + seq.to_bytes(8, "big") + sha256(envelope.encode()).digest() + commitment).digest()
