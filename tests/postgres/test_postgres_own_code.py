"""A read that runs the database's own functions leaves no setting behind, whatever those functions call themselves."""

import pytest

from gatewayd.catalog import unread
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.execute.own_code import may_run_own_code
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.conftest import Postgres
from tests.postgres.postgres_asking import asking

SCHEMA = """
    CREATE FUNCTION sets() RETURNS text STABLE LANGUAGE plpgsql AS
      $$ BEGIN PERFORM set_config('search_path', 'pg_catalog', false); RETURN set_config('TimeZone', 'Asia/Tokyo', false); END $$;
    CREATE FUNCTION sets(integer) RETURNS integer STABLE LANGUAGE sql AS $$ SELECT length(sets()) $$;
    CREATE TABLE t (a integer);
    CREATE TABLE guarded (a integer);
    ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
    CREATE VIEW plain AS SELECT a FROM t;
    CREATE VIEW setting AS SELECT sets() AS s;
    CREATE VIEW deeper AS SELECT s FROM setting, plain;
    CREATE OPERATOR ~~~ (RIGHTARG = integer, FUNCTION = sets);
    CREATE FUNCTION sets_ok(integer) RETURNS boolean STABLE LANGUAGE sql AS $$ SELECT sets() <> '' $$;
    CREATE DOMAIN checked AS integer CHECK (sets_ok(VALUE));
    INSERT INTO t VALUES (1);
"""
RUNNING = [
    "SELECT sets()",
    "SELECT a.sets FROM (SELECT 1) AS a",
    "TABLE setting",
    "SELECT * FROM deeper",
    "SELECT ~~~ a FROM t",
    "SELECT a::checked FROM t",
    "EXPLAIN (ANALYZE, TIMING OFF) SELECT sets()",
    "EXPLAIN SELECT * FROM t WHERE a::text = sets()",
]


@pytest.mark.parametrize("sql", RUNNING)
async def test_settings_that_own_code_changes_do_not_outlive_the_read(postgres: Postgres, sql: str) -> None:
    async with asking(postgres.create_database(SCHEMA), size=1) as run:
        run.catalog = await read_catalog(run.pool, 1)
        statement = analyze(sql)
        assert isinstance(statement, Statement)
        assert may_run_own_code(statement, run.catalog)
        if "a.sets" not in sql:
            await run(sql)
        assert await run.rows("SHOW TimeZone") == [{"TimeZone": "UTC"}]
        assert await run.rows("SHOW search_path") == [{"search_path": "public, pg_temp"}]


@pytest.mark.parametrize(
    ("sql", "runs"),
    [("SELECT upper('x'), a + 1 FROM t", False), ("TABLE plain", False), ("SHOW TimeZone", False), ("TABLE guarded", True)],
)
async def test_only_reads_that_may_run_own_code_are_rolled_back(postgres: Postgres, sql: str, runs: bool) -> None:
    async with asking(postgres.create_database(SCHEMA), size=1) as run:
        statement = analyze(sql)
        assert isinstance(statement, Statement)
        assert may_run_own_code(statement, await read_catalog(run.pool, 1)) is runs
        assert may_run_own_code(statement, unread("test"))
