"""When the catalog is read again: on a clock that jumps, and against servers that come and go."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.catalog import Catalog, Relation
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.catalog.refresher import CatalogRefresher
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.postgres.pool import Pool
from tests.conftest import PASSWORD, Postgres
from tests.postgres.postgres_asking import PATIENT

DOWN = ExecutionFailed("08001", "nothing listens on its port")
BUSY = ExecutionFailed("53300", "all 1 connections to the database were in use for 8 s")


class Database:
    """What a read gives, and when the reads were: seconds after the start."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.takes_s = takes_s
        self.failure: ExecutionFailed | None = None
        self.tables = 0
        self.began: list[float] = []
        self.start = trio.current_time()

    async def read(self, pool: Pool, revision: int) -> Catalog:
        self.began.append(round(trio.current_time() - self.start, 3))
        tables = {("public", f"t{n}"): Relation(n, "public", f"t{n}", "table") for n in range(self.tables)}
        await trio.sleep(self.takes_s)
        if self.failure is not None:
            raise self.failure
        return Catalog(revision, "db", relations=tables)


@asynccontextmanager
async def refreshing(database: Database) -> AsyncIterator[CatalogRefresher]:
    refresher = CatalogRefresher("main", Pool("main", "postgresql://nobody@/none", Limits(), bounds=PATIENT), database.read)
    async with trio.open_nursery() as nursery:
        await nursery.start(refresher.run)
        yield refresher
        nursery.cancel_scope.cancel()


@pytest.fixture
def lines(capfd: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    """The log lines since the last call, without their time."""

    def read() -> list[dict[str, Any]]:
        found = [msgspec.json.decode(line) for line in capfd.readouterr().err.splitlines()]
        return [{key: value for key, value in line.items() if key not in ("time", "read_ms")} for line in found]

    return read


async def test_the_first_read_begins_at_once_and_the_start_does_not_wait_for_it(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(database := Database(takes_s=60)) as refresher:
        assert not refresher.catalog.is_read
        assert refresher.catalog.database == "main"
        await trio.sleep(61)
        assert refresher.catalog.revision == 1
        assert database.began == [0]


async def test_a_quiet_database_is_looked_at_every_five_minutes(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(database := Database()):
        await trio.sleep(901)
    assert database.began == [0, 300, 600, 900]


async def test_ddl_is_read_at_once_each_time(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(database := Database()) as refresher:
        for _ in range(3):
            await trio.sleep(0.1)
            refresher.wrote(ddl=True)
        await trio.sleep(10)
    assert database.began == [0, 0.1, 0.2, 0.3]


async def test_row_writes_are_one_read_a_second(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(database := Database()) as refresher:
        await trio.sleep(20)
        for _ in range(25):
            refresher.wrote(ddl=False)
            await trio.sleep(0.1)
        await trio.sleep(10)
    assert database.began == [0, 20, 21, 22, 23]  # the last write, at 22.4, is in the read at 23


async def test_a_write_during_a_read_is_read_again(autojump_clock: trio.testing.MockClock) -> None:
    """The running read's snapshot may be older than the write."""
    async with refreshing(database := Database(takes_s=2)) as refresher:
        await trio.sleep(1)
        refresher.wrote(ddl=True)
        await trio.sleep(1.5)
        refresher.wrote(ddl=False)
        await trio.sleep(10)
    assert database.began == [0, 2, 4]


async def test_an_unknown_name_waits_for_a_fresh_catalog(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(database := Database(takes_s=0.5)) as refresher:
        await trio.sleep(10)
        database.tables = 1
        await refresher.unknown()
        assert refresher.catalog.relation("public", "t0") is not None
    assert database.began == [0, 10]


async def test_unknown_names_cost_one_read_in_five_seconds(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(database := Database()) as refresher:
        await trio.sleep(10)
        for _ in range(48):
            began = trio.current_time()
            await refresher.unknown()
            assert trio.current_time() == began  # within the five seconds it returns at once
            await trio.sleep(0.25)
    assert database.began == [0, 10, 15, 20]


async def test_a_name_made_by_ddl_is_waited_for_although_five_seconds_are_not_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with refreshing(database := Database(takes_s=1)) as refresher:
        await trio.sleep(6)
        for tables in (1, 2):
            database.tables = tables
            refresher.wrote(ddl=True)
            await refresher.unknown()
            assert len(refresher.catalog.relations) == tables
    assert database.began == [0, 6, 7]


async def test_all_that_wait_share_the_read_under_way(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(database := Database(takes_s=2)) as refresher:
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(refresher.unknown)
        assert trio.current_time() - database.start == pytest.approx(2)
        assert refresher.catalog.is_read
    assert database.began == [0]


async def test_a_database_that_hangs_holds_nobody_longer_than_three_seconds(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(Database(takes_s=60)) as refresher:
        began = trio.current_time()
        await refresher.unknown()
        assert trio.current_time() - began == pytest.approx(3)


async def test_a_dead_database_is_tried_after_1_2_4_to_30_seconds(autojump_clock: trio.testing.MockClock) -> None:
    database = Database()
    database.failure = DOWN
    async with refreshing(database):
        await trio.sleep(130)
    assert database.began == [0, 1, 3, 7, 15, 31, 61, 91, 121]


async def test_it_keeps_the_last_catalog_while_the_database_is_away_and_starts_over_with_one_second(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with refreshing(database := Database()) as refresher:
        database.tables = 3
        refresher.wrote(ddl=True)
        await trio.sleep(1)
        catalog = refresher.catalog
        for _ in range(2):
            database.failure = DOWN
            database.began.clear()
            database.start = trio.current_time()
            refresher.suspect()
            await trio.sleep(8)
            assert refresher.catalog is catalog
            assert not refresher.statistics().answers
            assert database.began == [0, 1, 3, 7]
            database.failure = None
            await trio.sleep(60)
            assert refresher.statistics().answers


async def test_unreachable_is_said_once_for_each_failure_and_reachable_once(
    autojump_clock: trio.testing.MockClock, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    database = Database()
    database.failure = DOWN
    async with refreshing(database):
        await trio.sleep(100)
        unreachable = {"level": "error", "msg": "database unreachable", "database": "main"}
        assert lines() == [{**unreachable, "code": "08001", "error": "nothing listens on its port"}]
        database.failure = ExecutionFailed("28P01", "the database did not accept the gateway's credentials")
        await trio.sleep(100)
        assert lines() == [{**unreachable, "code": "28P01", "error": "the database did not accept the gateway's credentials"}]
        database.failure = None
        await trio.sleep(1000)
        assert [line["msg"] for line in lines()] == ["database reachable", "catalog loaded"]
        database.failure = DOWN
        await trio.sleep(1000)
        assert [line["msg"] for line in lines()] == ["database unreachable"]


async def test_nothing_changed_keeps_the_snapshot_and_what_was_decided_by_it(autojump_clock: trio.testing.MockClock) -> None:
    async with refreshing(database := Database()) as refresher:
        database.tables = 2
        refresher.wrote(ddl=True)
        await trio.sleep(1)
        catalog = refresher.catalog
        refresher.wrote(ddl=True)
        await trio.sleep(1)
        assert refresher.catalog is catalog
        database.tables = 3
        refresher.wrote(ddl=True)
        await trio.sleep(1)
        assert refresher.catalog.revision == catalog.revision + 1
        statistics = refresher.statistics()
        assert (statistics.reads, statistics.failures, statistics.revision, statistics.relations) == (
            len(database.began),
            0,
            refresher.catalog.revision,
            3,
        )


async def until_it_failed(refresher: CatalogRefresher) -> None:
    """`unknown` waits for a read no longer than 3 s."""
    while not refresher.statistics().failures:
        await refresher.unknown()
        await trio.lowlevel.checkpoint()


async def test_connections_that_agents_hold_do_not_make_a_database_unreachable(
    postgres: Postgres, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    pool = Pool("main", postgres.create_database(), Limits(lock_timeout_ms=1), size=1, bounds=PATIENT)

    async def busy(pool: Pool, revision: int) -> Catalog:
        asked.set()
        raise BUSY

    asked = trio.Event()
    refresher = CatalogRefresher("main", pool, busy)
    async with pool.connection(), trio.open_nursery() as nursery:
        await nursery.start(refresher.run)
        await refresher.unknown()
        nursery.cancel_scope.cancel()
    assert asked.is_set()
    assert refresher.statistics().failures == 1
    assert lines() == []
    await pool.aclose()


async def test_a_real_database_that_comes_and_goes(own_postgres: Postgres, lines: Callable[[], list[dict[str, Any]]]) -> None:
    dsn = own_postgres.create_database("CREATE TABLE public.orders (id int)")
    own_postgres.stop()
    pool = Pool("main", dsn, Limits(), bounds=PATIENT)
    refresher = CatalogRefresher("main", pool)
    async with trio.open_nursery() as nursery:
        await nursery.start(refresher.run)
        await until_it_failed(refresher)
        assert not refresher.catalog.is_read
        (line,) = lines()
        assert (line["msg"], line["database"], line["code"]) == ("database unreachable", "main", "08001")
        own_postgres.start()
        with trio.fail_after(300):
            while not refresher.statistics().answers:
                refresher.wrote(ddl=True)
                await refresher.unknown()
        assert refresher.catalog.relation("public", "orders") is not None
        assert [line["msg"] for line in lines()] == ["database reachable", "catalog loaded"]
        own_postgres.restart()  # the idle session dies; the next read gets a new one and nobody hears of it
        own_postgres.execute("CREATE TABLE public.more (id int)", dsn)
        with trio.fail_after(300):
            while refresher.catalog.relation("public", "more") is None:
                refresher.wrote(ddl=True)
                await refresher.unknown()
        assert lines() == []
        nursery.cancel_scope.cancel()
    await pool.aclose()


async def test_the_failure_names_no_secret(postgres: Postgres, lines: Callable[[], list[dict[str, Any]]]) -> None:
    dsn = postgres.dsn("no_such_secret_database", password="hunter2-" + PASSWORD, tcp=True)
    refresher = CatalogRefresher("main", pool := Pool("main", dsn, Limits(), bounds=PATIENT))
    async with trio.open_nursery() as nursery:
        await nursery.start(refresher.run)
        await until_it_failed(refresher)
        nursery.cancel_scope.cancel()
    (line,) = lines()
    assert line["code"] == "28P01"
    assert not any(secret in str(line) for secret in ("hunter2", PASSWORD, "no_such_secret_database", dsn))
    await pool.aclose()
