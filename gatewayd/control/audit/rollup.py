"""Counts by hour, made as events arrive: what the charts and the statistics by day show. Pure, but for the statements."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

_HOUR_MS: Final = 3600 * 1000
_VALUE: Final = 200
_TABLES: Final = 64

RollupKey = tuple[int, int, str, str]
"""day (since 1970), hour, kind, value"""
Rollup = dict[RollupKey, list[int]]
"""calls, denied, failed, rows read, milliseconds in the database"""
Counted = tuple[tuple[RollupKey, ...], tuple[int, ...]]
"""The places that one event counts in, and what it adds in each."""

ADD: Final = Statement(
    "INSERT INTO rollups (project_id, day, hour, kind, value, calls, denied, failed, rows_read, exec_ms)"
    " SELECT $1::uuid, d, h, k, v, c, n, f, r, e FROM unnest($2::int[], $3::int[], $4::text[], $5::text[], $6::bigint[],"
    " $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[]) AS new (d, h, k, v, c, n, f, r, e)"
    " ON CONFLICT (project_id, day, hour, kind, value) DO UPDATE SET calls = rollups.calls + excluded.calls,"
    " denied = rollups.denied + excluded.denied, failed = rollups.failed + excluded.failed,"
    " rows_read = rollups.rows_read + excluded.rows_read, exec_ms = rollups.exec_ms + excluded.exec_ms"
)
BY_DAY: Final = Statement(
    "SELECT day, value, sum(calls)::bigint AS calls, sum(denied)::bigint AS denied, sum(failed)::bigint AS failed,"
    " sum(rows_read)::bigint AS rows_read, sum(exec_ms)::bigint AS exec_ms FROM rollups WHERE project_id = $1 AND kind = $2"
    " AND day >= $3 AND day <= $4 GROUP BY day, value ORDER BY day DESC, calls DESC, value LIMIT 5000"
)
BY_HOUR: Final = Statement(
    "SELECT day, hour, value, calls, denied, failed, rows_read, exec_ms FROM rollups WHERE project_id = $1 AND kind = $2"
    " AND day >= $3 AND day <= $4 ORDER BY day DESC, hour DESC, value LIMIT 5000"
)
FORGET: Final = Statement("DELETE FROM rollups WHERE project_id = $1 AND day < $2")


class DayCount(msgspec.Struct, frozen=True):
    """`day` is days since 1970, UTC. `exec_ms` is time in the database."""

    day: int
    value: str
    calls: int
    denied: int
    failed: int
    rows_read: int
    exec_ms: int


class HourCount(msgspec.Struct, frozen=True):
    day: int
    hour: int
    value: str
    calls: int
    denied: int
    failed: int
    rows_read: int
    exec_ms: int


def counted(ts: int, kind: str, database: str, agent: str | None, token: str | None, payload: Mapping[str, Any]) -> Counted:
    """What one event adds. A call is counted where it is decided; its rows and times where it ends."""
    if kind not in ("DECIDED", "EXECUTED", "FAILED") or payload.get("preview_of") is not None:
        return (), ()
    hours = ts // _HOUR_MS
    values = [("all", "all"), ("database", database), ("agent", agent or ""), ("token", token or "")]
    if kind == "DECIDED":
        values.append(("decision", str(payload.get("decision"))))
        if isinstance(rule := payload.get("policy_rule"), str):
            values.append(("rule", rule))
        tables = payload.get("tables_touched")
        values += [("table", str(each)) for each in tables[:_TABLES]] if isinstance(tables, list) else []
        added = (1, int(payload.get("decision") == "DENY"), 0, 0, 0)
    else:
        added = (0, 0, int(kind == "FAILED"), _number(payload.get("rows_returned")), _number(payload.get("exec_ms")))
    keys = tuple((hours // 24, hours % 24, name, value[:_VALUE].replace("\0", "\ufffd")) for name, value in values)
    return keys, added


def summed(events: Iterable[Counted]) -> Rollup:
    found: Rollup = {}
    for keys, added in events:
        for key in keys:
            total = found.setdefault(key, [0, 0, 0, 0, 0])
            for place, each in enumerate(added):
                total[place] += each
    return found


async def add(tx: Transaction, project_id: str, rollup: Rollup) -> None:
    """In the order of the keys, so that two batches never wait for each other in a circle."""
    if not rollup:
        return
    keys = sorted(rollup)
    columns = [list(each) for each in zip(*keys, strict=True)]
    sums = [list(each) for each in zip(*(rollup[key] for key in keys), strict=True)]
    await tx.run(ADD, project_id, *columns, *sums)


def _number(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else 0
