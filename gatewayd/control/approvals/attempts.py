"""Which request a query waits on, or waited on: what became of a write that was held and not decided under its own query_id.

A gateway records such a query as asked and nothing more. When the agent comes back, that is another query.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from gatewayd.approvals.messages import GrantState
from gatewayd.approvals.rules import RequestStanding, status_of
from gatewayd.control.console import Console
from gatewayd.control.store.statement import Statement

KEEP: Final = Statement(
    "INSERT INTO approval_attempts (project_id, query_id, approval_id) VALUES ($1, $2, $3)"
    " ON CONFLICT (project_id, query_id) DO UPDATE SET approval_id = excluded.approval_id"
)
FORGET: Final = Statement(
    "DELETE FROM approval_attempts WHERE project_id = $1 AND query_id IN"
    " (SELECT query_id FROM approval_attempts WHERE project_id = $1 AND query_id < $2 ORDER BY query_id LIMIT $3)"
)
HELD: Final = Statement(
    "SELECT t.query_id, a.approval_id, a.state, a.expires_ms, a.decided_name AS decided_by, a.note, a.rows_at_most, a.claimed_by,"
    " a.expiry_told_to, a.outcome FROM approval_attempts AS t JOIN approvals AS a"
    " ON a.project_id = t.project_id AND a.approval_id = t.approval_id WHERE t.project_id = $1 AND t.query_id = ANY($2)"
    " ORDER BY t.query_id LIMIT 10000"
)
CLAIMED: Final = Statement(
    "SELECT claimed_by AS query_id, approval_id, state, expires_ms, decided_name AS decided_by, note, rows_at_most, claimed_by,"
    " expiry_told_to, outcome FROM approvals WHERE project_id = $1 AND claimed_by = ANY($2) ORDER BY claimed_by LIMIT 10000"
)


class HeldWrite(msgspec.Struct, frozen=True):
    """How the request of a held query stands. `ran_as` is the query that spent the approval: this one, or a later one."""

    approval_id: str
    status: GrantState
    decided_by: str | None
    ran_as: str | None


class _Held(RequestStanding, frozen=True):
    query_id: str


async def held_writes(console: Console, project_id: str, query_ids: Iterable[str]) -> dict[str, HeldWrite]:
    """By query: of those that were held, or that spent an approval."""
    wanted = sorted(query_ids)
    if not wanted:
        return {}
    now_ms, found = console.now_ms(), {}
    for statement in (HELD, CLAIMED):
        for each in await console.store.rows(_Held, statement, project_id, wanted):
            status = status_of(each, now_ms).status
            found[each.query_id] = HeldWrite(each.approval_id, status, each.decided_by, each.claimed_by)
    return found
