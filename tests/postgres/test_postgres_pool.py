"""The pool: ten sessions, first come first served, dead ones replaced, failures named without a secret."""

import os
import signal
import socket
from typing import Any

import pytest
import trio
import trio.testing

from gatewayd.config.bounds import DatabaseBounds
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.postgres.pool import Pool, PoolStatistics
from tests.postgres.postgres_asking import PATIENT, asking, until

SECRET = "canary-of-the-dsn"


async def test_sessions_are_opened_as_needed_and_kept(postgres: Any) -> None:
    async with asking(postgres.dsn(), size=2) as ask:
        assert ask.pool.statistics() == PoolStatistics(in_use=0, idle=0, max=2, waiters=0)
        async with ask.pool.connection():
            assert ask.pool.statistics() == PoolStatistics(in_use=1, idle=0, max=2, waiters=0)
        await ask("SELECT 1 AS a")
        assert ask.pool.statistics() == PoolStatistics(in_use=0, idle=1, max=2, waiters=0)


async def test_waiters_are_served_in_order(postgres: Any) -> None:
    served: list[int] = []

    async with asking(postgres.dsn(), size=1) as ask, trio.open_nursery() as nursery:

        async def wait(number: int) -> None:
            async with ask.pool.connection():
                served.append(number)

        async with ask.pool.connection():
            for number in range(5):
                nursery.start_soon(wait, number)
                await trio.testing.wait_all_tasks_blocked()
            assert ask.pool.statistics().waiters == 5
    assert served == [0, 1, 2, 3, 4]


async def test_a_caller_leaves_sessions_to_the_others(postgres: Any) -> None:
    served: list[str] = []

    async with asking(postgres.dsn(), size=4) as ask, trio.open_nursery() as nursery:

        async def work(caller: str, until: trio.Event) -> None:
            connection = await ask.pool.acquire(Limits(), caller)
            served.append(caller)
            await until.wait()
            ask.pool.release(connection, caller)

        end = trio.Event()
        for _ in range(6):
            nursery.start_soon(work, "flood", end)
        with trio.fail_after(30):
            while ask.pool.statistics().in_use < 2 or ask.pool.statistics().waiters < 4:  # noqa: ASYNC110 - no event
                await trio.sleep(0.01)
            assert served == ["flood", "flood"]
            now = trio.Event()
            now.set()
            await work("quiet", now)  # and not behind the six
        end.set()
    assert served[2] == "quiet"
    assert served.count("flood") == 6


async def test_a_pool_that_stays_exhausted_is_53300(postgres: Any) -> None:
    bounds = DatabaseBounds(connect_s=300, slot_s=0.01)
    async with asking(postgres.dsn(), Limits(lock_timeout_ms=10), size=1, bounds=bounds) as ask, ask.pool.connection():
        failure = await ask.fails("SELECT 1 AS a")
    assert failure.sqlstate == "53300"
    assert failure.message == "all 1 connections to the database were in use for 0.02 s"


async def test_sixty_calls_share_ten_sessions(postgres: Any) -> None:
    async with asking(postgres.dsn()) as ask:
        pids: set[int] = set()

        async def call() -> None:
            pids.add((await ask.rows("SELECT pg_backend_pid() AS pid, pg_sleep(0.01)"))[0]["pid"])

        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(call)
        assert len(pids) == 10
        assert ask.pool.statistics() == PoolStatistics(in_use=0, idle=10, max=10, waiters=0)


async def test_an_idle_session_that_died_is_replaced(postgres: Any) -> None:
    async with asking(postgres.dsn(), size=1) as ask:
        (row,) = await ask.rows("SELECT pg_backend_pid() AS pid")
        postgres.execute(f"SELECT pg_terminate_backend({row['pid']}, 5000)")
        (other,) = await ask.rows("SELECT pg_backend_pid() AS pid")
    assert other["pid"] != row["pid"]


@pytest.mark.parametrize(
    "sql", ["SELECT pg_sleep(60), 'to be killed' AS a", "UPDATE t SET id = 2 FROM (SELECT pg_sleep(60), 'to be killed') AS s"]
)
async def test_a_session_killed_at_work_is_08006(postgres: Any, sql: str) -> None:
    dsn = postgres.create_database("CREATE TABLE t (id int); INSERT INTO t VALUES (1)")
    # Asleep, not merely active: a session that dies between preparing and running is lost without the server's words.
    find = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%to be kille_%'"
    async with asking(dsn) as ask, trio.open_nursery() as nursery:

        async def call() -> None:
            failure = await ask.fails(sql)
            assert failure.sqlstate == "08006"
            assert "terminating connection due to administrator command" in failure.message

        nursery.start_soon(call)
        await until(lambda: bool(postgres.query(find)))
        postgres.execute(f"SELECT pg_terminate_backend(pid) FROM ({find}) AS f")
    async with asking(dsn) as ask:
        assert await ask.rows("SELECT id FROM t") == [{"id": 1}]


async def test_a_connection_lost_during_commit_has_an_unknown_outcome(postgres: Any) -> None:
    dsn = postgres.create_database("""
        CREATE TABLE t (id int);
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();
    """)
    find = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query = 'COMMIT'"
    async with asking(dsn) as ask, trio.open_nursery() as nursery:

        async def call() -> None:
            failure = await ask.fails("INSERT INTO t VALUES (1)")
            assert failure.sqlstate == "08007"
            assert failure.message.startswith("outcome unknown: ")

        nursery.start_soon(call)
        await until(lambda: bool(postgres.query(find)))
        postgres.execute(f"SELECT pg_terminate_backend(pid) FROM ({find}) AS f")


async def test_a_commit_that_has_begun_is_not_cancelled(postgres: Any) -> None:
    dsn = postgres.create_database("""
        CREATE TABLE t (id int);
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();
    """)
    find = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory' AND query = 'COMMIT'"
    affected: list[int | None] = []
    async with asking(dsn) as ask, ask.pool.connection() as other, trio.open_nursery() as nursery:
        await other.begin("READ WRITE")
        await other.execute("SELECT pg_advisory_xact_lock(77)")

        async def call() -> None:
            affected.append((await ask("INSERT INTO t VALUES (1)")).rows_affected)

        nursery.start_soon(call)
        await until(lambda: bool(postgres.query(find, dsn)))
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await other.rollback()
    assert affected == [1]
    assert postgres.query("SELECT id FROM t", dsn) == [{"id": 1}]


async def test_a_restarted_database_is_found_again(own_postgres: Any) -> None:
    dsn = own_postgres.create_database(tcp=True)
    async with asking(dsn, size=3) as ask:
        async with ask.pool.connection(), ask.pool.connection():
            pass
        own_postgres.stop("immediate")
        failure = await ask.fails("SELECT 1 AS a")
        assert failure.sqlstate == "08001"
        assert "nothing listens on its port" in failure.message
        own_postgres.start()
        assert await ask.rows("SELECT 1 AS a") == [{"a": 1}]
        own_postgres.restart()
        assert await ask.rows("SELECT 1 AS a") == [{"a": 1}]


def without_the_network(getaddrinfo: Any) -> Any:
    """Names below .invalid do not exist, whatever the resolver of this machine would say or wait for."""

    def resolve(host: Any, *others: Any) -> Any:
        if (host if isinstance(host, str) else host.decode()).endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return getaddrinfo(host, *others)

    return resolve


@pytest.mark.parametrize(
    ("change", "sqlstate", "words"),
    [
        (lambda dsn, port: dsn.replace(f":{port}/", ":1/"), "08001", "nothing listens"),
        (lambda dsn, port: dsn.replace("@127.0.0.1", "wrong@127.0.0.1"), "28P01", "did not accept the gateway's credentials"),
        (lambda dsn, port: dsn.removesuffix("/postgres") + f"/{SECRET}", "3D000", "does not exist"),
        (lambda dsn, port: dsn.replace("127.0.0.1", f"{SECRET}.invalid"), "08001", "could not be resolved"),
        (lambda dsn, port: dsn + "?sslmode=require", "08001", "could not be reached"),
        (lambda dsn, port: f"postgresql://u@/d?host=/{SECRET}", "08001", "socket does not exist"),
        (lambda dsn, port: dsn + "?sslmode=sometimes", "08001", "settings are not valid"),
    ],
)
async def test_failures_of_connecting_are_named_without_secrets(
    postgres: Any, change: Any, sqlstate: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", without_the_network(socket.getaddrinfo))
    dsn = change(postgres.dsn(tcp=True), postgres.port)
    async with asking(dsn) as ask:
        failure = await ask.fails("SELECT 1 AS a")
        assert failure.sqlstate == sqlstate
        assert words in failure.message
        for secret in (SECRET, "127.0.0.1", "superuser", "postgres"):
            assert secret not in f"{failure.message}{failure.hint}{failure.__cause__!r}"
        assert ask.pool.statistics() == PoolStatistics(in_use=0, idle=0, max=10, waiters=0)


async def test_a_port_that_accepts_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with asking(f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/d", bounds=DatabaseBounds(connect_s=0.1)) as ask:
            failure = await ask.fails("SELECT 1 AS a")
    assert failure.sqlstate == "08001"
    assert failure.message == "the database did not accept a connection within 0.1 s"


async def test_a_stopped_server_holds_nobody_longer_than_the_margin(own_postgres: Any) -> None:
    bounds = DatabaseBounds(connect_s=300, grace_s=0.2)
    async with (
        asking(own_postgres.dsn(), Limits(statement_timeout_ms=2000), size=1, bounds=bounds) as ask,
        asking(own_postgres.dsn(), bounds=DatabaseBounds(connect_s=0.3)) as newcomer,
    ):
        (row,) = await ask.rows("SELECT pg_backend_pid() AS pid")
        os.kill(row["pid"], signal.SIGSTOP)
        own_postgres.server.signal(signal.SIGSTOP)
        with trio.fail_after(60):
            failure = await ask.fails("SELECT 1 AS a")
            assert failure.sqlstate == "57014"
            assert "did not answer within 2.2 s" in failure.message
            assert (await newcomer.fails("SELECT 1 AS a")).sqlstate == "08001"
        own_postgres.server.signal(signal.SIGCONT)
        os.kill(row["pid"], signal.SIGCONT)
        assert await ask.rows("SELECT 1 AS a") == [{"a": 1}]


async def test_max_connections_reached_is_named(start_postgres: Any) -> None:
    server = start_postgres(settings={"max_connections": "5", "superuser_reserved_connections": "1"})
    server.execute("CREATE ROLE plain LOGIN")
    async with asking(server.dsn(user="plain")) as ask, trio.open_nursery() as nursery:
        release = trio.Event()
        holding: list[int] = []

        async def hold() -> None:
            async with ask.pool.connection():
                holding.append(1)
                await release.wait()

        for _ in range(4):
            nursery.start_soon(hold)
        while len(holding) < 4:
            await trio.testing.wait_all_tasks_blocked()
        failure = await ask.fails("SELECT 1 AS a")
        assert failure.sqlstate == "53300"
        release.set()


async def test_closing_waits_for_the_sessions_in_use(postgres: Any) -> None:
    pool = Pool("test", postgres.dsn(), Limits(), bounds=PATIENT)
    async with trio.open_nursery() as nursery, pool.connection() as connection:
        nursery.start_soon(pool.aclose)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(ExecutionFailed) as refused:
            await pool.acquire(Limits())
        assert refused.value.sqlstate == "57P01"
        assert await connection.fetch("SELECT 1 AS a")
    assert pool.statistics() == PoolStatistics(in_use=0, idle=0, max=10, waiters=0)


async def test_a_cancelled_close_ends_the_sessions_in_use(postgres: Any) -> None:
    pool = Pool("test", postgres.dsn(), Limits(), bounds=PATIENT)
    async with pool.connection() as connection, trio.open_nursery() as nursery:

        async def work() -> None:
            with pytest.raises(ExecutionFailed) as lost:
                await connection.fetch("SELECT pg_sleep(60)")
            assert lost.value.sqlstate == "08006"

        nursery.start_soon(work)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0):
            await pool.aclose()
    assert pool.statistics().in_use == 0
