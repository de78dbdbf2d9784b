"""Cancel a call at every await of the corridor, one after the other: rows, PostgreSQL, session and tasks are as they must be.

The injector finds the awaits itself: it counts how often the call's task comes to wait and cancels it there the n-th time, for
each n until the call ends first. So an await that is added tomorrow is covered on that day.
"""

from pathlib import Path

import pytest
import trio

from gatewayd.config.bounds import DatabaseBounds
from gatewayd.corridor.answer import Answer, Answered, Broken, Refused
from tests.conftest import Postgres
from tests.daemon.daemon_rig import SHOP, chains, kinds, running_there
from tests.faults.cancel_at import CancelAt
from tests.faults.corridor import Corridor, corridor

WHOLE = {"ATTEMPTED ALLOW EXECUTED", "ATTEMPTED ALLOW FAILED"}
STATEMENTS = {
    "read": ("SELECT count(*) FROM orders", Answered, WHOLE),
    "slow read": ("SELECT count(*) FROM generate_series(1, 300000) a", Answered, WHOLE),
    "write": ("INSERT INTO written VALUES ('{n}') RETURNING tag", Answered, WHOLE),
    "plan": ("EXPLAIN SELECT * FROM orders", Answered, WHOLE),
    "failure": ("SELECT 1 / (id - id) FROM orders", Broken, WHOLE),
    "refusal": ("SELECT * FROM secrets", Refused, {"ATTEMPTED DENY"}),
    "unknown name": ("SELECT * FROM nosuch_{n}", Broken, WHOLE),
    "large text": ("SELECT '" + "x" * 40_000 + "'", Answered, WHOLE),
}


async def cancelled_at(step: int, there: Corridor, sql: str) -> Answer | None:
    """The call's answer, or None when the cancellation at `step` ended it."""
    injector = CancelAt(step)
    injector.task = trio.lowlevel.current_task()
    trio.lowlevel.add_instrument(injector)
    try:
        with injector.scope:
            if step == 0:
                injector.scope.cancel()
            return await there.query(sql)
    finally:
        trio.lowlevel.remove_instrument(injector)
    return None


@pytest.mark.parametrize("what", STATEMENTS)
async def test_every_await(what: str, postgres: Postgres, tmp_path: Path) -> None:
    bounds = DatabaseBounds(row_writes_s=1000)  # the connections counted below are the calls' own
    sql, answer_type, allowed = STATEMENTS[what]
    dsn = postgres.create_database(SHOP)
    told: set[str] = set()
    with trio.fail_after(100):
        async with corridor(dsn, tmp_path, bounds=bounds) as there:
            await there.query("SELECT 1")  # what is opened once is open
            tasks = trio.lowlevel.current_statistics().tasks_living
            step, cancelled, uncancelled = -1, 0, 0
            while uncancelled < 3:  # past the last await: a few more, for steps vary with the speed of the machine
                step += 1
                answer = await cancelled_at(step, there, sql.format(n=step))
                if answer is None:
                    cancelled, uncancelled = cancelled + 1, 0
                else:
                    uncancelled += 1
                    assert isinstance(answer, answer_type)
                    told.add(str(step))
                assert there.database.pool.statistics().in_use == 0
                assert trio.lowlevel.current_statistics().tasks_living == tasks
                assert not running_there(postgres, sql.format(n=step)[:60])
            assert isinstance(await there.query("SELECT 1"), Answered)
    assert cancelled >= 2, "the injector hit nothing"
    attempts = list(chains(tmp_path).values())[1:-1]
    assert {kinds(chain) for chain in attempts} <= allowed
    if what == "write":
        written = {row["tag"] for row in postgres.query("SELECT tag FROM written", dsn)}
        executed = {chain[0][1]["sql_raw"].split("'")[1] for chain in attempts if kinds(chain).endswith("EXECUTED")}
        assert told <= executed == written
