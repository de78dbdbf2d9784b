"""The audit for people and scripts: search, one query with its proofs, the newest, statistics, exports. Filters are
in the address."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from gatewayd.control.audit.export import ExportedQuery, as_csv, as_lines
from gatewayd.control.audit.one_query import OneQuery, find_events, shown
from gatewayd.control.audit.proof_text import NoProof, Proof, prove
from gatewayd.control.audit.rollup import BY_DAY, BY_HOUR, DayCount, HourCount
from gatewayd.control.audit.search import BadSearch, Filters, FoundPage, search
from gatewayd.control.audit.stored import StoredEvent
from gatewayd.control.store.days import day_number, day_of
from gatewayd.control.web.answer import Answer, Refusal, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

EXPORT_ROWS: Final = 2000
PROVED_ROWS: Final = 100
_PAGE: Final = "audit/pages/audit.html"
_ONE_PAGE: Final = "audit/pages/query.html"
_ALL: Final = "/api/v1/projects/<project>/audit"
_PAGES: Final = "/projects/<project>/audit"
_KINDS: Final = ("all", "agent", "token", "database", "decision", "rule", "table")
_DAYS: Final = 7


class Statistics(msgspec.Struct, frozen=True):
    """By day, the newest first, and within it by the number of calls. Days are days since 1970, UTC."""

    kind: str
    days: list[DayCount]


class HourStatistics(msgspec.Struct, frozen=True):
    kind: str
    hours: list[HourCount]


async def _search(call: Call) -> Answer:
    return json(await _found(call))


async def _found(call: Call, rows: int = 50) -> FoundPage:
    query = call.incoming.query
    try:
        return await search(
            call.console.store,
            call.project.project_id,
            filters_of(query),
            call.console.now_ms(),
            query.get("cursor") or None,
            rows=rows,
        )
    except BadSearch as bad:
        raise Refusal(400, str(bad)) from None


def filters_of(query: Mapping[str, str]) -> Filters:
    """The filters in an address; empty ones, as a form sends them, ask for nothing. Raises Refusal."""
    names = {field.name for field in msgspec.structs.fields(Filters)}
    given = {name: value for name, value in query.items() if name in names and value != ""}
    try:
        return msgspec.convert(given, Filters, strict=False)
    except msgspec.ValidationError as wrong:
        raise Refusal(400, str(wrong)) from None


async def _list_page(call: Call) -> Answer:
    query = {name: value for name, value in call.incoming.query.items() if value and name != "cursor"}
    return page(call, _PAGE, found=await _found(call), filters=query)


async def _one(call: Call) -> Answer:
    return json(shown(await _events(call)))


async def _one_page(call: Call) -> Answer:
    events = await _events(call)
    proof, why_not = await _proof(call, events)
    return page(call, _ONE_PAGE, query=shown(events), proof=proof, why_not=why_not)


async def _proof_json(call: Call) -> Answer:
    proof, why_not = await _proof(call, await _events(call))
    if proof is None:
        raise Refusal(409, why_not or "")
    return json(proof)


async def _proof_file(call: Call) -> Answer:
    proof, why_not = await _proof(call, await _events(call))
    if proof is None:
        raise Refusal(409, why_not or "")
    name = f"{call.args['query'].upper()}.proof"
    headers = (("Content-Disposition", f'attachment; filename="{name}"'),)
    return Answer(200, proof.text.encode(), "text/plain; charset=utf-8", headers)


async def _events(call: Call) -> list[StoredEvent]:
    events = await find_events(call.console.store, call.project.project_id, call.args["query"])
    if not events:
        raise Refusal(404, "there is nothing here")
    return events


async def _proof(call: Call, events: list[StoredEvent]) -> tuple[Proof | None, str | None]:
    try:
        return await prove(call.console, call.project.project_id, events), None
    except NoProof as none:
        return None, str(none)


async def _statistics(call: Call) -> Answer:
    kind, first, last = _asked(call)
    store, project_id = call.console.store, call.project.project_id
    if call.incoming.query.get("by") == "hour":
        hours = await store.rows(HourCount, BY_HOUR, project_id, kind, first, last)
        return json(HourStatistics(kind, hours))
    return json(Statistics(kind, await store.rows(DayCount, BY_DAY, project_id, kind, first, last)))


def _asked(call: Call) -> tuple[str, int, int]:
    query = call.incoming.query
    kind = query.get("kind", "all")
    if kind not in _KINDS:
        raise Refusal(400, f"kind: expected one of {', '.join(_KINDS)}")
    last = day_number(day_of(call.console.now_ms()))
    days = query.get("days", str(_DAYS))
    if not (days.isascii() and days.isdigit() and 0 < int(days[:6]) <= 400):
        raise Refusal(400, "days: expected a number from 1 to 400")
    return kind, last - int(days[:6]) + 1, last


async def _export(call: Call) -> Answer:
    """A page of an export; `Link: <…>; rel="next"` leads to the next one, which for CSV has no line of names."""
    query = call.incoming.query
    kind, has_proofs = query.get("format", "csv"), query.get("proofs") == "1"
    if kind not in ("csv", "lines"):
        raise Refusal(400, "format: expected csv or lines")
    found = await _found(call, PROVED_ROWS if has_proofs else EXPORT_ROWS)
    if kind == "csv":
        body, content_type = as_csv(found.queries, with_head=not query.get("cursor")), "text/csv; charset=utf-8"
    else:
        body, content_type = as_lines(await _lines(call, found, has_proofs=has_proofs)), "application/jsonl"
    answer = Answer(200, body, content_type, (("Content-Disposition", f'attachment; filename="audit.{kind}"'),))
    if found.next is None:
        return answer
    rest = "&".join(f"{name}={_quoted(value)}" for name, value in query.items() if name != "cursor")
    return answer.with_header("Link", f'<{call.incoming.path}?{rest}{"&" if rest else ""}cursor={found.next}>; rel="next"')


async def _lines(call: Call, found: FoundPage, *, has_proofs: bool) -> list[ExportedQuery]:
    lines = []
    for each in found.queries:
        events = await find_events(call.console.store, call.project.project_id, each.query_id)
        if not events:
            continue  # ended meanwhile
        proof, why_not = await _proof(call, events) if has_proofs else (None, None)
        lines.append(ExportedQuery(shown(events), proof, why_not))
    return lines


def _quoted(text: str) -> str:
    return quote(text, safe="")


ROUTES: Final = (
    Route("GET", _PAGES, _list_page, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/queries/<query>", _one_page, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/queries/<query>/proof", _proof_file, door="person", right="project.audit"),
    Route("GET", f"{_PAGES}/export", _export, door="person", right="project.audit"),
    Route(
        "GET", _ALL, _search, door="key", right="project.audit", answer=FoundPage,
        summary="queries, newest first; filters and cursor in the address",
    ),
    Route("GET", f"{_ALL}/queries/<query>", _one, door="key", right="project.audit", answer=OneQuery, summary="one query"),
    Route(
        "GET", f"{_ALL}/queries/<query>/proof", _proof_json, door="key", right="project.audit", answer=Proof,
        summary="its proofs, for `gatewayd audit verify-proof`",
    ),
    Route(
        "GET", f"{_ALL}/statistics", _statistics, door="key", right="project.audit", answer=Statistics,
        summary="counts by day, or by=hour; kind and days in the address",
    ),
    Route("GET", f"{_ALL}/export", _export, door="key", right="project.audit", summary="CSV or JSON lines, with proofs=1 too"),
)  # fmt: skip
