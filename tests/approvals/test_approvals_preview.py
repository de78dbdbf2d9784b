"""What a write would touch, counted before it runs: the same rows as the write, or a reason (docs/approvals.md)."""

from pathlib import Path

import pytest
import trio

from gatewayd.approvals.counting import Uncountable, counting
from gatewayd.approvals.messages import Approved, GateAnswer, GateAsk
from gatewayd.catalog import Catalog
from gatewayd.config.bounds import DatabaseBounds
from gatewayd.corridor.answer import Answered, Broken, OnHold
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.approvals.gates import TABLES, WRITE, ToldGate, approve, held, policy_text
from tests.conftest import Postgres, StartPostgres
from tests.daemon.daemon_rig import chains, kinds
from tests.faults.cancel_at import CancelAt

MORE = """
CREATE TABLE parts (id integer, region text) PARTITION BY LIST (region);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b');
INSERT INTO parts SELECT i, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 40) i;
CREATE TABLE many AS SELECT i AS id FROM generate_series(1, 12000) i;
CREATE TABLE kept (id integer); ALTER TABLE kept ENABLE ROW LEVEL SECURITY;
CREATE TABLE ruled (id integer); CREATE RULE r AS ON DELETE TO ruled DO INSTEAD DELETE FROM log;
CREATE TABLE "Odd name" ("a b" integer); INSERT INTO "Odd name" VALUES (1), (2);
"""
# The write, and how many rows it touches when nothing narrows it further.
COUNTED = {
    "UPDATE accounts SET balance = 0 WHERE id <= 3": 3,
    "update only accounts as a set balance = a.balance + 1 -- all\n where a.id between 1 and 7 -- some\n": 7,
    "UPDATE accounts SET balance = 0": 100,
    "UPDATE accounts a SET balance = 0 FROM log l WHERE l.account = a.id": 10,  # 50 pairs, ten rows
    "UPDATE accounts a SET owner = (l.said IS DISTINCT FROM 'x')::text FROM log l WHERE l.account = a.id AND l.id < 3": 2,
    "UPDATE accounts SET (owner, balance) = (SELECT 'x', 2) WHERE id = 1 RETURNING *": 1,
    "DELETE FROM log": 50,
    "DELETE FROM log USING accounts a WHERE a.id = log.account AND a.id = 1 RETURNING log.id": 5,
    "WITH few AS (SELECT id FROM accounts LIMIT 4) DELETE FROM log WHERE account IN (SELECT id FROM few)": 20,
    "DELETE FROM parts WHERE region = 'a'": 20,
    "UPDATE parts SET id = 0 WHERE id <= 10": 10,
    'DELETE FROM "Odd name" WHERE "a b" = 2': 1,
    "DELETE FROM many": 10_001,
    "INSERT INTO log (said) VALUES ('a'), ('b')": 2,
    "INSERT INTO log DEFAULT VALUES": 1,
    "INSERT INTO log (said) SELECT owner FROM accounts WHERE id < 6": 5,
    "INSERT INTO log (said) (TABLE secrets) ": None,
    "INSERT INTO log (said) WITH q AS (SELECT 'x' AS x) SELECT x FROM q UNION ALL SELECT 'y'": 2,
    "MERGE INTO accounts a USING (SELECT 1 AS i UNION SELECT 200) s ON a.id = s.i WHEN MATCHED THEN DELETE": 1,
    "MERGE INTO accounts a USING (SELECT 1 AS i UNION SELECT 200) s ON a.id = s.i WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.i, 'x')": 2,
    "DELETE FROM kept": None,
    "DELETE FROM ruled": None,
    "DELETE FROM rich": None,
    "WITH gone AS (DELETE FROM log RETURNING id) SELECT count(*) FROM gone": None,
    "WITH gone AS (DELETE FROM log RETURNING id) UPDATE accounts SET balance = 0 WHERE id IN (SELECT id FROM gone)": None,
    "UPDATE accounts SET balance = 0 WHERE id = (SELECT id FROM log WHERE id = 1 FOR UPDATE)": None,
    "UPDATE accounts SET balance = 1 / (id - id) WHERE 1 / (id - id) = 1": None,
    "TRUNCATE log": None,
    "CREATE TABLE made (id integer)": None,
}


async def test_the_count_is_what_the_write_touches(postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES + MORE), ToldGate()
    async with held(gate, dsn, tmp_path, policy_text(hold_s=0, preview="true")) as there:
        for sql, rows in COUNTED.items():
            answer = await there.query(sql)
            if sql.startswith("INSERT INTO log (said) (TABLE secrets)"):  # what it reads is denied, so it is not asked about
                assert not isinstance(answer, OnHold)
                continue
            assert isinstance(answer, OnHold), (sql, answer)
            preview = gate.asked[-1].preview
            assert preview is not None
            assert preview.rows == rows, (sql, preview)
            assert (preview.why is not None) == (rows is None or sql.startswith("MERGE")), (sql, preview)
            assert bool(preview.plan) == (not sql.startswith(("TRUNCATE", "CREATE"))), sql
    for chain in chains(tmp_path).values():
        if "preview_of" in chain[0][1]:
            assert kinds(chain) in ("ATTEMPTED ALLOW EXECUTED", "ATTEMPTED ALLOW FAILED")
            assert all(payload["preview_of"] == chain[0][1]["preview_of"] for _, payload in chain)


@pytest.mark.parametrize("sql", [sql for sql, rows in COUNTED.items() if rows and sql.startswith(("UPDATE", "DELETE"))])
async def test_the_count_and_the_command_tag_agree(sql: str, postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES + MORE), ToldGate()
    gate.on_ask = approve
    async with held(gate, dsn, tmp_path, policy_text(preview="true")) as there:
        answer = await there.query(sql)
    assert isinstance(answer, Answered), answer
    preview = gate.asked[0].preview
    assert preview is not None
    assert preview.rows == min(answer.result.rows_affected or 0, 10_001)


async def test_a_write_beside_masks_is_counted(postgres: Postgres, tmp_path: Path) -> None:
    """A condition on a masked column is refused before anybody is asked; a masked column may be assigned."""
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    text = policy_text(hold_s=0, preview="true") + "column_masks: {accounts: {owner: null-out}}"
    async with held(gate, dsn, tmp_path, text) as there:
        assert isinstance(await there.query("UPDATE accounts SET owner = 'x' WHERE id = 1"), OnHold)
    assert gate.asked[0].preview is not None
    assert gate.asked[0].preview.rows == 1


async def test_a_count_waits_for_no_lock_and_no_long_scan(postgres: Postgres, tmp_path: Path) -> None:
    sleep = "CREATE FUNCTION slow(i integer) RETURNS boolean STABLE LANGUAGE sql AS 'SELECT pg_sleep(0.2) IS NOT NULL';"
    dsn, gate = postgres.create_database(TABLES + sleep), ToldGate()
    text = policy_text(hold_s=0, preview="true") + "functions: {allow: [public.slow]}"
    async with held(gate, dsn, tmp_path, text) as there:
        began = trio.current_time()
        assert isinstance(await there.query("DELETE FROM accounts WHERE slow(id)"), OnHold)
        assert trio.current_time() - began < 8
    preview = gate.asked[0].preview
    assert preview is not None
    assert preview.rows is None
    assert preview.why is not None
    assert "longer than 2 s" in preview.why or "too busy" in preview.why


def test_nothing_that_writes_is_ever_counted() -> None:
    """Whatever the text, the counting statement is a read, or there is none."""
    for sql in COUNTED:
        statement = analyze(sql)
        assert isinstance(statement, Statement)
        try:
            made = counting(statement, Catalog(1, "d"))
        except Uncountable:
            continue
        if made.sql is not None:
            asked = analyze(made.sql)
            assert isinstance(asked, Statement)
            assert (asked.category, asked.locks) == ("read", False)


# -- the bound where PostgreSQL does not count


async def bounded(_: GateAsk) -> GateAnswer:
    await trio.lowlevel.checkpoint()
    return Approved(by="ann", rows_at_most=1000)


async def test_a_bound_is_refused_where_rows_are_not_counted(start_postgres: StartPostgres, tmp_path: Path) -> None:
    server = start_postgres(settings={"track_counts": "off"})
    dsn, gate = server.create_database(TABLES), ToldGate()
    gate.on_ask = bounded
    async with held(gate, dsn, tmp_path, policy_text()) as there:
        answer = await there.query()
        assert isinstance(answer, Broken)
        assert (answer.sqlstate, "track_counts" in answer.message) == ("approval_bound", True)
        gate.on_ask = approve
        assert isinstance(await there.query(), Answered)  # without a bound it runs


FOREIGN = """
CREATE FOREIGN DATA WRAPPER wrapper;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER wrapper;
CREATE FOREIGN TABLE far (id integer) SERVER elsewhere;
CREATE TABLE near (id integer) PARTITION BY LIST (id);
CREATE FOREIGN TABLE near_far PARTITION OF near FOR VALUES IN (1) SERVER elsewhere;
"""


@pytest.mark.parametrize("table", ["far", "near"])
async def test_a_bound_is_refused_for_foreign_tables(table: str, postgres: Postgres, tmp_path: Path) -> None:
    dsn, gate = postgres.create_database(TABLES + FOREIGN), ToldGate()
    gate.on_ask = bounded
    nothing_hidden = policy_text().replace(", tables: {secrets: deny}", "")
    async with held(gate, dsn, tmp_path, nothing_hidden) as there:
        answer = await there.query(f"INSERT INTO {table} VALUES (1)")
    assert isinstance(answer, Broken), answer
    assert (answer.sqlstate, "foreign table" in answer.message) == ("approval_bound", True)


# -- cancelled at each await of a held write


@pytest.mark.parametrize("sql", [WRITE, "INSERT INTO log (said) VALUES ('x') RETURNING id"])
async def test_a_held_write_cancelled_at_any_await(sql: str, postgres: Postgres, tmp_path: Path) -> None:
    """What ran is what the audit says ran, and what the gate is told; no session, place or task is left."""
    bounds = DatabaseBounds(row_writes_s=1000)  # no read of the catalog comes between
    dsn, gate = postgres.create_database(TABLES), ToldGate()
    gate.on_wait = approve
    before = int(postgres.execute("SELECT sum(balance) + (SELECT count(*) * 3 FROM log) FROM accounts", dsn))
    with trio.fail_after(150):
        async with held(gate, dsn, tmp_path, policy_text(preview="true"), bounds) as there:
            await there.query("SELECT 1")
            tasks = trio.lowlevel.current_statistics().tasks_living
            step, uncancelled, cancelled = -1, 0, 0
            while uncancelled < 3:
                step += 1
                injector = CancelAt(step)
                injector.task = trio.lowlevel.current_task()
                trio.lowlevel.add_instrument(injector)
                answer = None
                try:
                    with injector.scope:
                        if step == 0:
                            injector.scope.cancel()
                        answer = await there.query(sql)
                finally:
                    trio.lowlevel.remove_instrument(injector)
                uncancelled, cancelled = (0, cancelled + 1) if answer is None else (uncancelled + 1, cancelled)
                assert answer is None or isinstance(answer, Answered)
                assert there.database.pool.statistics().in_use == 0
                assert there.approvals.statistics().held == 0
                assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert cancelled > 5
    own = [chain for chain in chains(tmp_path).values() if chain[0][1]["sql_raw"] == sql]
    allowed = {"ATTEMPTED", "ATTEMPTED ALLOW EXECUTED", "ATTEMPTED ALLOW FAILED"}
    assert {kinds(chain) for chain in own} <= allowed
    executed = sum(kinds(chain).endswith("EXECUTED") for chain in own)
    after = int(postgres.execute("SELECT sum(balance) + (SELECT count(*) * 3 FROM log) FROM accounts", dsn))
    assert after - before == 3 * executed
    assert sum(outcome.outcome == "executed" for outcome in gate.outcomes) == executed
