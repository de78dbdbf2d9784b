"""Search: one row a query, newest day of receipt first, a page at a time. A page looks for PAGE_MS and then says how far it came.

Every filter is a hash in the array `keys`; those of a decision look through DECIDED rows, the others through
ATTEMPTED rows, of which
each query has one. A day is looked through in windows that grow, so that a rare value costs one look at the index.
"""

import time
from datetime import date
from typing import Any, Final

import msgspec

from gatewayd.audit.ids import ulid_value
from gatewayd.control.audit.filter_keys import filter_key, tables_of
from gatewayd.control.audit.statement_texts import MATCHING, pattern
from gatewayd.control.audit.stored import OF_QUERIES, WHOLE, StoredEvent
from gatewayd.control.audit.summary import QuerySummary, summary_of
from gatewayd.control.store.days import DAYS, day_from, day_number, day_of
from gatewayd.control.store.statement import DayStatement, Statement
from gatewayd.control.store.store import Store, Transaction

PAGE_ROWS: Final = 50
PAGE_MS: Final = 250
_HOUR_MS: Final = 3600 * 1000
_DAY_MS: Final = 24 * _HOUR_MS
_LAST_TS: Final = 1 << 62
_LAST_ID: Final = "7" + "Z" * 25
_FIRST_ID: Final = "0" * 26
_TEXTS: Final = 200
_CUSTOM: Final = "SET LOCAL plan_cache_mode = force_custom_plan"

RECENT: Final = DayStatement(
    "SELECT id, query_id, ts, event_type, database_name, agent_name, token_id,"
    " CASE WHEN event_type = 'DECIDED' THEN payload ELSE '' END AS payload FROM {events}"
    " WHERE project_id = $1 AND event_type = $2 AND ts >= $3 AND (ts, id) < ($4, $5::uuid) ORDER BY ts DESC, id DESC LIMIT $6"
)
KEYED: Final = DayStatement(
    "SELECT id, query_id, ts, event_type, database_name, agent_name, token_id,"
    " CASE WHEN event_type = 'DECIDED' THEN payload ELSE '' END AS payload FROM {events}"
    " WHERE project_id = $1 AND event_type = $2 AND ts >= $3 AND (ts, id) < ($4, $5::uuid) AND keys @> $7::bigint[]"
    " ORDER BY ts DESC, id DESC LIMIT $6"
)
KEYED_ANY: Final = DayStatement(
    "SELECT id, query_id, ts, event_type, database_name, agent_name, token_id,"
    " CASE WHEN event_type = 'DECIDED' THEN payload ELSE '' END AS payload FROM {events}"
    " WHERE project_id = $1 AND event_type = $2 AND ts >= $3 AND (ts, id) < ($4, $5::uuid) AND keys @> $7::bigint[]"
    " AND keys && $8::bigint[] ORDER BY ts DESC, id DESC LIMIT $6"
)
TOKENS_OF: Final = Statement("SELECT token_id FROM agent_tokens WHERE project_id = $1 AND person_id = $2 LIMIT 1000")


class Filters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a query must be; None: anything. `since_ms` and `until_ms`: its time, the second exclusive. `text`: in
    the statement without
    its constants, upper and lower case alike."""

    since_ms: int | None = None
    until_ms: int | None = None
    agent: str | None = None
    person: str | None = None
    token: str | None = None
    database: str | None = None
    decision: str | None = None
    rule: str | None = None
    table: str | None = None
    fingerprint: str | None = None
    text: str | None = None


class FoundPage(msgspec.Struct, frozen=True):
    """`next`: the cursor of the page after this one, None at the end. `searched_back_to`: the time to which a page
    that is not full has
    looked; go on with `next`."""

    queries: list[QuerySummary]
    next: str | None
    searched_back_to: int | None


class FoundEvents(msgspec.Struct, frozen=True):
    """The same with all that is held of each query, in the order of their summaries."""

    queries: list[list[StoredEvent]]
    next: str | None
    searched_back_to: int | None


class BadSearch(ValueError):
    """A filter or cursor that is none; the text names it."""


class _Hit(msgspec.Struct, frozen=True):
    id: str
    query_id: str
    ts: int
    event_type: str
    database_name: str
    agent_name: str | None
    token_id: str | None
    payload: str  # of a DECIDED row alone: one of ATTEMPTED may hold a statement


class _Day(msgspec.Struct, frozen=True):
    day: int


class _Fingerprint(msgspec.Struct, frozen=True):
    fingerprint: str


class _Token(msgspec.Struct, frozen=True):
    token_id: str


class _Cursor(msgspec.Struct, frozen=True):
    """Whatever comes after this: of the day, below (ts, id), then the days before."""

    day: int
    ts: int = _LAST_TS
    id: str = _LAST_ID

    def __str__(self) -> str:
        return f"{self.day}.{self.ts}.{self.id}"


async def search(
    store: Store, project_id: str, filters: Filters, now_ms: int, cursor: str | None = None, *, rows: int = PAGE_ROWS
) -> FoundPage:
    """Raises BadSearch."""
    found = await search_events(store, project_id, filters, now_ms, cursor, rows=rows)
    return FoundPage([summary_of(each) for each in found.queries], found.next, found.searched_back_to)


async def search_events(
    store: Store, project_id: str, filters: Filters, now_ms: int, cursor: str | None = None, *, rows: int = PAGE_ROWS,
    most: int = WHOLE,
) -> FoundEvents:  # fmt: skip
    """Of long statements, the first `most` characters. Raises BadSearch."""
    _check(filters)
    began = time.perf_counter()
    at = _read(cursor) if cursor else _Cursor(day_number(day_of(now_ms)))
    chosen = await _chosen(store, project_id, filters)
    hits: list[tuple[int, _Hit]] = []
    if chosen is None:
        return FoundEvents([], None, None)
    days = sorted((each.day for each in await store.rows(_Day, DAYS)), reverse=True)
    oldest = day_number(day_of(filters.since_ms)) - 1 if filters.since_ms is not None else 0
    for day in days:
        if day > at.day or day < oldest:
            continue
        here = at if day == at.day else _Cursor(day)
        for lower in _windows(day, min(here.ts, now_ms), is_keyed=chosen.is_keyed):
            while True:
                wanted = rows - len(hits)
                found = await _look(store, project_id, filters, chosen, here, lower, wanted)
                hits += [(day, each) for each in found if _fits(each, filters)]
                is_full = len(found) == wanted
                here = _Cursor(day, found[-1].ts, found[-1].id) if is_full else _Cursor(day, lower, _FIRST_ID)
                if not is_full or len(hits) >= rows:
                    break
            if len(hits) >= rows:
                return await _page(store, project_id, hits, str(here), None, most)
            if (time.perf_counter() - began) * 1000 > PAGE_MS and not (day == days[-1] and lower <= 0):
                return await _page(store, project_id, hits, str(here), max(here.ts, (day - 1) * _DAY_MS), most)
    return await _page(store, project_id, hits, None, None, most)


class _Chosen(msgspec.Struct, frozen=True):
    """`every` key must be there, and one of `some` where there are any."""

    event_type: str
    every: list[int]
    some: list[int]

    @property
    def is_keyed(self) -> bool:
        return bool(self.every or self.some)


async def _chosen(store: Store, project_id: str, filters: Filters) -> _Chosen | None:
    """None: nothing can fit."""

    def key(kind: Any, value: str | None) -> list[int]:
        return [] if value is None else [filter_key(project_id, kind, value)]

    every = key("agent", filters.agent) + key("token", filters.token) + key("database", filters.database)
    every += key("fingerprint", filters.fingerprint)
    decided = key("decision", filters.decision) + key("rule", filters.rule) + key("table", filters.table)
    some: list[int] = []
    if filters.text is not None:
        rows = await store.rows(_Fingerprint, MATCHING, project_id, pattern(filters.text), _TEXTS)
        some = [filter_key(project_id, "fingerprint", each.fingerprint) for each in rows]
        if not some:
            return None
    if filters.person is not None:
        tokens = await store.rows(_Token, TOKENS_OF, project_id, filters.person)
        of_person = [filter_key(project_id, "token", each.token_id) for each in tokens]
        if not of_person:
            return None
        if some:
            raise BadSearch("person, text: found both, expected one of them")
        some = of_person
    return _Chosen("DECIDED" if decided else "ATTEMPTED", every + decided, some)


def _windows(day: int, from_ts: int, *, is_keyed: bool) -> list[int]:
    """The lower ends of the windows to look through, one after the other; the last takes what came late."""
    start = day * _DAY_MS
    if not is_keyed:
        return [0]
    found, width = [], _HOUR_MS
    lower = min(from_ts, start + _DAY_MS) - width
    while lower > start:
        found.append(lower)
        width *= 4
        lower -= width
    return [*found, 0]


async def _look(
    store: Store, project_id: str, filters: Filters, chosen: _Chosen, here: _Cursor, lower: int, rows: int
) -> list[_Hit]:
    day = day_from(here.day)
    lower = max(lower, filters.since_ms or 0)
    until = filters.until_ms
    upper = (here.ts, here.id) if until is None or (here.ts, here.id) < (until, _FIRST_ID) else (until, _FIRST_ID)

    async def work(tx: Transaction) -> list[_Hit]:
        await tx.define(_CUSTOM)  # which index is best depends on the values
        shared = (project_id, chosen.event_type, lower, *upper, rows)
        if chosen.some:
            return await tx.rows(_Hit, KEYED_ANY.on(day), *shared, chosen.every, chosen.some)
        if chosen.every:
            return await tx.rows(_Hit, KEYED.on(day), *shared, chosen.every)
        return await tx.rows(_Hit, RECENT.on(day), *shared)

    return await store.transaction(work)


def _fits(hit: _Hit, filters: Filters) -> bool:
    """The columns themselves: two values may have one hash."""
    wanted = ((filters.agent, hit.agent_name), (filters.token, hit.token_id), (filters.database, hit.database_name))
    if any(want is not None and want != have for want, have in wanted):
        return False
    if hit.event_type != "DECIDED":
        return True
    payload: dict[str, Any] = msgspec.json.decode(hit.payload)
    if filters.decision not in (None, payload.get("decision")) or filters.rule not in (None, payload.get("policy_rule")):
        return False
    return filters.table is None or filters.table in tables_of(payload)


async def _page(
    store: Store, project_id: str, hits: list[tuple[int, _Hit]], following: str | None, back_to: int | None, most: int
) -> FoundEvents:
    by_day: dict[int, list[str]] = {}
    for day, hit in hits:
        by_day.setdefault(day, []).append(hit.query_id)
    events: dict[str, list[StoredEvent]] = {}
    for day, ids in by_day.items():
        for each in await events_of(store, project_id, ids, day_from(day), most):
            events.setdefault(each.query_id, []).append(each)
    return FoundEvents([events[hit.query_id] for _, hit in hits if hit.query_id in events], following, back_to)


async def events_of(store: Store, project_id: str, query_ids: list[str], day: date, most: int = WHOLE) -> list[StoredEvent]:
    """All rows of these queries that were received on the day, the one before and the one after. Of long texts, the first `most`
    characters."""
    held = {each.day for each in await store.rows(_Day, DAYS)}
    near = [number for number in range(day_number(day) - 1, day_number(day) + 2) if number in held]
    found: list[StoredEvent] = []
    for number in near:
        found += await store.rows(StoredEvent, OF_QUERIES.on(day_from(number)), project_id, query_ids, most)
    found = [each if most == WHOLE else each.closed(most) for each in found]
    return sorted(found, key=lambda each: (each.id, each.instance))


def _read(text: str) -> _Cursor:
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts[:2]) or ulid_value(parts[2]) is None:
        raise BadSearch("cursor: expected the `next` of a page")
    day, ts = int(parts[0]), int(parts[1])
    if day > 200_000 or ts > _LAST_TS:
        raise BadSearch("cursor: expected the `next` of a page")
    return _Cursor(day, ts, parts[2])


def _check(filters: Filters) -> None:
    for name in ("token", "person"):
        value = getattr(filters, name)
        if value is not None and ulid_value(value) is None:
            raise BadSearch(f"{name}: expected an id of 26 characters")
    for name in ("since_ms", "until_ms"):
        value = getattr(filters, name)
        if value is not None and not 0 <= value < 1 << 48:
            raise BadSearch(f"{name}: expected milliseconds since 1970")
    for name in ("agent", "database", "decision", "rule", "table", "fingerprint", "text"):
        value = getattr(filters, name)
        if value is not None and (len(value) > 500 or "\0" in value):
            raise BadSearch(f"{name}: expected at most 500 characters")
