"""Migrations: numbered SQL files, forward only, each in its own transaction, applied under a lease.

A file that was applied is never changed: its checksum is kept, and another one is refused. `state` says what is missing.
"""

import hashlib
import re
from importlib.resources import files
from typing import Final

import msgspec
import trio
from asyncpg.exceptions import PostgresError

from gatewayd import log
from gatewayd.control.store import lease
from gatewayd.control.store.failures import sqlstate
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

LEASE: Final = "migrations"
BOOTSTRAP: Final = """
CREATE TABLE IF NOT EXISTS leases (
  name text PRIMARY KEY, owner uuid NOT NULL, until_ms bigint NOT NULL, fence bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS migrations (
  number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_ms bigint NOT NULL
)
"""
_NAME: Final = re.compile(r"([0-9]{4})_[a-z_]+\.sql")
_MET_AT_BOOTSTRAP: Final = frozenset({"23505", "42P07", "XX000"})  # two replicas that make one table at once

APPLIED: Final = Statement("SELECT number, name, checksum FROM migrations ORDER BY number")
NOTE: Final = Statement("INSERT INTO migrations (number, name, checksum, applied_ms) VALUES ($1, $2, $3, $4)")
HAS_MIGRATIONS: Final = Statement("SELECT to_regclass('public.migrations') IS NOT NULL")


class Migration(msgspec.Struct, frozen=True):
    number: int
    name: str
    checksum: str


class MigrationProblem(Exception):
    """The store's migrations are not ours; the text says which one and what to do."""


class State(msgspec.Struct, frozen=True):
    applied: tuple[Migration, ...]
    missing: tuple[Migration, ...]


def known() -> dict[Migration, str]:
    """The files of this version, in their order, with their text."""
    folder = files("gatewayd.control.store") / "migrations"
    found = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        match = _NAME.fullmatch(entry.name)
        if match is not None:
            text = entry.read_text(encoding="utf-8")
            found[Migration(int(match[1]), entry.name, hashlib.sha256(text.encode()).hexdigest())] = text
    return found


async def state(store: Store) -> State:
    """What is applied and what is missing. Raises MigrationProblem, StoreUnavailable."""
    applied: list[Migration] = []
    if await store.value(HAS_MIGRATIONS):
        applied = await store.rows(Migration, APPLIED)
    ours = list(known())
    for ran in applied:
        mine = next((each for each in ours if each.number == ran.number), None)
        if mine is None:
            raise MigrationProblem(f"the store has migration {ran.name}, which this version does not know; run a newer version")
        if mine.checksum != ran.checksum:
            raise MigrationProblem(f"migration {ran.name} was applied with another text than this version has")
    numbers = {each.number for each in applied}
    return State(tuple(applied), tuple(each for each in ours if each.number not in numbers))


async def migrate(store: Store, owner: str, now_ms: int) -> tuple[Migration, ...]:
    """Apply what is missing; what was applied. Waits for a replica that is at it. Raises MigrationProblem, StoreUnavailable."""
    await _bootstrap(store)
    done: list[Migration] = []
    while (await state(store)).missing:
        if await lease.take(store, LEASE, owner, 120.0) is None:
            await trio.sleep(0.2)
            continue
        try:
            for migration in (await state(store)).missing:
                await _apply(store, migration, known()[migration], now_ms)
                log.info(log.CONTROL_STORE_MIGRATED, migration=migration.name)
                done.append(migration)
        finally:
            await lease.release(store, LEASE, owner)
    return tuple(done)


async def _bootstrap(store: Store) -> None:
    while True:
        try:
            async with store.connection() as connection:
                await connection.script(BOOTSTRAP)
            return
        except PostgresError as error:
            if sqlstate(error) not in _MET_AT_BOOTSTRAP:
                raise
        await trio.sleep(0.05)


async def _apply(store: Store, migration: Migration, text: str, now_ms: int) -> None:
    async def work(tx: Transaction) -> None:
        await tx.run(NOTE, migration.number, migration.name, migration.checksum, now_ms)
        await tx.define(text)

    await store.transaction(work)
