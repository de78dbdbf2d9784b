"""Tokens that have used their day up are refused at gateways that agents call directly, too: a bundle says so, until midnight
UTC.

The next bundle for whatever reason says it, too; here one is issued when nothing else does it. By one replica at a time.
"""

from typing import Final

import trio

from gatewayd.control.audit.retention import KeptProject, kept_projects
from gatewayd.control.console import Console
from gatewayd.control.moment import moment
from gatewayd.control.policies.issue import NEWEST, BundleRow, issue_bundle
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.lease import run_leased
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.day_use import used_up_of
from gatewayd.control.tokens.token import LIMITED, MOST, Token
from gatewayd.link.formats.bundle import Bundle
from gatewayd.link.formats.documents import read

EVERY_S: Final = 5.0


async def hold_budgets(console: Console) -> None:
    """The service."""
    told: dict[str, frozenset[str]] = {}

    async def work(_fence: int) -> None:
        await tell_used_up(console, told)
        await trio.sleep(EVERY_S)

    await run_leased(console.store, "token budgets", console.replica, work)


async def tell_used_up(console: Console, told: dict[str, frozenset[str]]) -> None:
    """One round. `told`: by project, what this replica knows that the newest bundle says; it is only there to spare a look."""
    for project in await kept_projects(console):
        told[project.project_id] = await _told(console, project, told.get(project.project_id, frozenset()))


async def _told(console: Console, project: KeptProject, known: frozenset[str]) -> frozenset[str]:
    project_id, now = project.project_id, moment(console)

    async def work(tx: Transaction) -> frozenset[str]:
        tokens = await tx.rows(Token, LIMITED, project_id, FIRST_ID, MOST)
        valid = [token for token in tokens if token.is_valid(now.now_ms)]
        used_up = await used_up_of(tx, project_id, valid, now.now_ms)
        if used_up <= known:
            return used_up
        newest = await tx.row(BundleRow, NEWEST, project_id)
        if newest is not None and not used_up <= _said(newest, now.now_ms):
            await issue_bundle(
                tx, console, project.org_id, project_id, "a token's day is used up", now_ms=now.now_ms, issuer=now.fresh_id
            )
        return used_up

    return await console.store.transaction(work)


def _said(newest: BundleRow, now_ms: int) -> frozenset[str]:
    """The tokens that the bundle refuses now."""
    agents = read(newest.payload, Bundle).agents
    return frozenset(each.id for each in (agents.tokens if agents else ()) if (each.used_up_until or 0) > now_ms)
