"""Tells of gateways that are not heard any more: once for each silence, by one replica at a time.

Those that run here are left out: an engine that nobody calls is stopped, and says nothing then.
"""

from functools import partial
from typing import Final

import msgspec
import trio

from gatewayd.control.audit.retention import kept_projects
from gatewayd.control.console import Console
from gatewayd.control.gateways.fleet import SILENT_MS
from gatewayd.control.notifications.sources import tell_gateway
from gatewayd.control.store.lease import run_leased
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

EVERY_S: Final = 30.0
_AT_ONCE: Final = 100

SILENT: Final = Statement(
    "SELECT g.gateway_id, g.seen_ms FROM gateways AS g LEFT JOIN gateway_silences AS s ON s.project_id = g.project_id"
    " AND s.gateway_id = g.gateway_id WHERE g.project_id = $1 AND g.standing = 'active' AND g.engine_replica IS NULL"
    " AND g.seen_ms < $2 AND (s.seen_ms IS NULL OR s.seen_ms < g.seen_ms) ORDER BY g.gateway_id LIMIT $3"
)
NOTE: Final = Statement(
    "INSERT INTO gateway_silences (project_id, gateway_id, seen_ms) VALUES ($1, $2, $3)"
    " ON CONFLICT (project_id, gateway_id) DO UPDATE SET seen_ms = excluded.seen_ms"
    " WHERE gateway_silences.seen_ms < excluded.seen_ms"
)


class _Silent(msgspec.Struct, frozen=True):
    gateway_id: str
    seen_ms: int


async def watch_silence(console: Console) -> None:
    """The service."""

    async def work(_fence: int) -> None:
        await look(console)
        await trio.sleep(EVERY_S)

    await run_leased(console.store, "silent gateways", console.replica, work)


async def look(console: Console) -> None:
    """One round."""
    for project in await kept_projects(console):
        work = partial(_look, org_id=project.org_id, project_id=project.project_id, now_ms=console.now_ms())
        while await console.store.transaction(partial(work, event_ids=[console.new_id() for _ in range(_AT_ONCE)])) == _AT_ONCE:
            pass


async def _look(tx: Transaction, *, org_id: str, project_id: str, now_ms: int, event_ids: list[str]) -> int:
    silent = await tx.rows(_Silent, SILENT, project_id, now_ms - SILENT_MS, _AT_ONCE)
    for each, event_id in zip(silent, event_ids, strict=False):
        if await tx.run(NOTE, project_id, each.gateway_id, each.seen_ms):
            await tell_gateway(tx, org_id, project_id, each.gateway_id, "gateway.silent", event_id, now_ms)
    return len(silent)
