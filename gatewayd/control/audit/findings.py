"""Findings: what is wrong with a gateway's audit or identity, red in the console until a person has seen it.

`duplicated` two processes with one identity, `fork` a new instance of the file begins before the end of the one held, `conflict`
another event at a place that is held, `lost` less is held than was acknowledged, `gap` rows that nobody has any more, `head` a
signed head that the rows held do not lead to.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from gatewayd.control.notifications.sources import tell_finding
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

FindingKind = Literal["duplicated", "fork", "conflict", "lost", "gap", "head"]

ADD_ONCE: Final = Statement(
    "INSERT INTO audit_findings (project_id, finding_id, gateway_id, kind, body, found_ms)"
    " SELECT $1::uuid, $2::uuid, $3::uuid, $4::text, $5::text, $6::bigint WHERE NOT EXISTS (SELECT 1 FROM audit_findings"
    " WHERE project_id = $1 AND gateway_id = $3 AND kind = $4 AND body = $5)"
)
# A gateway that looks for the first difference meets many: one that nobody has seen yet stands for them.
ADD_ONE: Final = Statement(
    "INSERT INTO audit_findings (project_id, finding_id, gateway_id, kind, body, found_ms)"
    " SELECT $1::uuid, $2::uuid, $3::uuid, $4::text, $5::text, $6::bigint WHERE NOT EXISTS (SELECT 1 FROM audit_findings"
    " WHERE project_id = $1 AND gateway_id = $3 AND kind = $4 AND seen_ms IS NULL)"
)
OPEN: Final = Statement(
    "SELECT finding_id, gateway_id, kind, body, found_ms, seen_by, seen_ms FROM audit_findings"
    " WHERE project_id = $1 AND seen_ms IS NULL ORDER BY finding_id DESC LIMIT 200"
)
SEE: Final = Statement(
    "UPDATE audit_findings SET seen_by = $3, seen_ms = $4 WHERE project_id = $1 AND finding_id = $2 AND seen_ms IS NULL"
)


async def find_out(
    tx: Transaction, place: ProjectPlace, kind: FindingKind, body: Mapping[str, object], finding_id: str, now_ms: int
) -> None:
    """Keep a finding about the gateway of `place`, and tell of it; the same once more changes nothing."""
    text = msgspec.json.encode(body).decode()
    statement = ADD_ONE if kind == "conflict" else ADD_ONCE
    if await tx.run(statement, place.project_id, finding_id, place.id, kind, text, now_ms):
        await tell_finding(tx, place.org_id, place.project_id, place.id, kind, finding_id, now_ms)


class Finding(msgspec.Struct, frozen=True):
    finding_id: str
    gateway_id: str
    kind: str
    body: str  # JSON
    found_ms: int
    seen_by: str | None
    seen_ms: int | None
