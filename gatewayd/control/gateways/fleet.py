"""What the pages and the API show of a project's gateways: one value, apart from how it is drawn."""

from typing import Final

import msgspec

from gatewayd.control.audit import findings, held
from gatewayd.control.audit.findings import Finding
from gatewayd.control.audit.held import Span
from gatewayd.control.console import Console
from gatewayd.control.gateways.gateway import OF_PROJECT, Gateway, Standing
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.link.formats.status import DatabaseStatus

SILENT_MS: Final = 120_000
"""A gateway polls every 30 s; one that was not heard for so long is shown as silent, but for engines here: idle ones stop."""
_MOST: Final = 500
STATES_ROWS: Final = 100
"""What `history` gives at a time."""

NEWEST_BUNDLE: Final = Statement("SELECT version FROM bundle_heads WHERE project_id = $1")
STATES: Final = Statement(
    "SELECT since_ms, state, bundle_version, reason FROM gateway_states WHERE project_id = $1 AND gateway_id = $2"
    " AND since_ms < $3 ORDER BY since_ms DESC LIMIT 100"
)


class GatewayShown(msgspec.Struct, frozen=True):
    """`bundle_version` is what it enforces, since `bundle_since_ms`; `reason` why it halted or does not enforce the newest.

    `audit_events` are held of its present instance, each verified when it was received, the last at
    `audit_received_ms`. `is_here`: spawned by this control plane.
    """

    id: str
    name: str
    standing: Standing
    standing_note: str | None
    state: str | None
    reason: str | None
    is_silent: bool
    seen_ms: int | None
    version: str | None
    bundle_version: int | None
    bundle_since_ms: int | None
    is_newest: bool
    databases: list[DatabaseStatus]
    audit_instance: str | None
    audit_events: int
    audit_received_ms: int | None
    key_id: str
    enrolled_ms: int
    public_urls: tuple[str, ...]
    is_here: bool


class FindingShown(msgspec.Struct, frozen=True):
    """What is wrong until somebody has seen it; `facts` say where."""

    id: str
    gateway: str
    kind: str
    facts: dict[str, str | int]
    found_ms: int


class Fleet(msgspec.Struct, frozen=True):
    newest_bundle: int
    gateways: list[GatewayShown]
    findings: list[FindingShown]


class PastState(msgspec.Struct, frozen=True):
    since_ms: int
    state: str
    bundle_version: int | None
    reason: str | None


async def fleet(console: Console, project_id: str) -> Fleet:
    now_ms = console.now_ms()

    async def work(tx: Transaction) -> Fleet:
        newest = int(await tx.value(NEWEST_BUNDLE, project_id) or 0)
        gateways = await tx.rows(Gateway, OF_PROJECT, project_id, FIRST_ID, _MOST)
        spans = {each.gateway_id: each for each in await tx.rows(Span, held.OF_PROJECT, project_id)}
        open_ones = await tx.rows(Finding, findings.OPEN, project_id)
        return Fleet(
            newest,
            [_shown(each, spans.get(each.gateway_id), newest, now_ms) for each in gateways],
            [finding_shown(each) for each in open_ones],
        )

    return await console.store.transaction(work)


async def history(console: Console, project_id: str, gateway_id: str, before_ms: int = 1 << 62) -> list[PastState]:
    """What its state was, newest first."""
    return await console.store.rows(PastState, STATES, project_id, gateway_id, before_ms)


def finding_shown(finding: Finding) -> FindingShown:
    return FindingShown(
        finding.finding_id,
        finding.gateway_id,
        finding.kind,
        msgspec.json.decode(finding.body, type=dict[str, str | int]),
        finding.found_ms,
    )


def _shown(gateway: Gateway, span: Span | None, newest: int, now_ms: int) -> GatewayShown:
    return GatewayShown(
        id=gateway.gateway_id,
        name=gateway.name,
        standing=gateway.standing,
        standing_note=gateway.standing_note,
        state=gateway.state,
        reason=gateway.state_reason,
        is_silent=gateway.engine_replica is None and (gateway.seen_ms is None or now_ms - gateway.seen_ms > SILENT_MS),
        seen_ms=gateway.seen_ms,
        version=gateway.version,
        bundle_version=gateway.bundle_version,
        bundle_since_ms=gateway.bundle_since_ms,
        is_newest=gateway.bundle_version == newest,
        databases=msgspec.json.decode(gateway.reported_databases, type=list[DatabaseStatus]),
        audit_instance=span.instance if span is not None else None,
        audit_events=span.size if span is not None else 0,
        audit_received_ms=span.received_ms if span is not None else None,
        key_id=gateway.key_id,
        enrolled_ms=gateway.enrolled_ms,
        public_urls=gateway.urls,
        is_here=gateway.engine_replica is not None,
    )
