"""The audit's pages: the list with its filters, one query with what decided it and its proof, statistics, checking a proof."""

from collections import Counter
from typing import Final

import msgspec

from gatewayd.control.audit.asked import (
    events_of_query,
    filters_of,
    find_page,
    next_address,
    proof_of,
    proof_or_why_not,
    query_of,
)
from gatewayd.control.audit.chart import by_day
from gatewayd.control.audit.decided_by import decided_by
from gatewayd.control.audit.rollup import BY_DAY, DayCount
from gatewayd.control.audit.routes import KINDS, asked_days, export
from gatewayd.control.audit.summary import summary_of
from gatewayd.control.people.person import NAMES, Named
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.days import day_from, day_number, day_of
from gatewayd.control.store.statement import Statement
from gatewayd.control.tokens.token import MOST, OF_PROJECT, Token
from gatewayd.control.web.answer import Answer, Refusal
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.times import in_zone

_LIST: Final = "audit/pages/audit.html"
_ONE: Final = "audit/pages/query.html"
_STATISTICS: Final = "audit/pages/statistics.html"
_VERIFY: Final = "audit/pages/verify.html"
_PAGES: Final = "/projects/<project>/audit"
_LISTED: Final = 40_000
"""Characters of a statement: the list shows fewer, and fifty whole ones are fifty megabytes."""
_CHART_DAYS: Final = 14
_VALUES: Final = 50
_REFUSED_AGENTS: Final = 8
_TEXT: Final = "text/plain; charset=utf-8"

DATABASES: Final = Statement("SELECT name FROM databases WHERE project_id = $1 ORDER BY name LIMIT 1000")


class _Name(msgspec.Struct, frozen=True):
    name: str


async def _list(call: Call) -> Answer:
    store, project_id = call.console.store, call.project.project_id
    found = await find_page(call, most=_LISTED)
    filters = {name: value for name, value in call.incoming.query.items() if value and name not in ("cursor", "live")}
    tokens = await store.rows(Token, OF_PROJECT, project_id, FIRST_ID, MOST)
    last = day_number(day_of(call.console.now_ms()))
    counts = await store.rows(DayCount, BY_DAY, project_id, "all", last - _CHART_DAYS + 1, last)
    agents = await store.rows(DayCount, BY_DAY, project_id, "agent", last - 1, last)
    people = await store.rows(Named, NAMES, sorted({each.person_id for each in tokens}))
    return page(
        call, _LIST, found=found, filters=filters, times=_times(call, filters),
        tokens={each.token_id: each.name for each in tokens},
        people=[(each.person_id, each.name) for each in people],
        databases=[each.name for each in await store.rows(_Name, DATABASES, project_id)],
        chart=by_day(f"/projects/{project_id}", counts, last - _CHART_DAYS + 1, last),
        refused=_refused(agents), yesterday=f"{day_from(last - 1)}T00:00Z",
        next=next_address(call, found.next) if found.next is not None else None,
        is_live="live" in call.incoming.query and not call.incoming.query.get("cursor"),
    )  # fmt: skip


def _refused(counts: list[DayCount]) -> list[tuple[str, int]]:
    """Agents whose calls were refused, and how many were, the most first. Unnamed ones cannot be filtered for."""
    denied: Counter[str] = Counter()
    for each in counts:
        if each.value and each.denied:
            denied[each.value] += each.denied
    return denied.most_common(_REFUSED_AGENTS)


def _times(call: Call, filters: dict[str, str]) -> dict[str, str]:
    """The two times in the reader's zone, as their fields take them."""
    read = filters_of(filters, call.person.zone)
    found = {"since": read.since_ms, "until": read.until_ms}
    return {name: f"{in_zone(ms, call.person.zone):%Y-%m-%dT%H:%M}" for name, ms in found.items() if ms is not None}


async def _one(call: Call) -> Answer:
    events = await events_of_query(call)
    query = await query_of(call, events)
    proof, why_not = await proof_or_why_not(call, events)
    by = await decided_by(call.console, call.project.project_id, query.summary, query.bundle)
    tokens = await call.console.store.rows(Token, OF_PROJECT, call.project.project_id, FIRST_ID, MOST)
    token = next((each for each in tokens if each.token_id == query.summary.token_id), None)
    return page(call, _ONE, query=query, proof=proof, why_not=why_not, by=by, token=token, now_ms=call.console.now_ms())


async def _statement(call: Call) -> Answer:
    """The whole statement, as a file: a page shows its beginning."""
    sql = summary_of(await events_of_query(call)).sql
    if sql is None:
        raise Refusal(404, "the text is not held here: it was erased, or never left its gateway")
    headers = (("Content-Disposition", f'attachment; filename="{call.args["query"].upper()}.sql"'),)
    return Answer(200, sql.encode(), _TEXT, headers)


async def _proof(call: Call) -> Answer:
    proof = await proof_of(call)
    headers = (("Content-Disposition", f'attachment; filename="{call.args["query"].upper()}.proof"'),)
    return Answer(200, proof.text.encode(), _TEXT, headers)


async def _statistics(call: Call) -> Answer:
    kind, first, last = asked_days(call)
    store, project_id = call.console.store, call.project.project_id
    whole = await store.rows(DayCount, BY_DAY, project_id, "all", first, last)
    by_value: dict[str, list[int]] = {}
    for each in await store.rows(DayCount, BY_DAY, project_id, kind, first, last):
        sums = by_value.setdefault(each.value, [0, 0, 0, 0, 0])
        for place, number in enumerate((each.calls, each.denied, each.failed, each.rows_read, each.exec_ms)):
            sums[place] += number
    rows = sorted(by_value.items(), key=lambda each: -each[1][0])
    return page(
        call, _STATISTICS, kind=kind, kinds=KINDS, days=last - first + 1, rows=rows[:_VALUES], left_out=len(rows) - _VALUES,
        chart=by_day(f"/projects/{project_id}", whole, first, last),
    )  # fmt: skip


async def _verify(call: Call) -> Answer:
    return page(call, _VERIFY, query="", proof="", trusted="")


async def _verify_one(call: Call) -> Answer:
    proof = await proof_of(call)
    return page(call, _VERIFY, query=call.args["query"].upper(), proof=proof.text, trusted="\n".join(proof.keys))


ROUTES: Final = (
    Route("GET", _PAGES, _list, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/queries/<query>", _one, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/queries/<query>/statement", _statement, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/queries/<query>/proof", _proof, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/queries/<query>/verify", _verify_one, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/statistics", _statistics, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/export", export, door="person", right="project.audit"),
    Route("GET", "/verify", _verify, door="open"),
)
