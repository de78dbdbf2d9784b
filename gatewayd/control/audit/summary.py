"""What a list shows of one query: its events put together. Pure."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from gatewayd.control.approvals.attempts import HeldWrite
from gatewayd.control.audit.filter_keys import tables_of
from gatewayd.control.audit.stored import StoredEvent

Outcome = Literal["undecided", "denied", "running", "executed", "failed", "other"]
"""`undecided`: not decided under this id (`held` says what is known), `running`: allowed and not closed, `other`: a row that
belongs to no call."""


class QuerySummary(msgspec.Struct, frozen=True):
    """`sql` is None where it was erased or never left the gateway; without its constants where `is_redacted`. `held` is there
    for a query that waited for a person, or that a person let run."""

    query_id: str
    gateway_id: str
    ts: int
    database: str
    outcome: Outcome
    agent_name: str | None
    agent_version: str | None
    token_id: str | None
    intent: str | None
    sql: str | None
    is_redacted: bool
    fingerprint: str | None
    statement_type: str | None
    decision: str | None
    rule: str | None
    reason: str | None
    tables: list[str]
    rows: int | None
    exec_ms: int | None
    error: str | None
    preview_of: str | None
    unproved: bool
    held: HeldWrite | None = None


def summary_of(events: Sequence[StoredEvent]) -> QuerySummary:
    """`events` of one query, at least one, by id."""
    first = events[0]
    by_type = {each.event_type: each.facts for each in events}
    asked, decided = by_type.get("ATTEMPTED", {}), by_type.get("DECIDED", {})
    executed, failed = by_type.get("EXECUTED", {}), by_type.get("FAILED", {})
    closing = executed or failed
    return QuerySummary(
        query_id=first.query_id,
        gateway_id=first.gateway_id,
        ts=first.ts,
        database=first.database_name,
        outcome=_outcome(by_type, decided),
        agent_name=first.agent_name,
        agent_version=first.agent_version,
        token_id=first.token_id,
        intent=_text(asked.get("agent_intent")),
        sql=_statement(events, asked),
        is_redacted="statement" in asked,
        fingerprint=_text(asked.get("sql_fingerprint")),
        statement_type=_text(decided.get("statement_type")),
        decision=_text(decided.get("decision")),
        rule=_text(decided.get("policy_rule")),
        reason=_text(decided.get("reason")),
        tables=tables_of(decided),
        rows=_number(executed.get("rows_returned", executed.get("rows_affected"))),
        exec_ms=_number(closing.get("exec_ms")),
        error=_text(failed.get("error_class")),
        preview_of=_text(asked.get("preview_of")),
        unproved=any(each.unproved for each in events),
    )


def _outcome(by_type: dict[str, Any], decided: dict[str, Any]) -> Outcome:
    if "FAILED" in by_type:
        return "failed"
    if "EXECUTED" in by_type:
        return "executed"
    if decided:
        return "denied" if decided.get("decision") == "DENY" else "running"
    return "undecided" if "ATTEMPTED" in by_type else "other"


def _statement(events: Sequence[StoredEvent], asked: dict[str, Any]) -> str | None:
    """Erased details read as empty: an empty statement is one whose details are held."""
    found = _text(asked.get("statement")) or _text(asked.get("sql_raw"))
    is_held = any(each.event_type == "ATTEMPTED" and each.is_whole for each in events)
    return "" if found is None and is_held and asked.get("sql_raw") == "" else found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
