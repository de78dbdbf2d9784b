"""Retention: events past the time that their project keeps them are deleted by project; a day that no project keeps
any more is dropped
whole. Leaf hashes and heads stay, so that what is left goes on being provable. By one replica at a time."""

from datetime import timedelta
from typing import Final

import msgspec
import trio

from gatewayd.control.audit import rollup, statement_days
from gatewayd.control.console import Console
from gatewayd.control.organisation.every import every_organisation
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.days import DAYS, day_from, day_number, day_of, drop_days
from gatewayd.control.store.lease import run_leased
from gatewayd.control.store.statement import DayStatement, Statement
from gatewayd.control.store.store import Transaction

EVERY_S: Final = 3600.0
_MOST: Final = 500
_CHUNK: Final = 5000

PROJECTS: Final = Statement(
    "SELECT org_id, project_id, retention_days FROM projects WHERE org_id = $1 AND project_id > $2 ORDER BY project_id LIMIT $3"
)
FORGET_EVENTS: Final = DayStatement(
    "DELETE FROM {events} WHERE project_id = $1 AND (gateway_id, instance, seq) IN"
    " (SELECT gateway_id, instance, seq FROM {events} WHERE project_id = $1 LIMIT $2)"
)
FORGET_DETAILS: Final = DayStatement(
    "DELETE FROM {details} WHERE project_id = $1 AND (gateway_id, instance, seq) IN"
    " (SELECT gateway_id, instance, seq FROM {details} WHERE project_id = $1 LIMIT $2)"
)


class KeptProject(msgspec.Struct, frozen=True):
    org_id: str
    project_id: str
    retention_days: int


class _Day(msgspec.Struct, frozen=True):
    day: int


async def forget_audit(console: Console) -> None:
    """The service."""

    async def work(_fence: int) -> None:
        await forget(console)
        await trio.sleep(EVERY_S)

    await run_leased(console.store, "audit retention", console.replica, work)


async def forget(console: Console) -> None:
    """One round."""
    today = day_of(console.now_ms())
    longest = 0
    for project in await kept_projects(console):
        longest = max(longest, project.retention_days)
        before = today - timedelta(days=project.retention_days)
        for day in await _days(console):
            if day < day_number(before):
                for statement in (FORGET_EVENTS, FORGET_DETAILS):
                    while await console.store.run(statement.on(day_from(day)), project.project_id, _CHUNK) == _CHUNK:
                        pass
        await console.store.run(rollup.FORGET, project.project_id, day_number(before))
        kept = max(day_number(before), day_number(today) - statement_days.KEPT_DAYS + 1)
        await console.store.run(statement_days.FORGET, project.project_id, kept)
    if longest:
        await drop_days(console.store, today - timedelta(days=longest), console.now_ms())


async def kept_projects(console: Console) -> list[KeptProject]:
    """Of all organisations, deleted ones too: their events go as they would have."""
    found: list[KeptProject] = []
    for org_id in await every_organisation(console.store):
        project_id = FIRST_ID
        while projects := await console.store.rows(KeptProject, PROJECTS, org_id, project_id, _MOST):
            found += projects
            project_id = projects[-1].project_id
    return found


async def _days(console: Console) -> list[int]:
    async def work(tx: Transaction) -> list[int]:
        return [each.day for each in await tx.rows(_Day, DAYS)]

    return await console.store.transaction(work)
