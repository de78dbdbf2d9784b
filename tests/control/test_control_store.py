"""The store: transactions that run again, leases with fences, migrations, the audit's days, cancellation."""

from datetime import date
from typing import Any

import asyncpg
import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gatewayd.control.console import Console
from gatewayd.control.store import lease
from gatewayd.control.store.days import AHEAD_DAYS, day_from, day_number, drop_days, make_days
from gatewayd.control.store.failures import StoreLocked, StoreUnavailable, is_duplicate
from gatewayd.control.store.migrate import Migration, MigrationProblem, known, migrate, state
from gatewayd.control.store.statement import Copy, Statement
from gatewayd.control.store.store import Store, Transaction
from tests.conftest import Postgres, StartPostgres

ONE, TWO = "01JDAAAAAAAAAAAAAAAAAAAAAA", "01JDBBBBBBBBBBBBBBBBBBBBBB"
COUNT = Statement("UPDATE counters SET n = n + 1 WHERE name = $1")
READ = Statement("SELECT n FROM counters WHERE name = $1")
SET = Statement("UPDATE counters SET n = $2 WHERE name = $1")
SLEEP = Statement("SELECT pg_sleep(30)")
ECHO = Statement("SELECT $1::uuid AS id, $2::bytea AS data, $3::bigint[] AS keys")


class Echo(msgspec.Struct):
    id: str
    data: bytes
    keys: list[int]


async def test_ids_are_ulids_on_both_sides(store: Store) -> None:
    found = await store.row(Echo, ECHO, ONE, b"\0x", [1, -1])
    assert found == Echo(ONE, b"\0x", [1, -1])


async def test_transactions_that_meet_each_other_run_again_and_lose_nothing(store_url: str, postgres: Postgres) -> None:
    postgres.execute("CREATE TABLE counters (name text PRIMARY KEY, n bigint); INSERT INTO counters VALUES ('a', 0)", store_url)
    store = Store(store_url, isolation="SERIALIZABLE")

    async def work(tx: Transaction) -> None:
        n = await tx.value(READ, "a")
        await tx.run(SET, "a", n + 1)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(store.transaction, work)
    assert await store.value(READ, "a") == 8
    assert store.statistics().runs_again > 0
    store.close()


async def test_what_a_transaction_raises_undoes_it(store: Store) -> None:
    async def work(tx: Transaction) -> None:
        await tx.run(lease.ENTER, "undone", ONE)
        raise KeyError("why")

    with pytest.raises(KeyError):
        await store.transaction(work)
    assert await lease.take(store, "undone", ONE) == 1


async def test_a_row_that_another_transaction_keeps_makes_the_store_unavailable_for_a_while(
    store_url: str, postgres: Postgres
) -> None:
    postgres.execute("CREATE TABLE counters (name text PRIMARY KEY, n bigint); INSERT INTO counters VALUES ('a', 0)", store_url)
    store = Store(store_url)

    async def impatient(tx: Transaction) -> None:
        await tx.define("SET LOCAL lock_timeout = '1ms'")
        await tx.run(COUNT, "a")

    async def holder(tx: Transaction) -> None:
        await tx.run(COUNT, "a")
        with pytest.raises(StoreLocked, match="locked by another"):
            await store.transaction(impatient)

    await store.transaction(holder)
    assert await store.value(READ, "a") == 1
    assert issubclass(StoreLocked, StoreUnavailable)  # which is answered with 503
    store.close()


async def test_a_duplicate_is_told_by_its_sqlstate(store: Store) -> None:
    add = Statement("INSERT INTO organisations (org_id, name, created_ms) VALUES ($1, 'x', 1)")
    await store.run(add, ONE)
    with pytest.raises(asyncpg.PostgresError) as error:
        await store.run(add, ONE)
    assert is_duplicate(error.value)


async def test_a_cancelled_statement_ends_on_the_server_too(store_url: str, postgres: Postgres) -> None:
    store = Store(store_url)
    with trio.move_on_after(0.3):
        await store.value(SLEEP)
    running = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND application_name = 'gatewayd-control'"
    with trio.fail_after(10):
        while postgres.query(running)[0]["n"]:  # noqa: ASYNC110  # another process is waited for
            await trio.sleep(0.05)
    assert await store.value(lease.NOW_MS) > 0
    store.close()


async def test_a_cached_statement_lives_through_a_migration(store_url: str, postgres: Postgres) -> None:
    postgres.execute("CREATE TABLE changing (a integer); INSERT INTO changing VALUES (1)", store_url)
    read = Statement("SELECT * FROM changing")
    store = Store(store_url)
    assert await store.value(read) == 1
    postgres.execute("ALTER TABLE changing ALTER a TYPE text", store_url)
    assert await store.value(read) == "1"
    store.close()


async def test_a_restarted_server_is_found_again(start_postgres: StartPostgres) -> None:
    own = start_postgres()
    store = Store(own.dsn())
    assert await store.value(lease.NOW_MS) > 0
    await trio.to_thread.run_sync(own.stop)
    with pytest.raises(StoreUnavailable):
        await store.value(lease.NOW_MS)
    await trio.to_thread.run_sync(own.start)
    assert await store.value(lease.NOW_MS) > 0
    store.close()


async def test_a_pool_without_a_free_connection_says_so(store_url: str) -> None:
    store = Store(store_url, size=1, wait_s=0.05)
    async with store.connection():
        with pytest.raises(StoreUnavailable, match="became free"):
            async with store.connection():
                raise AssertionError
    store.close()


async def test_a_lease_has_one_holder_and_its_fence_rises(store: Store, store_url: str, postgres: Postgres) -> None:
    assert await lease.take(store, "job", ONE) == 1
    assert await lease.take(store, "job", ONE) == 1
    assert await lease.take(store, "job", TWO) is None
    postgres.execute("UPDATE leases SET until_ms = 1 WHERE name = 'job'", store_url)
    assert await lease.take(store, "job", TWO) == 2
    assert await lease.take(store, "job", ONE) is None
    await lease.release(store, "job", TWO)
    assert await lease.take(store, "job", ONE) == 3


async def test_leased_work_ends_when_the_lease_is_lost(store_url: str, postgres: Postgres) -> None:
    store = Store(store_url)
    began, ended = trio.Event(), trio.Event()

    async def work(_fence: int) -> None:
        began.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lease.run_leased, store, "long", ONE, work, 0.3)
        await began.wait()
        postgres.execute(f"UPDATE leases SET owner = '{'0' * 32}', until_ms = 9999999999999 WHERE name = 'long'", store_url)
        with trio.fail_after(10):
            await ended.wait()
        nursery.cancel_scope.cancel()
    store.close()


async def test_work_that_finds_the_store_away_ends_no_service(store_url: str) -> None:
    store, failed = Store(store_url), trio.Event()

    async def work(_fence: int) -> None:
        failed.set()
        raise StoreUnavailable("it was restarted")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lease.run_leased, store, "failing", ONE, work)
        await failed.wait()
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    store.close()


async def test_migrations_are_applied_once_by_two_at_a_time(postgres: Postgres) -> None:
    dsn = postgres.create_database()
    stores = [Store(dsn), Store(dsn)]
    done: list[tuple[Migration, ...]] = []

    async def one(store: Store, owner: str) -> None:
        done.append(await migrate(store, owner, 5))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, stores[0], ONE)
        nursery.start_soon(one, stores[1], TWO)
    assert sorted(each.number for part in done for each in part) == [each.number for each in known()]
    assert (await state(stores[0])).missing == ()
    for store in stores:
        store.close()


async def test_a_migration_of_another_text_or_version_is_refused(store: Store, store_url: str, postgres: Postgres) -> None:
    postgres.execute("UPDATE migrations SET checksum = 'other' WHERE number = 1", store_url)
    with pytest.raises(MigrationProblem, match=r"0001_people\.sql was applied with another text"):
        await state(store)
    postgres.execute("DELETE FROM migrations; INSERT INTO migrations VALUES (9999, '9999_new.sql', 'x', 1)", store_url)
    with pytest.raises(MigrationProblem, match="newer version"):
        await state(store)


async def test_days_are_made_ahead_and_dropped(store: Store, store_url: str, postgres: Postgres) -> None:
    now_ms = 1_795_305_600_000  # 2026-11-22
    made: list[str] = []

    async def distribute(_tx: Transaction, table: str) -> None:
        made.append(table)

    await make_days(store, now_ms, distribute)
    await make_days(store, now_ms)
    tables = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'audit\\_2%' ORDER BY 1"
    held = [row["tablename"] for row in postgres.query(tables, store_url)]
    assert len(held) == AHEAD_DAYS + 1
    assert held[0] == "audit_20261122"
    assert {"audit_20261122", "audit_details_20261122"} <= set(made)
    assert await drop_days(store, date(2026, 11, 24), now_ms) == [date(2026, 11, 22), date(2026, 11, 23)]
    held = [row["tablename"] for row in postgres.query(tables, store_url)]
    assert held[0] == "audit_20261124"
    assert day_from(day_number(date(2026, 2, 28))) == date(2026, 2, 28)


async def test_copy_takes_a_bounded_batch(store: Store, console: Console) -> None:
    into = Copy("organisations", ("org_id", "name", "created_ms", "plan"))
    rows: list[tuple[Any, ...]] = [(console.new_id(), f"n{number}", number, "default") for number in range(500)]

    async def work(tx: Transaction) -> None:
        await tx.copy(into, rows)

    await store.transaction(work)
    assert await store.value(Statement("SELECT count(*) FROM organisations")) == 500
    with pytest.raises(ValueError, match="at most 2000 rows"):
        await store.transaction(lambda tx: tx.copy(into, rows * 5))
