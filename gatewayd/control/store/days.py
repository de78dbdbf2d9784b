"""The audit's tables of a day: their shape, made well ahead and dropped when nobody keeps that day any more.

A table a day by name, not partitions of one: dropping a day then touches no other, and an engine that distributes tables can be
told about each after its CREATE (`distribute`).
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec

from gatewayd.control.store.failures import StoreLocked
from gatewayd.control.store.statement import Statement, details_table, events_table
from gatewayd.control.store.store import Store, Transaction

AHEAD_DAYS: Final = 7

# `keys` holds 64-bit hashes of (project, kind, value) for agent, token, fingerprint, each table, decision and rule: one GIN index
# answers every filter; the columns themselves are checked again.
EVENTS: Final = """
CREATE TABLE IF NOT EXISTS {events} (
  project_id uuid NOT NULL, gateway_id uuid NOT NULL, instance uuid NOT NULL, seq bigint NOT NULL,
  id uuid NOT NULL, query_id uuid NOT NULL, ts bigint NOT NULL, received_ms bigint NOT NULL,
  event_type text NOT NULL, tenant_id text NOT NULL, database_name text NOT NULL, agent_name text, agent_version text,
  has_intent boolean NOT NULL, token_id uuid,
  payload text NOT NULL, schema_version integer NOT NULL, commitment bytea NOT NULL, unproved boolean NOT NULL,
  keys bigint[] NOT NULL,
  PRIMARY KEY (project_id, gateway_id, instance, seq)
);
CREATE INDEX IF NOT EXISTS {events}_ts ON {events} (project_id, ts);
CREATE INDEX IF NOT EXISTS {events}_query ON {events} (project_id, query_id);
CREATE INDEX IF NOT EXISTS {events}_keys ON {events} USING gin (keys) WITH (fastupdate = on)
"""
DETAILS: Final = """
CREATE TABLE IF NOT EXISTS {details} (
  project_id uuid NOT NULL, gateway_id uuid NOT NULL, instance uuid NOT NULL, seq bigint NOT NULL,
  details text, salt bytea,
  PRIMARY KEY (project_id, gateway_id, instance, seq)
)
"""

DAYS: Final = Statement("SELECT day FROM audit_days WHERE dropped_ms IS NULL ORDER BY day")
NOTE_DAY: Final = Statement("INSERT INTO audit_days (day, made_ms) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING")
NOTE_DROPPED: Final = Statement("UPDATE audit_days SET dropped_ms = $2 WHERE day = $1 AND dropped_ms IS NULL")


class _Day(msgspec.Struct, frozen=True):
    day: int


Distribute = Callable[[Transaction, str], Awaitable[None]]


def day_of(ms: int) -> date:
    """The UTC day of a time: events go into the tables of the day on which they are received."""
    return datetime.fromtimestamp(ms / 1000, UTC).date()


def day_number(day: date) -> int:
    """Days since 1970, as the store keeps them."""
    return day.toordinal() - date(1970, 1, 1).toordinal()


def day_from(number: int) -> date:
    return date.fromordinal(number + date(1970, 1, 1).toordinal())


async def make_days(store: Store, now_ms: int, distribute: Distribute | None = None) -> None:
    """Make the tables of today and of the next AHEAD_DAYS. Safe to run again, and by several at once."""
    held = {day_from(number) for number in await _days(store)}
    for day in (day_of(now_ms) + timedelta(days=ahead) for ahead in range(AHEAD_DAYS + 1)):
        if day not in held:
            await _make(store, day, now_ms, distribute)


async def drop_days(store: Store, before: date, now_ms: int) -> list[date]:
    """Drop the tables of all days before `before`; which those were. One that a backup reads now is left for the next time."""
    gone = []
    for day in (day for day in map(day_from, await _days(store)) if day < before):
        try:
            await _drop(store, day, now_ms)
        except StoreLocked:
            continue
        gone.append(day)
    return gone


async def _days(store: Store) -> list[int]:
    async def work(tx: Transaction) -> list[int]:
        return [int(found.day) for found in await tx.rows(_Day, DAYS)]

    return await store.transaction(work)


async def _make(store: Store, day: date, now_ms: int, distribute: Distribute | None) -> None:
    names = {"events": events_table(day), "details": details_table(day)}

    async def work(tx: Transaction) -> None:
        if await tx.run(NOTE_DAY, day_number(day), now_ms):  # of two at once the second waits here, and then has nothing to do
            await tx.define(EVENTS.format(**names))
            await tx.define(DETAILS.format(**names))
            if distribute is not None:
                for table in names.values():
                    await distribute(tx, table)

    await store.transaction(work)


async def _drop(store: Store, day: date, now_ms: int) -> None:
    async def work(tx: Transaction) -> None:
        if await tx.run(NOTE_DROPPED, day_number(day), now_ms):
            await tx.define(f"DROP TABLE IF EXISTS {events_table(day)}; DROP TABLE IF EXISTS {details_table(day)}")

    await store.transaction(work)
