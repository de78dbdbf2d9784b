"""Which grants are tainted: an agent's token, or a whole gateway where agents have none, that has read a source of foreign text.

A taint holds for all gateways of the project, until a person clears it. What was done with it stays in its history.
"""

from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

MARK: Final = Statement(
    "INSERT INTO taints (project_id, grant_key, shown, source, query_id, gateway_id, tainted_ms) VALUES ($1, $2, $3,"
    " $4, $5, $6, $7)"
    " ON CONFLICT (project_id, grant_key, source) DO UPDATE SET query_id = excluded.query_id, gateway_id = excluded.gateway_id,"
    " tainted_ms = excluded.tainted_ms, cleared_ms = NULL, cleared_by = NULL, note = NULL WHERE taints.cleared_ms IS NOT NULL"
)
OF_GRANT: Final = Statement(
    "SELECT grant_key, shown, source, query_id, gateway_id, tainted_ms FROM taints"
    " WHERE project_id = $1 AND grant_key = $2 AND cleared_ms IS NULL ORDER BY tainted_ms, source LIMIT 1"
)
OPEN: Final = Statement(
    "SELECT grant_key, shown, source, query_id, gateway_id, tainted_ms FROM taints WHERE project_id = $1 AND cleared_ms IS NULL"
    " ORDER BY tainted_ms DESC, source LIMIT 500"
)
CLEAR: Final = Statement(
    "UPDATE taints SET cleared_ms = $3, cleared_by = $4, note = $5 WHERE project_id = $1 AND grant_key = $2 AND"
    " cleared_ms IS NULL"
)
NOTE: Final = Statement(
    "INSERT INTO taint_history (project_id, event_id, grant_key, source, what, person_id, ts_ms) VALUES ($1, $2, $3,"
    " $4, $5, $6, $7)"
)


class Taint(msgspec.Struct, frozen=True):
    """`source` is `<database>:<table>`; `shown` is the token's id, or `gateway <id>`."""

    grant_key: bytes
    shown: str
    source: str
    query_id: str
    gateway_id: str
    tainted_ms: int


def grant_key(grant: str, gateway_id: str) -> bytes:
    """`grant`: the token's id, "" for the whole gateway."""
    return sha256(f"token {grant}".encode() if grant else f"gateway {gateway_id}".encode()).digest()


async def mark(tx: Transaction, project_id: str, taint: Taint, event_id: str) -> None:
    """A grant that is tainted by the source already stays as it is."""
    values = (taint.shown, taint.source, taint.query_id, taint.gateway_id, taint.tainted_ms)
    if await tx.run(MARK, project_id, taint.grant_key, *values):
        await tx.run(NOTE, project_id, event_id, taint.grant_key, taint.source, "tainted", None, taint.tainted_ms)


async def clear(tx: Transaction, project_id: str, key: bytes, person_id: str, note: str, event_id: str, now_ms: int) -> bool:
    """Whether there was something to clear."""
    if not await tx.run(CLEAR, project_id, key, now_ms, person_id, note):
        return False
    await tx.run(NOTE, project_id, event_id, key, "", f"cleared: {note}"[:1000], person_id, now_ms)
    return True
