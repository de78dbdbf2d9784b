"""What a request asks of the audit: the filters in its address, its page of queries, its one query, and the proof of that."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import msgspec

from gatewayd.control.approvals.attempts import held_writes
from gatewayd.control.audit.one_query import OneQuery, find_events, shown
from gatewayd.control.audit.proof_text import NoProof, Proof, prove
from gatewayd.control.audit.search import BadSearch, Filters, FoundEvents, FoundPage, search_events
from gatewayd.control.audit.stored import WHOLE, StoredEvent
from gatewayd.control.audit.summary import QuerySummary, summary_of
from gatewayd.control.web.answer import Refusal
from gatewayd.control.web.call import Call

_TIMES: Final = {"since": "since_ms", "until": "until_ms"}


def filters_of(query: Mapping[str, str], zone: str = "UTC") -> Filters:
    """The filters in an address; empty ones, as a form sends them, ask for nothing. `since` and `until` are times of `zone`, as a
    form has them: 2026-11-22T14:00. Raises Refusal."""
    names = {field.name for field in msgspec.structs.fields(Filters)}
    given: dict[str, str | int] = {name: value for name, value in query.items() if name in names and value != ""}
    for name, field in _TIMES.items():
        if value := query.get(name):
            given[field] = _milliseconds(name, value, zone)
    try:
        return msgspec.convert(given, Filters, strict=False)
    except msgspec.ValidationError as wrong:
        raise Refusal(400, str(wrong)) from None


async def find_page(call: Call, most: int = WHOLE) -> FoundPage:
    """Of long statements, the first `most` characters. Raises Refusal."""
    found = await find_events_page(call, 50, most)
    return FoundPage(await summaries(call, found.queries), found.next, found.searched_back_to)


async def summaries(call: Call, queries: Sequence[list[StoredEvent]]) -> list[QuerySummary]:
    """One for each, with what became of those that were held and not decided."""
    found = [summary_of(each) for each in queries]
    undecided = [each.query_id for each in found if each.outcome == "undecided"]
    held = await held_writes(call.console, call.project.project_id, undecided)
    return [msgspec.structs.replace(each, held=held.get(each.query_id)) for each in found]


async def find_events_page(call: Call, rows: int, most: int = WHOLE) -> FoundEvents:
    """Of long statements, the first `most` characters. Raises Refusal."""
    query = call.incoming.query
    try:
        return await search_events(
            call.console.store,
            call.project.project_id,
            filters_of(query, call.person.zone),
            call.console.now_ms(),
            query.get("cursor") or None,
            rows=rows,
            most=most,
        )
    except BadSearch as bad:
        raise Refusal(400, str(bad)) from None


def next_address(call: Call, cursor: str) -> str:
    """This address, from `cursor` on."""
    rest = {name: value for name, value in call.incoming.query.items() if name != "cursor"}
    return f"{call.incoming.path}?{urlencode(rest | {'cursor': cursor})}"


async def events_of_query(call: Call) -> list[StoredEvent]:
    """Of the query in the path. Raises Refusal 404."""
    events = await find_events(call.console.store, call.project.project_id, call.args["query"])
    if not events:
        raise Refusal(404, "there is nothing here")
    return events


async def query_of(call: Call, events: list[StoredEvent]) -> OneQuery:
    query = shown(events)
    held = await held_writes(call.console, call.project.project_id, [query.summary.query_id])
    summary = msgspec.structs.replace(query.summary, held=held.get(query.summary.query_id))
    return msgspec.structs.replace(query, summary=summary)


async def proof_or_why_not(call: Call, events: list[StoredEvent]) -> tuple[Proof | None, str | None]:
    try:
        return await prove(call.console, call.project.project_id, events), None
    except NoProof as none:
        return None, str(none)


async def proof_of(call: Call) -> Proof:
    """Of the query in the path. Raises Refusal."""
    proof, why_not = await proof_or_why_not(call, await events_of_query(call))
    if proof is None:
        raise Refusal(409, why_not or "")
    return proof


def _milliseconds(name: str, value: str, zone: str) -> int:
    try:
        local = datetime.fromisoformat(value)
        return int((local if local.tzinfo is not None else local.replace(tzinfo=ZoneInfo(zone))).timestamp() * 1000)
    except (ValueError, OSError, OverflowError, KeyError):
        raise Refusal(400, f"{name}: expected a time such as 2026-11-22T14:00") from None
