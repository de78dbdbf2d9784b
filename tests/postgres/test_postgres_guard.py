"""The guard: what a decision rests on is asked for again after the statement has run."""

import contextlib
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

import pytest
import trio

from gatewayd.catalog import Catalog
from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.policy.file.model import FullRedact, Limits, Policy, TableAccess
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute import guard as guards
from gatewayd.postgres.execute.evidence import Evidence, evidence
from gatewayd.postgres.execute.result import CatalogChanged, ExecutionFailed, Result
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.pool import Pool
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.conftest import Postgres
from tests.postgres.inspected import SCHEMA
from tests.postgres.postgres_asking import PATIENT

HIDES = Policy(TableAccess("read_write", {("public", "hidden"): "deny"}))
MASKS = Policy(TableAccess("read_write"), column_masks={("public", "t"): {"note": FullRedact()}})
OPEN = Policy(TableAccess("read"))
TABLES = """
CREATE TABLE hidden (id int);
CREATE TABLE t (id int PRIMARY KEY, note text);
CREATE TABLE other (id int, extra int);
CREATE TABLE parted (id int) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 (id int);
CREATE TABLE kin (LIKE t);
CREATE VIEW v AS SELECT id FROM t;
CREATE VIEW over_v AS SELECT id FROM v;
CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION g(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE VIEW calls_f AS SELECT f(id) AS id FROM t;
CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE TYPE pair AS (a int, b int);
CREATE SCHEMA app; CREATE TABLE app.t (id int);
INSERT INTO t VALUES (1, 'one'); INSERT INTO other VALUES (1, 2);
"""


class There:
    """A database whose catalog was read once, and statements that rest on it."""

    def __init__(self, pool: Pool, catalog: Catalog, policy: Policy) -> None:
        self.pool, self.catalog, self.policy = pool, catalog, policy

    def rests_on(self, sql: str) -> Evidence | None:
        statement = analyze(sql)
        assert isinstance(statement, Statement), statement
        return evidence(statement, self.policy, self.catalog)

    async def __call__(self, sql: str) -> Result:
        statement = analyze(sql)
        assert isinstance(statement, Statement), statement
        permit = Permit(Allowed(statement, (), ""), "query", "audit")
        return await execute(self.pool, permit, Limits(), self.catalog, evidence=self.rests_on(sql))


class PoolBehindPooler(Pool):
    """Its sessions are those of a pooler that pins no settings: each transaction begins with them."""

    async def acquire(self, limits: Limits, caller: Hashable = None) -> Connection:
        connection = await super().acquire(limits, caller)
        connection.pins_locally = True
        return connection


@asynccontextmanager
async def decided(dsn: str, policy: Policy = HIDES, *, pooled: bool = False) -> AsyncIterator[There]:
    pool = (PoolBehindPooler if pooled else Pool)("test", dsn, Limits(), 3, bounds=PATIENT)
    try:
        yield There(pool, await read_catalog(pool, 1), policy)
    finally:
        with trio.CancelScope(shield=True):
            await pool.aclose()


@pytest.fixture(scope="module")
def template(postgres: Postgres) -> str:
    return postgres.create_database(TABLES)


@pytest.fixture
def dsn(postgres: Postgres, template: str) -> str:
    return postgres.copy_database(template)


CHANGES = {
    "replace view": ("SELECT id FROM v", "CREATE OR REPLACE VIEW v AS SELECT id FROM hidden"),
    "replace the view below": ("SELECT id FROM over_v", "CREATE OR REPLACE VIEW v AS SELECT id FROM hidden"),
    "swap tables": ("SELECT id FROM t", "ALTER TABLE t RENAME TO x; ALTER TABLE hidden RENAME TO t"),
    "rename and back": ("SELECT id FROM t", "ALTER TABLE t RENAME TO x; ALTER TABLE x RENAME TO t"),
    "drop and create": ("SELECT id FROM other", "DROP TABLE other; CREATE TABLE other (id int, extra int)"),
    "another schema": ("SELECT id FROM t", "ALTER TABLE app.t RENAME TO u; ALTER TABLE t SET SCHEMA app"),
    "swap schemas": ("SELECT id FROM app.t", "ALTER SCHEMA app RENAME TO x; CREATE SCHEMA app; CREATE TABLE app.t (id int)"),
    "attach a partition": ("SELECT id FROM parted", "ALTER TABLE parted ATTACH PARTITION part_2 FOR VALUES FROM (10) TO (20)"),
    "detach a partition": ("SELECT id FROM parted", "ALTER TABLE parted DETACH PARTITION part_1"),
    "new partition": ("SELECT id FROM parted", "CREATE TABLE part_3 PARTITION OF parted FOR VALUES FROM (20) TO (30)"),
    "read a partition that leaves": ("SELECT id FROM part_1", "ALTER TABLE parted DETACH PARTITION part_1"),
    "new child": ("SELECT id FROM t", "ALTER TABLE kin INHERIT t"),
    "add column": ("SELECT * FROM t", "ALTER TABLE t ADD COLUMN extra int"),
    "drop column": ("SELECT id FROM t", "ALTER TABLE t DROP COLUMN note"),
    "rename column": ("SELECT id FROM t", "ALTER TABLE t RENAME COLUMN note TO text"),
    "alter type": ("SELECT id FROM t", "ALTER TABLE t ALTER COLUMN note TYPE varchar"),
    "rule": ("INSERT INTO other VALUES (2)", "CREATE RULE r AS ON INSERT TO other DO ALSO DELETE FROM t"),
    "row security": ("SELECT id FROM t", "ALTER TABLE t ENABLE ROW LEVEL SECURITY"),
    "replace function": ("SELECT f(1)", "CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 2'"),
    "overload": ("SELECT f(1)", "CREATE FUNCTION f(bigint) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 2'"),
    "drop an overload": ("SELECT f(1)", "DROP FUNCTION f CASCADE"),
    "overload of a built-in": ("SELECT lower('A')", "CREATE FUNCTION lower(int) RETURNS int LANGUAGE sql AS 'SELECT 2'"),
    "function for a field": ("SELECT (v).f FROM v", "CREATE FUNCTION f(v) RETURNS int LANGUAGE sql AS 'SELECT 2'"),
    "function behind a view": (
        "SELECT id FROM calls_f",
        "CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 2'",
    ),
    "operator": (
        "SELECT 1 + 1",
        """CREATE FUNCTION plus(text, text) RETURNS text LANGUAGE sql AS 'SELECT $1';
           CREATE OPERATOR public.+ (LEFTARG = text, RIGHTARG = text, FUNCTION = plus)""",
    ),
    "cast": (
        "SELECT id::text FROM t",
        """CREATE FUNCTION to_pair(int) RETURNS pair LANGUAGE sql AS 'SELECT NULL::pair';
           CREATE CAST (int AS pair) WITH FUNCTION to_pair(int)""",
    ),
    "domain check": ("SELECT 1::small", "ALTER DOMAIN small ADD CHECK (f(VALUE) > 0)"),
    "swap types": (
        "SELECT 1::small",
        "ALTER DOMAIN small RENAME TO x; CREATE DOMAIN small AS int CHECK (f(VALUE) > 0)",
    ),
    "row type": ("SELECT NULL::pair", "ALTER TYPE pair ADD ATTRIBUTE c small"),
    "schema of all": ("SELECT lower('A')", "GRANT USAGE ON SCHEMA public TO CURRENT_USER"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
async def test_a_change_since_the_decision_is_noticed(postgres: Postgres, dsn: str, what: str) -> None:
    await noticed(postgres, dsn, *CHANGES[what], pooled=False)


@pytest.mark.parametrize("what", ["replace view", "overload", "swap types", "function for a field", "rule"])
async def test_behind_a_pooler_too(postgres: Postgres, dsn: str, what: str) -> None:
    await noticed(postgres, dsn, *CHANGES[what], pooled=True)


async def noticed(postgres: Postgres, dsn: str, sql: str, change: str, *, pooled: bool) -> None:
    async with decided(dsn, pooled=pooled) as there:
        with contextlib.suppress(ExecutionFailed):  # a function that is not there yet
            await there(sql)
        postgres.execute(change, dsn)
        with pytest.raises(CatalogChanged):
            await there(sql)
        there.catalog = await read_catalog(there.pool, 2)
        told = ""
        try:
            await there(sql)
        except ExecutionFailed as failure:  # the name may mean nothing any more
            told = failure.message
        assert "changed while it ran" not in told  # decided anew, it holds


KEYS = {
    "unique index": "CREATE UNIQUE INDEX ON t (note)",
    "check": "ALTER TABLE t ADD CHECK (note <> 'x')",
    "foreign key to it": "CREATE TABLE of_t (id int REFERENCES t)",
}


@pytest.mark.parametrize("what", KEYS)
async def test_under_masks_a_new_key_is_noticed(postgres: Postgres, dsn: str, what: str) -> None:
    async with decided(dsn, MASKS) as there:
        await there("SELECT id FROM t")
        postgres.execute(KEYS[what], dsn)
        with pytest.raises(CatalogChanged):
            await there("SELECT id FROM t")
        assert (await there("SELECT id FROM other")).rows


UNMOVED = {
    "rows": "INSERT INTO t VALUES (7, 'seven'); DELETE FROM t WHERE id = 7",
    "vacuum": "VACUUM t",
    "analyze": "ANALYZE t",
    "freeze": "VACUUM FREEZE pg_class, pg_attribute, pg_proc, pg_namespace",
    "another table": "CREATE TABLE elsewhere (id int); ALTER TABLE other ADD COLUMN more int",
    "another function": "CREATE FUNCTION nobody_calls(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "a temporary namesake": "CREATE TEMP TABLE t (id int); CREATE TYPE pg_temp.small AS (a int)",
}


@pytest.mark.parametrize("what", UNMOVED)
async def test_what_changes_nothing_of_it_is_not_in_the_way(postgres: Postgres, dsn: str, what: str) -> None:
    async with decided(dsn) as there:
        for statement in UNMOVED[what].split("; "):
            postgres.execute(statement, dsn)
        assert (await there("SELECT *, id::small, f(id) FROM t")).rows_returned == 1
        assert (await there("UPDATE t SET note = 'x'")).rows_affected == 1


async def test_both_readings_of_the_marks_agree_on_everything(postgres: Postgres) -> None:
    """What was read for all relations at once, the guard finds again for each; with overloads, domains, aggregates, ranges."""
    dsn = postgres.create_database(SCHEMA)
    async with decided(dsn) as there:
        named = [each for each in there.catalog.relations.values() if each.oid >= 16384 and each.kind != "index"]
        assert len(named) > 10
        for each in named:
            assert each.shape_mark
        shapes = tuple((each.oid, each.shape_mark) for each in named)
        keys = tuple((each.oid, each.keys_mark) for each in named)
        async with there.pool.connection() as connection:
            await guards.ask(connection, Evidence(shapes=shapes, keys=keys, everywhere=there.catalog.everywhere_mark))
            for oid, mark in shapes:
                with pytest.raises(CatalogChanged):
                    await guards.ask(connection, Evidence(shapes=((oid, mark ^ 1),)))
        for sql in (
            "SELECT slug('a'), noisy_sum(1), lower('x'), 'a' === 'b', 'happy'::mood, '{}'::email[], NULL::contact",
            "SELECT NULL::address_range",
            "SELECT * FROM bigger, nosy, cached, ruled, events, people",
        ):
            await there(sql)


async def test_names_that_need_quoting_stay_names(postgres: Postgres) -> None:
    name = 'it\'s \\ a "name", {really}'
    quoted = '"' + name.replace('"', '""') + '"'
    made = f"CREATE FUNCTION {quoted}(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'"
    dsn = postgres.create_database(f"CREATE TABLE hidden (id int); {made}; CREATE DOMAIN {quoted} AS int")
    async with decided(dsn) as there:
        sql = f"SELECT {quoted}(1), 1::{quoted}"
        rests_on = there.rests_on(sql)
        assert rests_on is not None
        assert (rests_on.functions, rests_on.types) == ((name,), (name,))
        await there(sql)
        postgres.execute(made.replace("(int)", "(text)").replace("$1", "1"), dsn)
        with pytest.raises(CatalogChanged):
            await there(sql)


async def test_where_nothing_is_hidden_only_stars_are_asked_for(postgres: Postgres, dsn: str) -> None:
    async with decided(dsn, OPEN) as there:
        assert there.rests_on("SELECT id FROM v") is None
        assert there.rests_on("SELECT * FROM t") is None  # one table's own names cannot be equal
        joined = there.rests_on("SELECT * FROM t JOIN other USING (id)")
        assert joined is None or joined.everywhere is None


@pytest.mark.parametrize("pooled", [False, True], ids=["session", "pooler"])
async def test_the_words_of_a_failure_are_held_back_too(postgres: Postgres, dsn: str, pooled: bool) -> None:
    """The planner prints the constant of the view that was put in place."""
    async with decided(dsn, pooled=pooled) as there:
        with pytest.raises(Exception, match="division by zero"):
            await there("SELECT id / 0 FROM t")
        postgres.execute("CREATE OR REPLACE VIEW v AS SELECT 'canary'::text::int AS id", dsn)
        with pytest.raises(CatalogChanged):
            await there("SELECT id FROM v WHERE id > 1")
        with pytest.raises(CatalogChanged):
            await there("EXPLAIN SELECT id FROM v")
        with pytest.raises(CatalogChanged):
            await there("INSERT INTO other SELECT id FROM v")


async def test_a_write_that_met_another_catalog_is_undone(postgres: Postgres, dsn: str) -> None:
    async with decided(dsn) as there:
        postgres.execute("CREATE RULE r AS ON INSERT TO other DO ALSO DELETE FROM t", dsn)
        for sql in ("INSERT INTO other VALUES (5)", "INSERT INTO other VALUES (5) RETURNING id"):
            with pytest.raises(CatalogChanged):
                await there(sql)
        assert postgres.query("SELECT (SELECT count(*) FROM t) AS t, (SELECT count(*) FROM other) AS o", dsn) == [
            {"t": 1, "o": 1}
        ]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD COLUMN more int",
        "CREATE INDEX ON t (note)",
        "CREATE VIEW w AS SELECT * FROM v",
        "CREATE TABLE copied AS SELECT * FROM t",
        "CREATE TABLE part_3 PARTITION OF parted FOR VALUES FROM (20) TO (30)",
        "CREATE TABLE of_t (id int REFERENCES t)",
        "TRUNCATE t",
        "DROP TABLE other",
    ],
)
async def test_what_a_statement_itself_changes_is_not_held_against_it(postgres: Postgres, dsn: str, sql: str) -> None:
    async with decided(dsn) as there:
        await there(sql)


async def test_a_definition_of_another_table_than_was_decided_about_is_undone(postgres: Postgres, dsn: str) -> None:
    async with decided(dsn) as there:
        postgres.execute("ALTER TABLE t RENAME TO x; ALTER TABLE hidden RENAME TO t", dsn)
        for sql in ("ALTER TABLE t ADD COLUMN more int", "TRUNCATE t", "CREATE TABLE copied AS SELECT * FROM t"):
            with pytest.raises(CatalogChanged):
                await there(sql)
        assert postgres.query(
            "SELECT to_regclass('copied') AS made, count(*) AS n FROM pg_attribute WHERE attname = 'more'", dsn
        ) == [{"made": None, "n": 0}]


async def test_a_trigger_may_make_a_partition(postgres: Postgres, dsn: str) -> None:
    postgres.execute(
        "CREATE FUNCTION make() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "EXECUTE 'CREATE TABLE IF NOT EXISTS made () INHERITS (t)'; RETURN NEW; END $$;"
        "CREATE TRIGGER make AFTER INSERT ON other FOR EACH ROW EXECUTE FUNCTION make()",
        dsn,
    )
    async with decided(dsn) as there:
        assert (await there("INSERT INTO other SELECT id FROM t")).rows_affected == 1
        assert postgres.query("SELECT count(*) AS n FROM pg_inherits WHERE inhrelid = 'made'::regclass", dsn) == [{"n": 1}]


async def test_a_session_whose_guard_is_gone_is_not_used_again(postgres: Postgres, dsn: str) -> None:
    async with decided(dsn) as there:
        await there("SELECT id FROM t")
        async with there.pool.connection() as connection:
            await connection.execute("DEALLOCATE ALL")
        with pytest.raises(Exception, match="gatewayd_guard"):
            await there("SELECT id FROM t")
        await there("SELECT id FROM t")


async def test_repeatable_read_by_default_does_not_blind_the_guard(postgres: Postgres, dsn: str) -> None:
    name = dsn.split("/")[3].split("?")[0]
    postgres.execute(f'ALTER DATABASE "{name}" SET default_transaction_isolation = serializable')
    async with decided(dsn) as there:
        async with there.pool.connection() as connection:
            (row,) = await connection.fetch("SELECT current_setting('transaction_isolation')")
        assert row[0] == "read committed"
