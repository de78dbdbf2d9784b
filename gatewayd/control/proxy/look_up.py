"""What the store says of an agent's token and its project: one transaction for a token that was not asked for lately."""

from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.databases.database import OF_PROJECT as DATABASES
from gatewayd.control.databases.database import Database, address_of
from gatewayd.control.engines.engine import Wanted
from gatewayd.control.keyring.sealing import Unsealable
from gatewayd.control.projects.find import FIND as FIND_PROJECT
from gatewayd.control.projects.find import Project
from gatewayd.control.proxy.agents import Admission, ProjectNow
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.day_use import day_of, used_up_of
from gatewayd.control.tokens.token import find_token

CALLS: Final = Statement("SELECT calls FROM token_use WHERE project_id = $1 AND token_id = $2 AND day = $3")
CUT: Final = Statement(
    "SELECT standing FROM gateways WHERE project_id = $1 AND engine_replica = $2 AND standing IN ('cut', 'duplicated') LIMIT 1"
)

Found = tuple[Admission, Project, list[Database], bool]


async def look_up(console: Console, text: str, now_s: float) -> Admission | None:
    """None for a token that is unknown, over or revoked. Raises StoreUnavailable."""
    now_ms, replica = console.now_ms(), console.engines.replica

    async def work(tx: Transaction) -> Found | None:
        found = await find_token(tx, console, text, now_ms)
        if found is None:
            return None
        place, token = found
        project = await tx.row(Project, FIND_PROJECT, place.org_id, place.project_id)
        if project is None:
            return None
        day, calls_left = day_of(now_ms), None
        if token.calls_a_day is not None:
            calls_left = token.calls_a_day - int(await tx.value(CALLS, place.project_id, place.id, day) or 0)
        by_rows = msgspec.structs.replace(token, calls_a_day=None)
        has_read_all = bool(await used_up_of(tx, place.project_id, [by_rows], now_ms))
        is_cut = replica is not None and await tx.value(CUT, place.project_id, replica) is not None
        databases = await tx.rows(Database, DATABASES, place.project_id)
        return Admission(token.token_id, project.project_id, day, calls_left, has_read_all), project, databases, is_cut

    found = await console.store.transaction(work)
    if found is None:
        return None
    admission, project, databases, is_cut = found
    console.agents.learn(project.project_id, _now(console, project, databases, now_s, is_cut=is_cut))
    return admission


def _now(console: Console, project: Project, databases: list[Database], now_s: float, *, is_cut: bool) -> ProjectNow:
    known = console.agents.known(project.project_id)
    sealed = tuple((each.name, each.sealed_url) for each in databases if each.sealed_url is not None)
    wanted, is_unsealable = None, False
    if known is not None and known.sealed == sealed:
        wanted, is_unsealable = known.wanted, known.is_unsealable
    elif sealed:
        try:
            opened = {each.name: address_of(console, project.project_id, each) for each in databases}
            addresses = {name: url for name, url in opened.items() if url is not None}
            wanted = Wanted(project.org_id, project.project_id, addresses)
        except Unsealable:
            is_unsealable = True
    return ProjectNow(now_s, project.state == "paused", is_cut, is_unsealable, sealed, wanted)
