"""What was asked on a day, counted as events arrive: one row for each kind of statement, agent and answer.

A new policy is tried on these (`policies/flips.py`), so that a week of a million calls is as many decisions as there are kinds of
statements.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from gatewayd.control.audit.filter_keys import tables_of
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

KEPT_DAYS: Final = 8
"""A week, and the day that has begun."""
_NAME: Final = 200

ADD: Final = Statement(
    "INSERT INTO statement_days (project_id, day, kind, database_name, fingerprint, agent_name, decision, rule, approved, tables,"
    " query_id, last_ms, calls) SELECT $1::uuid, $2::int, k, d, f, a, n, r, p, t, q, m, c FROM unnest($3::bytea[], $4::text[],"
    " $5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::text[], $11::uuid[], $12::bigint[], $13::bigint[])"
    " AS new (k, d, f, a, n, r, p, t, q, m, c) ON CONFLICT (project_id, day, kind) DO UPDATE SET"
    " calls = statement_days.calls + excluded.calls, tables = excluded.tables, query_id = excluded.query_id,"
    " last_ms = excluded.last_ms"
)
FORGET: Final = Statement("DELETE FROM statement_days WHERE project_id = $1 AND day < $2")


class StatementCall(msgspec.Struct, frozen=True):
    """One call, as far as it is counted here."""

    database: str
    fingerprint: str
    agent: str
    decision: str
    rule: str
    approved: bool
    tables: str
    query_id: str
    ts: int

    @property
    def kind(self) -> bytes:
        parts = (self.database, self.fingerprint, self.agent, self.decision, self.rule, str(self.approved))
        return blake2b(msgspec.json.encode(parts), digest_size=16).digest()


def call_of(
    event_type: str, database: str, agent: str | None, query_id: str, ts: int, fingerprint: str | None, payload: Mapping[str, Any]
) -> StatementCall | None:
    """What one event counts as. A call is counted where it is decided; where a mask then refused it, once more as WITHHELD.
    Previews, which gateways make themselves, are not counted."""
    if payload.get("preview_of") is not None:
        return None
    decision, rule, approved = str(payload.get("decision")), payload.get("policy_rule"), payload.get("approved_by") is not None
    if event_type == "FAILED" and payload.get("masking_stage") is not None:
        decision, rule, approved = "WITHHELD", "column_masking", False
    elif event_type != "DECIDED" or decision not in ("ALLOW", "DENY"):
        return None
    tables = msgspec.json.encode(tables_of(payload)).decode()
    names = (_name(fingerprint), _name(agent), decision, _name(rule))
    return StatementCall(database, *names, approved, tables, query_id, ts)


def _name(value: object) -> str:
    """As the store can hold it: bounded, without NUL; "" for what is no text."""
    return value[:_NAME].replace("\0", "\ufffd") if isinstance(value, str) else ""


async def add(tx: Transaction, project_id: str, day: int, calls: Iterable[StatementCall | None]) -> None:
    """In the order of the keys, so that two batches never wait for each other in a circle."""
    found: dict[bytes, tuple[StatementCall, int]] = {}
    for call in calls:
        if call is not None:
            kind = call.kind
            found[kind] = call, found[kind][1] + 1 if kind in found else 1
    if not found:
        return
    rows = [
        (
            kind, call.database, call.fingerprint, call.agent, call.decision, call.rule, call.approved, call.tables,
            call.query_id, call.ts, count,
        )
        for kind, (call, count) in sorted(found.items(), key=lambda each: each[0])
    ]  # fmt: skip
    await tx.run(ADD, project_id, day, *([*column] for column in zip(*rows, strict=True)))
