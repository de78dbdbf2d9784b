"""A cancelled call stops PostgreSQL's work on it before trio.Cancelled leaves, at whatever moment it comes (decision 11)."""

import os
import signal
from typing import Any

import pytest
import trio

from gatewayd.config.bounds import DatabaseBounds
from gatewayd.policy.file.model import Limits
from tests.postgres.cancelled_after import cancelled_after
from tests.postgres.postgres_asking import asking, until

SLOW = "SELECT pg_sleep(60), 'a slow statement' AS a"


def running(postgres: Any, how: str = "state = 'active'") -> int:
    """How many slow statements PostgreSQL works on; a cancel that comes before one is really under way cancels nothing."""
    where = f"{how} AND pid <> pg_backend_pid() AND query LIKE '%a slow statemen_%'"
    return int(postgres.query(f"SELECT count(*) AS n FROM pg_stat_activity WHERE {where}")[0]["n"])


@pytest.fixture
def dsn(postgres: Any) -> Any:
    return postgres.create_database("CREATE TABLE t (id int); INSERT INTO t VALUES (1);")


@pytest.mark.parametrize("tcp", [False, True])
async def test_a_cancelled_read_stops_and_its_session_is_used_again(postgres: Any, tcp: bool) -> None:
    dsn = postgres.create_database(tcp=tcp)
    async with asking(dsn, size=1) as ask:
        pid = (await ask.rows("SELECT pg_backend_pid() AS pid"))[0]["pid"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, SLOW)
            await until(lambda: running(postgres, "wait_event = 'PgSleep'") == 1)
            nursery.cancel_scope.cancel()
        assert running(postgres) == 0
        assert await ask.rows("SELECT pg_backend_pid() AS pid") == [{"pid": pid}]


async def test_a_cancelled_write_leaves_nothing(postgres: Any, dsn: str) -> None:
    async with asking(dsn) as ask:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "UPDATE t SET id = 2 FROM (SELECT pg_sleep(60), 'a slow statement') AS s RETURNING *")
            await until(lambda: running(postgres, "wait_event = 'PgSleep'") == 1)
            nursery.cancel_scope.cancel()
        assert running(postgres) == 0
        assert await ask.rows("SELECT id FROM t") == [{"id": 1}]


async def test_a_cancelled_wait_for_a_session_takes_none(postgres: Any, dsn: str) -> None:
    async with asking(dsn, size=1) as ask, ask.pool.connection():
        with trio.move_on_after(0.01) as scope:
            await ask("SELECT 1 AS a")
        assert scope.cancelled_caught
        assert ask.pool.statistics().waiters == 0
        assert ask.pool.statistics().in_use == 1


async def test_cancelled_at_any_moment_the_pool_stays_sound(postgres: Any, dsn: str) -> None:
    """Every await of a call is cancelled once: the first, the second, ... until a call runs through."""
    for sql, fresh in (
        ("SELECT 1 AS a", True),
        ("SELECT 1 AS a, t.*, 2 AS a FROM t", False),
        ("INSERT INTO t VALUES (5) RETURNING *", False),
    ):
        for steps in range(1, 200):
            async with asking(dsn, size=1) as ask:
                if not fresh:
                    await ask("SELECT 1 AS a")
                finished = await cancelled_after(steps, ask, sql)
                assert ask.pool.statistics().in_use == 0
                assert await ask.rows("SELECT 7 AS a") == [{"a": 7}]
                assert not ask.pool.statistics().waiters
            if finished:
                break
        else:
            pytest.fail("no call ran through")
    counted = postgres.query("SELECT count(*) AS n FROM t WHERE id = 5", dsn)[0]["n"]
    assert counted >= 1  # the last one ran through; earlier ones may have been cancelled as late as within COMMIT
    await until(
        lambda: (
            postgres.query(f"SELECT count(*) AS n FROM pg_stat_activity WHERE datname = '{dsn.split('/')[3].split('?')[0]}'")[0][
                "n"
            ]
            == 0
        )
    )


async def test_a_statement_past_its_timeout_fails_by_name(dsn: str) -> None:
    async with asking(dsn, Limits(statement_timeout_ms=50)) as ask:
        failure = await ask.fails("SELECT pg_sleep(60)")
        assert failure.sqlstate == "57014"
        assert "statement timeout" in failure.message


async def test_a_lock_past_its_timeout_fails_by_name(dsn: str) -> None:
    async with asking(dsn, Limits(lock_timeout_ms=50)) as ask, ask.pool.connection() as other:
        await other.begin("READ WRITE")
        await other.execute("UPDATE t SET id = 3")
        assert (await ask.fails("SELECT id FROM t FOR UPDATE")).sqlstate == "55P03"
        await other.rollback()


async def test_a_cancellation_that_the_server_ignores_closes_the_session(own_postgres: Any) -> None:
    impatient = DatabaseBounds(connect_s=300, grace_s=0.3)
    async with asking(own_postgres.dsn(), Limits(statement_timeout_ms=30_000), bounds=impatient) as ask:
        (row,) = await ask.rows("SELECT pg_backend_pid() AS pid")
        os.kill(row["pid"], signal.SIGSTOP)
        try:
            with trio.fail_after(60), trio.move_on_after(0.1) as scope:
                await ask("SELECT 1 AS a")
            assert scope.cancelled_caught
            assert ask.pool.statistics().idle == 0
            assert await ask.rows("SELECT 1 AS a") == [{"a": 1}]
        finally:
            os.kill(row["pid"], signal.SIGCONT)
