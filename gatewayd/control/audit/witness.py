"""Signed heads of gateways, kept: who keeps a head can later show that an audit file was changed.

A head comes with a poll, and may be ahead of the rows that are held: it is compared with them once they are here.
"""

from typing import Final

import msgspec

from gatewayd.audit.heads import Head, head_in
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.keys.ed25519 import PublicKey
from gatewayd.keys.note import NoteRefused, VerifierKey, open_note

_NOTE: Final = 4096
OWN_HEAD_WITHIN_MS: Final = 65_000
"""From the receipt of a row to the gateway's own head over it, at most, while the gateway is heard: it signs one a minute, and a
poll tells of it at once (docs/audit-format.md, Tree and heads)."""

KEEP: Final = Statement(
    "INSERT INTO audit_checkpoints (project_id, gateway_id, instance, size, note, received_ms) VALUES ($1, $2, $3, $4, $5, $6)"
    " ON CONFLICT (project_id, gateway_id, instance, size) DO NOTHING"
)
BETWEEN: Final = Statement(
    "SELECT size, note FROM audit_checkpoints WHERE project_id = $1 AND gateway_id = $2 AND instance = $3 AND size > $4"
    " AND size <= $5 ORDER BY size LIMIT 100"
)
NEWEST: Final = Statement(
    "SELECT size, note FROM audit_checkpoints WHERE project_id = $1 AND gateway_id = $2 AND instance = $3 AND size <= $4"
    " ORDER BY size DESC LIMIT 1"
)


class KeptNote(msgspec.Struct, frozen=True):
    size: int
    note: str

    @property
    def head(self) -> Head:
        return head_in(self.note.rpartition("\n\n")[0] + "\n")


def verifier(key: PublicKey) -> VerifierKey:
    """The name that a gateway's notes call its key by."""
    return VerifierKey(f"gatewayd/{key.key_id}", key)


async def keep_note(tx: Transaction, project_id: str, gateway_id: str, key: PublicKey, note: str, now_ms: int) -> None:
    """One that the gateway's identity did not sign is left aside."""
    if len(note) > _NOTE:
        return
    try:
        head = head_in(open_note(note, [verifier(key)])[0])
    except NoteRefused:
        return
    if head.key_id == key.key_id and 0 < head.size < 1 << 62:
        await tx.run(KEEP, project_id, gateway_id, head.instance, head.size, note, now_ms)
