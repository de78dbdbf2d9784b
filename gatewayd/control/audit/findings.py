"""Findings: what is wrong with a gateway's audit or identity, red in the console until a person has seen it.

`duplicated` two processes with one identity, `fork` a new instance of the file begins before the end of the one held, `conflict`
another event at a place that is held, `lost` less is held than was acknowledged, `gap` rows that nobody has any more, `head` a
signed head that the rows held do not lead to.
"""

from typing import Final

import msgspec

from gatewayd.control.store.statement import Statement

ADD: Final = Statement(
    "INSERT INTO audit_findings (project_id, finding_id, gateway_id, kind, body, found_ms) VALUES ($1, $2, $3, $4, $5, $6)"
)
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


class Finding(msgspec.Struct, frozen=True):
    finding_id: str
    gateway_id: str
    kind: str
    body: str  # JSON
    found_ms: int
    seen_by: str | None
    seen_ms: int | None
