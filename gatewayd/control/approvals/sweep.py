"""Removes what has ended: pending requests that expired; requests, attempts and claims older than the project keeps its audit.
By one replica at a time. No answer depends on it."""

from functools import partial
from typing import Final

import trio

from gatewayd.audit.ids import new_ulid
from gatewayd.control.approvals import attempts
from gatewayd.control.approvals.requests import drop_expired
from gatewayd.control.audit.retention import kept_projects
from gatewayd.control.console import Console
from gatewayd.control.store.lease import run_leased
from gatewayd.control.store.statement import Statement

EVERY_S: Final = 60.0
_CHUNK: Final = 1000
_DAY_MS: Final = 86_400_000

FORGET: Final = Statement(
    "DELETE FROM approvals WHERE project_id = $1 AND approval_id IN"
    " (SELECT approval_id FROM approvals WHERE project_id = $1 AND approval_id < $2 ORDER BY approval_id LIMIT $3)"
)
FORGET_CLAIMS: Final = Statement(
    "DELETE FROM approval_claims WHERE project_id = $1 AND query_id IN"
    " (SELECT query_id FROM approval_claims WHERE project_id = $1 AND query_id < $2 ORDER BY query_id LIMIT $3)"
)
FORGET_VOTES: Final = Statement(
    "DELETE FROM approval_votes WHERE project_id = $1 AND approval_id IN"
    " (SELECT approval_id FROM approval_votes WHERE project_id = $1 AND approval_id < $2 ORDER BY approval_id LIMIT $3)"
)


async def sweep_approvals(console: Console) -> None:
    """The service."""

    async def work(_fence: int) -> None:
        await sweep(console)
        await trio.sleep(EVERY_S)

    await run_leased(console.store, "approvals sweep", console.replica, work)


async def sweep(console: Console) -> None:
    """One round. What is kept for a day is at least two days old when it goes: a request lasts for up to one."""
    now_ms = console.now_ms()
    for project in await kept_projects(console):
        drop = partial(drop_expired, org_id=project.org_id, project_id=project.project_id, now_ms=now_ms)
        await console.store.transaction(drop)
        before = new_ulid(max(0, now_ms - (project.retention_days + 1) * _DAY_MS), bytes)
        for statement in (FORGET, FORGET_CLAIMS, FORGET_VOTES, attempts.FORGET):
            while await console.store.run(statement, project.project_id, before, _CHUNK) >= _CHUNK:
                pass
