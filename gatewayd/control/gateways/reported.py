"""What a gateway says of itself in a poll, kept: its state with the time of its last change, its version, its
databases, its head."""

from typing import Final

import msgspec

from gatewayd.control.audit.witness import keep_note
from gatewayd.control.console import Console
from gatewayd.control.gateways.gateway import Gateway
from gatewayd.control.notifications.sources import tell_gateway
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.link.formats.status import DatabaseStatus, PollBody

_REASON: Final = 2000
_NAMES: Final = 200

KEEP: Final = Statement(
    "UPDATE gateways SET seen_ms = $3, state = $4, state_reason = $5, version = $6, bundle_version = $7, bundle_since_ms = $8,"
    " features = $9, reported_databases = $10 WHERE project_id = $1 AND gateway_id = $2"
)
CHANGED: Final = Statement(
    "INSERT INTO gateway_states (project_id, gateway_id, since_ms, state, bundle_version, reason) VALUES ($1, $2, $3, $4, $5, $6)"
    " ON CONFLICT (project_id, gateway_id, since_ms) DO UPDATE SET state = excluded.state,"
    " bundle_version = excluded.bundle_version, reason = excluded.reason"
)


async def keep(console: Console, org_id: str, gateway: Gateway, body: PollBody) -> None:
    now_ms, event_id = console.now_ms(), console.new_id()
    problem = body.problem
    reason = f"{problem.check}: {problem.error}"[:_REASON].replace("\0", "") if problem is not None else None
    has_moved = body.version != (gateway.bundle_version or 0)
    since_ms = now_ms if has_moved or gateway.bundle_since_ms is None else gateway.bundle_since_ms
    databases = [_bounded(each) for each in body.databases[:_NAMES]]
    values = (
        gateway.project_id,
        gateway.gateway_id,
        now_ms,
        body.state,
        reason,
        body.supports.version[:64].replace("\0", ""),
        body.version or None,
        since_ms if body.version else None,
        msgspec.json.encode(body.supports.features[:_NAMES]).decode(),
        msgspec.json.encode(databases).decode(),
    )

    async def work(tx: Transaction) -> None:
        await tx.run(KEEP, *values)
        if (body.state, reason) != (gateway.state, gateway.state_reason) or has_moved:
            await tx.run(
                CHANGED, gateway.project_id, gateway.gateway_id, now_ms, body.state, body.version or None, reason
            )  # fmt: skip
        if body.state == "halted" and gateway.state != "halted":
            await tell_gateway(tx, org_id, gateway.project_id, gateway.gateway_id, "gateway.halted", event_id, now_ms)
        if body.note is not None:
            await keep_note(tx, gateway.project_id, gateway.gateway_id, gateway.key, body.note, now_ms)

    await console.store.transaction(work)


def _bounded(status: DatabaseStatus) -> DatabaseStatus:
    return msgspec.structs.replace(status, name=status.name[:100])
