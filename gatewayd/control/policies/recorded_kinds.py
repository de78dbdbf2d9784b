"""The kinds of statements of the last week, most frequent first, and the text of one call of each."""

from collections import Counter
from typing import Final, Literal

import msgspec

from gatewayd.control.audit.statement_days import KEPT_DAYS
from gatewayd.control.console import Console
from gatewayd.control.store.days import DAYS, day_from, day_number, day_of
from gatewayd.control.store.statement import DayStatement, Statement
from gatewayd.policy.tools.replay import Recorded

KINDS_MOST: Final = 20_000
TEXT_MOST: Final = 100_000

KINDS: Final = Statement(
    "SELECT database_name, fingerprint, agent_name, decision, rule, approved, sum(calls)::bigint AS calls,"
    " max(last_ms) AS last_ms, max(day) AS day, (array_agg(query_id ORDER BY day DESC, last_ms DESC))[1] AS query_id,"
    " (array_agg(tables ORDER BY day DESC, last_ms DESC))[1] AS tables FROM statement_days WHERE project_id = $1 AND day >= $2"
    " GROUP BY database_name, fingerprint, agent_name, decision, rule, approved"
    " ORDER BY calls DESC, database_name, fingerprint, agent_name, decision, rule, approved LIMIT $3"
)
CALLS: Final = Statement(
    "SELECT coalesce(sum(calls), 0)::bigint FROM statement_days WHERE project_id = $1 AND day >= $2 AND decision <> 'WITHHELD'"
)
TEXTS: Final = DayStatement(
    "SELECT e.query_id, CASE WHEN length(d.details) <= $3 THEN d.details END AS details FROM {events} AS e JOIN {details} AS d"
    " ON d.project_id = e.project_id AND d.gateway_id = e.gateway_id AND d.instance = e.instance AND d.seq = e.seq"
    " AND d.project_id = $1 WHERE e.project_id = $1 AND e.query_id = ANY($2) AND e.event_type = 'ATTEMPTED' LIMIT 10000"
)


class Kind(msgspec.Struct, frozen=True):
    """Calls that were alike. `query_id` is the newest of them, received on `day`."""

    database_name: str
    fingerprint: str
    agent_name: str
    decision: Literal["ALLOW", "DENY", "WITHHELD"]
    rule: str
    approved: bool
    calls: int
    last_ms: int
    day: int
    query_id: str
    tables: str

    def recorded(self, sql: str) -> Recorded:
        decision: Literal["ALLOW", "DENY"] = "ALLOW" if self.decision == "ALLOW" else "DENY"
        tables = msgspec.json.decode(self.tables, type=tuple[str, ...])
        return Recorded(
            self.query_id, self.last_ms, self.database_name, self.agent_name or None, sql, self.fingerprint, decision,
            self.rule or None, tables, self.approved, self.calls,
        )  # fmt: skip


class Week(msgspec.Struct, frozen=True):
    """`calls` are all of the week, those of kinds that are left out too."""

    since_day: int
    calls: int
    kinds: list[Kind]


class _Text(msgspec.Struct, frozen=True):
    query_id: str
    details: str | None


class _Asked(msgspec.Struct, frozen=True):
    sql_raw: str | None = None


class _Day(msgspec.Struct, frozen=True):
    day: int


async def week_of(console: Console, project_id: str) -> Week:
    since = day_number(day_of(console.now_ms())) - KEPT_DAYS + 1
    kinds = await console.store.rows(Kind, KINDS, project_id, since, KINDS_MOST)
    return Week(since, await console.store.value(CALLS, project_id, since), _without_withheld(kinds))


def _without_withheld(kinds: list[Kind]) -> list[Kind]:
    """What a mask refused was allowed first, and is counted as that, too: taken from there."""
    withheld: Counter[tuple[str, str, str]] = Counter()
    for kind in kinds:
        if kind.decision == "WITHHELD":
            withheld[kind.database_name, kind.fingerprint, kind.agent_name] += kind.calls
    found = []
    for kind in kinds:
        calls = kind.calls
        if kind.decision == "ALLOW":
            place = kind.database_name, kind.fingerprint, kind.agent_name
            taken = min(calls, withheld[place])
            withheld[place] -= taken
            calls -= taken
        if calls:
            found.append(kind if calls == kind.calls else msgspec.structs.replace(kind, calls=calls))
    return found


async def texts_of(console: Console, project_id: str, kinds: list[Kind]) -> dict[str, str]:
    """The SQL of each kind's newest call, by query_id, as far as it is held with its constants and not too long. Its first row
    came with the decision, or on the day before."""
    held = {each.day for each in await console.store.rows(_Day, DAYS)}
    found: dict[str, str] = {}
    for back in (0, 1):
        by_day: dict[int, list[str]] = {}
        for kind in kinds:
            if kind.query_id not in found and kind.day - back in held:
                by_day.setdefault(kind.day - back, []).append(kind.query_id)
        for day, query_ids in by_day.items():
            rows = await console.store.rows(_Text, TEXTS.on(day_from(day)), project_id, query_ids, TEXT_MOST)
            for row in rows:
                sql = msgspec.json.decode(row.details, type=_Asked).sql_raw if row.details is not None else None
                if sql is not None:
                    found[row.query_id] = sql
    return found
