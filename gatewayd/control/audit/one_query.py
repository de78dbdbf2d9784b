"""One query: its events in order, each as it is held."""

from typing import Any, Final

import msgspec

from gatewayd.audit.ids import ulid_value
from gatewayd.control.audit.search import events_of
from gatewayd.control.audit.stored import OF_QUERIES, StoredEvent
from gatewayd.control.audit.summary import QuerySummary, summary_of
from gatewayd.control.store.days import DAYS, day_from, day_number, day_of
from gatewayd.control.store.store import Store

_LATE_DAYS: Final = 400


class EventShown(msgspec.Struct, frozen=True):
    """`payload`: what the row says, with the details that are held. `is_erased`: they are gone, or never left the gateway."""

    id: str
    seq: int
    instance: str
    gateway_id: str
    ts: int
    received_ms: int
    event_type: str
    payload: dict[str, Any]
    is_erased: bool
    unproved: bool


class OneQuery(msgspec.Struct, frozen=True):
    """`policy` is the SHA-256 of the policy that decided, `bundle` the version that brought it, where the row says so."""

    summary: QuerySummary
    events: list[EventShown]
    policy: str | None
    bundle: int | None


class _Day(msgspec.Struct, frozen=True):
    day: int


async def find_events(store: Store, project_id: str, query_id: str) -> list[StoredEvent]:
    """By id; empty where nothing is held. The time in the id bounds the search: nothing is received before it happened."""
    value = ulid_value(query_id)
    if value is None:
        return []
    first = day_number(day_of(min(value >> 80, (1 << 45) - 1))) - 1
    days = [each.day for each in await store.rows(_Day, DAYS)]
    for number in sorted(day for day in days if first <= day < first + _LATE_DAYS):
        if await store.rows(StoredEvent, OF_QUERIES.on(day_from(number)), project_id, [query_id], 1):
            return await events_of(store, project_id, [query_id], day_from(number))
    return []


def shown(events: list[StoredEvent]) -> OneQuery:
    rows = [
        EventShown(
            each.id, each.seq, each.instance, each.gateway_id, each.ts, each.received_ms, each.event_type, each.facts,
            not each.is_whole, each.unproved,
        )
        for each in events
    ]  # fmt: skip
    decided = next((each.payload for each in rows if each.event_type == "DECIDED"), {})
    policy, bundle = decided.get("policy"), decided.get("bundle")
    return OneQuery(
        summary_of(events), rows, policy if isinstance(policy, str) else None, bundle if isinstance(bundle, int) else None
    )
