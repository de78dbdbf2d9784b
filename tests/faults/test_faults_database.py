"""What a database and the way to it can do to a running gatewayd: every call ends, its audit row says how, nothing goes on
running that the audit calls ended, and when the cause is gone it works as before without a restart."""

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from gatewayd import log
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.pins import PINNED, UNDER_A_POOLER, timeouts
from gatewayd.postgres.driver.session import connect
from gatewayd.postgres.execute.result import ExecutionFailed
from tests.cli.gatewayd_process import Running
from tests.conftest import PASSWORD, Postgres, StartPostgres, reserved_port
from tests.daemon.daemon_rig import PATIENCE_S, PATIENT, SHOP, Agent, chains, gatewayd, kinds, running_there, until
from tests.faults.ways import Way, descriptors, frozen, pgbouncer

POLICY = "table_access: {default: read, tables: {written: read_write}}\n" + PATIENT
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
POOL = 10
FINISHED = {"ATTEMPTED ALLOW EXECUTED", "ATTEMPTED ALLOW FAILED"}


def failed(answer: dict[str, Any], *sqlstates: str) -> bool:
    return answer["allowed"] and answer.get("error", {}).get("sqlstate") in sqlstates and bool(answer["error"]["message"])


def written(postgres: Postgres, dsn: str) -> set[str]:
    return {row["tag"] for row in postgres.query("SELECT tag FROM written", dsn)}


def outcomes(folder: Path) -> dict[str, set[str]]:
    """How the inserts ended, by the tag that each has of its own: EXECUTED, or the error class of FAILED."""
    found: dict[str, set[str]] = {}
    for chain in chains(folder).values():
        assert kinds(chain) in FINISHED | {"ATTEMPTED DENY"}
        sql = chain[0][1]["sql_raw"]
        if sql.startswith("INSERT"):
            found.setdefault(chain[-1][1].get("error_class", "EXECUTED"), set()).add(sql.split("'")[1])
    return found


def backends(postgres: Postgres) -> list[int]:
    found = postgres.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'gatewayd' AND state IS NOT NULL")
    return [row["pid"] for row in found]


async def at_once(port: int, *calls: Callable[[Agent], Awaitable[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each call by an agent of its own; the answers, in the order of `calls`."""
    answers: dict[int, dict[str, Any]] = {}

    async def one(number: int) -> None:
        async with Agent(port) as agent:
            answers[number] = await calls[number](agent)

    async with trio.open_nursery() as nursery:
        for number in range(len(calls)):
            nursery.start_soon(one, number)
    return [answers[number] for number in range(len(calls))]


def asks(sql: str, **more: str) -> Callable[[Agent], Awaitable[dict[str, Any]]]:
    return lambda agent: agent.query(sql, **more)


async def until_done(agent: Agent, sql: str) -> None:
    while "error" in await agent.query(sql):  # noqa: ASYNC110 - another process
        await trio.sleep(0.1)


async def is_alive(port: int) -> bool:
    async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
        return bool((await http.get(f"http://127.0.0.1:{port}/health")).json() == {"ok": True})


async def told(running: Running, line: str) -> None:
    if line not in running.text:  # it may have come before the line that says it serves
        await trio.to_thread.run_sync(running.wait_for, f'"{line}"')


async def stopped(running: Running) -> None:
    assert await trio.to_thread.run_sync(running.stop) == 0


async def test_a_failover_first_to_a_standby_then_to_a_primary(
    start_postgres: StartPostgres, tmp_path: Path, free_port: int
) -> None:
    """The sessions of before lead to a server that has become read-only and stays up; writes find the new primary."""
    former, promoted = start_postgres(), start_postgres()
    dsn = former.create_database(SHOP + "CREATE FUNCTION nap() RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(600)';", tcp=True)
    promoted.create_database(SHOP)
    policy = POLICY + 'functions: {allow: ["public.nap"]}'
    way = Way(former)
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(way.run)
            # Its password is of the cluster, and both clusters have the same.
            with gatewayd(way.dsn(dsn), tmp_path, free_port, policy) as running:
                async with Agent(free_port) as agent:
                    await until_done(agent, "INSERT INTO written VALUES ('primary')")
                    await trio.to_thread.run_sync(former.stop)
                    (former.server.data / "standby.signal").touch()
                    await trio.to_thread.run_sync(former.start)
                    await until_done(agent, "SELECT 1")
                    await fill_the_pool(former, free_port)
                    refused = await agent.query("INSERT INTO written VALUES ('standby')")
                    assert failed(refused, "0A000", "25006")
                    assert "recovery" in refused["error"]["message"] or "read-only" in refused["error"]["message"]
                    assert (await agent.query("SELECT count(*) FROM written"))["rows"] == [{"count": 1}]
                    way.lead_to(promoted)
                    await until_done(agent, "INSERT INTO written VALUES ('promoted')")
                    assert (await agent.query("SELECT tag FROM written"))["rows"] == [{"tag": "promoted"}]
                await stopped(running)
            nursery.cancel_scope.cancel()
    assert written(former, dsn) == {"primary"}
    assert outcomes(tmp_path)["EXECUTED"] == {"primary", "promoted"}


async def fill_the_pool(postgres: Postgres, port: int) -> None:
    """As many sessions as there may be, all with this server, and then all at rest."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(at_once, port, *[asks("SELECT nap()")] * POOL)
        busy = "FROM pg_stat_activity WHERE application_name = 'gatewayd' AND state = 'active' AND query LIKE '%nap()%'"
        await until(lambda: postgres.query(f"SELECT count(*) {busy}") == [{"count": POOL}])
        postgres.query(f"SELECT pg_cancel_backend(pid) {busy}")


@pytest.mark.parametrize("seconds", [6, pytest.param(60, marks=pytest.mark.soak)])
async def test_a_server_of_which_every_process_is_stopped(
    seconds: int, own_postgres: Postgres, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    """Deadlines fire here, the other database and /health go on, and after it goes on nothing is left over."""
    ill, well = own_postgres.create_database(SHOP), postgres.create_database(SHOP)
    limits = "limits: {statement_timeout_ms: 500, lock_timeout_ms: 500}"
    policy = f'databases: [{{name: ill, url: "${{ILL}}", {limits}}}, {{name: well, url: "${{WELL}}"}}]'
    with trio.fail_after(PATIENCE_S + seconds), gatewayd("", tmp_path, free_port, policy, ILL=ill, WELL=well) as running:
        async with Agent(free_port) as agent:
            for name in ("ill", "well"):
                answers = await at_once(free_port, *[asks("SELECT 1", database=name)] * 4)
                assert all(answer.get("rows") for answer in answers), answers
            before = descriptors(running.process.pid)
            ends: list[dict[str, Any]] = []

            async def ask_the_ill() -> None:
                async with Agent(free_port) as other:
                    while not thawed.is_set():
                        ends.append(await other.query("SELECT 1", database="ill"))

            thawed = trio.Event()
            async with trio.open_nursery() as nursery:
                with frozen(own_postgres):
                    for _ in range(POOL + 2):
                        nursery.start_soon(ask_the_ill)
                    ends_at = trio.current_time() + seconds
                    count = 0
                    while trio.current_time() < ends_at or len(ends) < POOL + 2:
                        count += 1
                        answer = await agent.query(f"SELECT {count} AS n", database="well")
                        assert answer["rows"] == [{"n": count}]
                        assert await is_alive(free_port)
                        await trio.sleep(0.1)
                    assert all(failed(answer, "57014", "08006", "08001", "53300") for answer in ends), ends
                thawed.set()
            while not (await agent.query("SELECT 1", database="ill")).get("rows"):  # noqa: ASYNC110 - another process
                await trio.sleep(0.1)
            await until(lambda: not running_there(own_postgres, "SELECT 1"))
            await until(lambda: len(backends(own_postgres)) <= POOL)
            await until(lambda: descriptors(running.process.pid) <= before + POOL)
        await stopped(running)
    await until(lambda: not backends(own_postgres))
    assert {kinds(chain) for chain in chains(tmp_path).values()} <= FINISHED


async def test_each_session_is_terminated_at_rest_and_at_work(own_postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = own_postgres.create_database(SHOP)
    name = [asks("SELECT name FROM customers WHERE id = 7")] * POOL
    with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, POLICY) as running:
        await at_once(free_port, *name)
        before = descriptors(running.process.pid)
        for _ in range(3):  # at rest: nobody notices
            await terminate(own_postgres, backends(own_postgres))
            answers = await at_once(free_port, *name)
            assert [answer.get("rows") for answer in answers] == [[{"name": "name 7"}]] * POOL
        locker = await connect(dsn, Limits())  # at work: writes that wait for a lock, and reads
        await locker.begin("READ WRITE")
        await locker.execute("LOCK TABLE written IN SHARE MODE; SET application_name = 'locker'")
        ended: list[dict[str, Any]] = []

        async def ask() -> None:
            inserts = [asks(f"INSERT INTO written VALUES ('{number}')") for number in range(5)]
            ended.extend(await at_once(free_port, *inserts, *[asks(ENDLESS)] * 5))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gatewayd' AND state = 'active'"
            await until(lambda: own_postgres.query(busy) == [{"count": POOL}])
            await terminate(own_postgres, backends(own_postgres))
        locker.terminate()
        assert all(failed(answer, "57P01", "08006") for answer in ended), ended
        answers = await at_once(free_port, *name)
        assert [answer.get("rows") for answer in answers] == [[{"name": "name 7"}]] * POOL
        await until(lambda: descriptors(running.process.pid) <= before + POOL)
        assert len(backends(own_postgres)) <= POOL
        await stopped(running)
    assert not written(own_postgres, dsn)
    assert outcomes(tmp_path).keys() <= {"57P01", "08006"}


async def terminate(postgres: Postgres, pids: list[int]) -> None:
    postgres.query(f"SELECT pg_terminate_backend(pid) FROM unnest(ARRAY{pids}) AS pid")
    await until(lambda: not set(pids) & set(backends(postgres)))


async def test_no_connection_is_left_on_the_server(start_postgres: StartPostgres, tmp_path: Path, free_port: int) -> None:
    server = start_postgres(settings={"max_connections": "9", "max_wal_senders": "0"})  # three are for superusers alone
    server.execute(f"CREATE ROLE agent LOGIN PASSWORD '{PASSWORD}'")
    dsn = server.create_database(SHOP + "GRANT ALL ON written TO agent", user="agent", password=PASSWORD)
    with trio.fail_after(PATIENCE_S):
        hogs = [await connect(dsn, Limits()) for _ in range(6)]
        with pytest.raises(ExecutionFailed):
            await connect(dsn, Limits())
        with gatewayd(dsn, tmp_path, free_port, POLICY) as running:
            async with Agent(free_port) as agent:
                refused = await agent.query("INSERT INTO written VALUES ('refused')")
                assert failed(refused, "53300")
                assert "connection" in refused["error"]["message"]
                await told(running, log.DATABASE_UNREACHABLE)
                for hog in hogs[:2]:
                    hog.terminate()
                await until_done(agent, "INSERT INTO written VALUES ('done')")
                await told(running, log.DATABASE_REACHABLE)
                # More calls than the server has connections left: some are refused, none hangs, none gives a wrong answer.
                answers = await at_once(free_port, *[asks("SELECT count(*) FROM generate_series(1, 200000)")] * 8)
                assert all(answer.get("rows") == [{"count": 200_000}] or failed(answer, "53300") for answer in answers), answers
                for hog in hogs[2:]:
                    hog.terminate()
                await until_done(agent, "SELECT 1")
            await stopped(running)
    assert outcomes(tmp_path)["EXECUTED"] == written(server, dsn) == {"done"}


class Load:
    """Agents that know what each answer must be."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.ended: Counter[str] = Counter()
        self.done: set[str] = set()  # tags of writes that were answered as done

    async def run(self, agents: int, calls: int) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(agents):
                nursery.start_soon(self._agent, number, calls)

    async def _agent(self, number: int, calls: int) -> None:
        async with Agent(self.port) as agent:
            for count in range(calls):
                await self._ask(agent, number * 100_000 + count)

    async def _ask(self, agent: Agent, n: int) -> None:
        match n % 4:
            case 0:
                answer = await agent.query(f"INSERT INTO written VALUES ('{n}') RETURNING tag")
                wanted: list[dict[str, Any]] = [{"tag": str(n)}]
                if "error" not in answer:
                    self.done.add(str(n))
            case 1:
                answer = await agent.query(f"SELECT i FROM generate_series({n}, {n} + 99) AS i")
                wanted = [{"i": i} for i in range(n, n + 100)]
            case 2:
                answer = await agent.query(f"SELECT o.*, c.*, {n} AS n FROM orders o JOIN customers c ON c.id = customer LIMIT 0")
                wanted = []
            case _:
                answer = await agent.query(f"EXPLAIN SELECT {n} WHERE false")
                wanted = [{"QUERY PLAN": line} for line in PLAN]
        if "error" in answer:
            self.ended[answer["error"]["sqlstate"]] += 1
            assert failed(answer, "08006", "08007", "08001", "53300", "57014"), answer
        else:
            self.ended["answered"] += 1
            assert answer["rows"] == wanted, answer


PLAN = ("Result  (cost=0.00..0.01 rows=1 width=4)", "  One-Time Filter: false")


@pytest.mark.parametrize(
    ("calls", "faults"), [(40, 0.03), pytest.param(2000, 0.01, marks=pytest.mark.soak)], ids=["short", "one percent"]
)
async def test_packets_delayed_and_cut(calls: int, faults: float, own_postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = own_postgres.create_database(SHOP, tcp=True)
    way = Way(own_postgres, seed=calls, faults=faults)
    load = Load(free_port)
    with trio.fail_after(PATIENCE_S + calls):
        async with trio.open_nursery() as nursery:
            await nursery.start(way.run)
            with gatewayd(way.dsn(dsn), tmp_path, free_port, POLICY) as running:
                await load.run(8, calls)
                way.faults = 0.0
                async with Agent(free_port) as agent:
                    await until_done(agent, "SELECT 1")
                answers = await at_once(free_port, *[asks("SELECT count(*) FROM orders")] * POOL)
                assert [answer.get("rows") for answer in answers] == [[{"count": 200}]] * POOL
                assert len(backends(own_postgres)) <= POOL + way.cut
                assert descriptors(running.process.pid) < 40
                await stopped(running)
            nursery.cancel_scope.cancel()
    print(f"{load.ended.total()} calls: {dict(load.ended)}; {way.cut} cut, {way.delayed} delayed")
    assert way.cut
    assert way.delayed
    assert load.ended["answered"] > load.ended.total() / 2
    found = outcomes(tmp_path)
    there = written(own_postgres, dsn)
    assert load.done <= found["EXECUTED"] <= there
    assert there <= found["EXECUTED"] | found.get("08007", set())  # nothing that is said to have failed has happened


@pytest.fixture
def bouncer_folder(short_folder: Callable[[], Path]) -> Path:
    return short_folder()


IGNORED = "ignore_startup_parameters = " + ", ".join({*PINNED, *timeouts(Limits())} - UNDER_A_POOLER)
PINS = "SELECT current_setting('search_path') AS p, current_setting('transaction_read_only') AS r, interval '1 day' AS i"


@pytest.mark.parametrize(
    "settings", [(), pytest.param((IGNORED,), marks=pytest.mark.soak)], ids=["refuses settings", "ignores settings"]
)
async def test_behind_pgbouncer_in_transaction_mode(
    settings: tuple[str, ...], own_postgres: Postgres, bouncer_folder: Path, tmp_path: Path, free_port: int
) -> None:
    own_postgres.execute(
        "ALTER ROLE postgres SET search_path = other, public; ALTER ROLE postgres SET IntervalStyle = 'postgres'"
    )
    dsn = own_postgres.create_database(SHOP, tcp=True)
    load = Load(free_port)
    with trio.fail_after(PATIENCE_S), reserved_port() as port, pgbouncer(own_postgres, bouncer_folder, port, *settings):
        by_pgbouncer = dsn.replace(f":{own_postgres.port}/", f":{port}/")
        with gatewayd(by_pgbouncer, tmp_path, free_port, POLICY) as running:
            async with Agent(free_port) as agent:
                await until_done(agent, "SELECT 1")
                answers = await at_once(free_port, *[asks(PINS)] * 6)
                assert [answer.get("rows") for answer in answers] == [[{"p": "public, pg_temp", "r": "on", "i": "P1D"}]] * 6
                assert (await agent.query("SHOW statement_timeout"))["rows"] == [{"statement_timeout": f"{PATIENCE_S // 60}min"}]
                assert {table["name"] for table in (await agent.call("list_tables"))["tables"]} >= {"orders", "written"}
                assert failed(await agent.query("SELECT 1 / (id - id) FROM orders"), "22012")
                await load.run(8, 12)
                async with Agent(free_port) as other, trio.open_nursery() as nursery:
                    nursery.start_soon(other.query, ENDLESS)
                    await until(lambda: running_there(own_postgres, ENDLESS) == 1)
                    await other.cancel_last()
                    await until(lambda: not running_there(own_postgres, ENDLESS))
                    nursery.cancel_scope.cancel()  # a cancelled request has no answer
                await until_done(agent, "SELECT 1")
            await stopped(running)
    assert load.ended.keys() == {"answered"}
    found = outcomes(tmp_path)
    assert found["EXECUTED"] == load.done == written(own_postgres, dsn)
