"""The audit for scripts: search, one query with its proofs, statistics, exports. Filters are in the address."""

from typing import Final

import msgspec

from gatewayd.control.audit.asked import (
    events_of_query,
    find_events_page,
    find_page,
    next_address,
    proof_of,
    proof_or_why_not,
    query_of,
    summaries,
)
from gatewayd.control.audit.export import ExportedQuery, as_lines, queries_as_csv
from gatewayd.control.audit.one_query import OneQuery
from gatewayd.control.audit.proof_text import Proof
from gatewayd.control.audit.rollup import BY_DAY, BY_HOUR, DayCount, HourCount
from gatewayd.control.audit.search import FoundEvents, FoundPage
from gatewayd.control.store.days import day_number, day_of
from gatewayd.control.web.answer import Answer, Refusal, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.csv_file import ROWS_MOST, csv_file
from gatewayd.control.web.route import Route

PROVED_ROWS: Final = 100
_ALL: Final = "/api/v1/projects/<project>/audit"
KINDS: Final = ("all", "agent", "token", "database", "decision", "rule", "table")
_DAYS: Final = 7


class Statistics(msgspec.Struct, frozen=True):
    """By day, the newest first, and within it by the number of calls. Days are days since 1970, UTC."""

    kind: str
    days: list[DayCount]


class HourStatistics(msgspec.Struct, frozen=True):
    kind: str
    hours: list[HourCount]


async def _search(call: Call) -> Answer:
    return json(await find_page(call))


async def _one(call: Call) -> Answer:
    return json(await query_of(call, await events_of_query(call)))


async def _proof(call: Call) -> Answer:
    return json(await proof_of(call))


async def _statistics(call: Call) -> Answer:
    kind, first, last = asked_days(call)
    store, project_id = call.console.store, call.project.project_id
    if call.incoming.query.get("by") == "hour":
        hours = await store.rows(HourCount, BY_HOUR, project_id, kind, first, last)
        return json(HourStatistics(kind, hours))
    return json(Statistics(kind, await store.rows(DayCount, BY_DAY, project_id, kind, first, last)))


def asked_days(call: Call) -> tuple[str, int, int]:
    query = call.incoming.query
    kind = query.get("kind", "all")
    if kind not in KINDS:
        raise Refusal(400, f"kind: expected one of {', '.join(KINDS)}")
    last = day_number(day_of(call.console.now_ms()))
    days = query.get("days", str(_DAYS))
    if not (days.isascii() and days.isdigit() and 0 < int(days[:6]) <= 400):
        raise Refusal(400, "days: expected a number from 1 to 400")
    return kind, last - int(days[:6]) + 1, last


async def export(call: Call) -> Answer:
    """A page of an export; `Link: <…>; rel="next"` leads to the next one, which for CSV has no line of names."""
    query = call.incoming.query
    kind, has_proofs = query.get("format", "csv"), query.get("proofs") == "1"
    if kind not in ("csv", "lines"):
        raise Refusal(400, "format: expected csv or lines")
    found = await find_events_page(call, PROVED_ROWS if has_proofs else ROWS_MOST)
    following = next_address(call, found.next) if found.next is not None else None
    if kind == "csv":
        queries = await summaries(call, found.queries)
        return csv_file("audit", queries_as_csv(queries, with_head=not query.get("cursor")), following)
    body = as_lines(await _lines(call, found, has_proofs=has_proofs))
    answer = Answer(200, body, "application/jsonl", (("Content-Disposition", 'attachment; filename="audit.lines"'),))
    return answer if following is None else answer.with_header("Link", f'<{following}>; rel="next"')


async def _lines(call: Call, found: FoundEvents, *, has_proofs: bool) -> list[ExportedQuery]:
    lines = []
    for events in found.queries:
        proof, why_not = await proof_or_why_not(call, events) if has_proofs else (None, None)
        lines.append(ExportedQuery(await query_of(call, events), proof, why_not))
    return lines


ROUTES: Final = (
    Route(
        "GET", _ALL, _search, door="key", right="project.audit", answer=FoundPage,
        summary="queries, newest first; filters and cursor in the address",
    ),
    Route("GET", f"{_ALL}/queries/<query>", _one, door="key", right="project.audit", answer=OneQuery, summary="one query"),
    Route(
        "GET", f"{_ALL}/queries/<query>/proof", _proof, door="key", right="project.audit", answer=Proof,
        summary="its proofs, for `gatewayd audit verify-proof`",
    ),
    Route(
        "GET", f"{_ALL}/statistics", _statistics, door="key", right="project.audit", answer=Statistics,
        summary="counts by day, or by=hour; kind and days in the address",
    ),
    Route("GET", f"{_ALL}/export", export, door="key", right="project.audit", summary="CSV or JSON lines, with proofs=1 too"),
)  # fmt: skip
