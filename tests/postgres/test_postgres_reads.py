"""Reads against a real PostgreSQL: limits, names, settings, errors."""

from typing import Any

import msgspec
import pytest

from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.postgres.execute.run import execute
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.postgres.postgres_asking import asking

TABLES = """
CREATE TABLE users (id int PRIMARY KEY, name text);
INSERT INTO users SELECT i, 'user ' || i FROM generate_series(1, 50) i;
CREATE TABLE orders (id int, user_id int, q text);
INSERT INTO orders VALUES (7, 1, 'a');
CREATE SEQUENCE numbers;
CREATE FUNCTION scribble() RETURNS int LANGUAGE sql AS 'INSERT INTO users VALUES (0, NULL) RETURNING id';
"""


@pytest.fixture(scope="module")
def dsn(postgres: Any) -> Any:
    return postgres.create_database(TABLES)


async def test_rows_are_json_objects_in_order(dsn: str) -> None:
    async with asking(dsn) as ask:
        result = await ask("SELECT id, name FROM users ORDER BY id DESC LIMIT 2; -- the last")
    assert result.rows == (b'{"id":50,"name":"user 50"}', b'{"id":49,"name":"user 49"}')
    assert (result.rows_returned, result.rows_affected, result.truncated) == (2, None, False)


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT 1 AS a, 2 AS a, 3 AS a", ["a", "a_2", "a_3"]),
        ("SELECT count(*), count(*)", ["count", "count_2"]),
        ("SELECT * FROM users JOIN orders ON user_id = users.id", ["id", "name", "id_2", "user_id", "q"]),
        ("SELECT users.*, id FROM users LIMIT 1", ["id", "name", "id_2"]),
        ("SELECT * FROM users JOIN orders USING (id)", ["id", "name", "user_id", "q"]),
        ("SELECT id FROM users WHERE false", []),
        ("SELECT q FROM orders AS q", ["q"]),
        ("SELECT 1 AS q, 2 AS r, 3 AS w, 4 AS t, 5 AS j", ["q", "r", "w", "t", "j"]),
        ("SELECT 1, 2", ["?column?", "?column?_2"]),
        ("VALUES (1, 2)", ["column1", "column2"]),
        ("SELECT * FROM generate_series(1, 1) AS a(x), generate_series(2, 2) AS b(x)", ["x", "x_2"]),
        (f'SELECT 1 AS "{"x" * 63}", 2 AS "{"x" * 63}"', ["x" * 63, "x" * 61 + "_2"]),
    ],
)
async def test_every_value_has_a_key_of_its_own(dsn: str, sql: str, keys: list[str]) -> None:
    async with asking(dsn) as ask:
        rows = await ask.rows(sql)
    assert [list(row) for row in rows] == ([keys] if keys else [])


async def test_no_columns_are_empty_objects(dsn: str) -> None:
    async with asking(dsn) as ask:
        assert (await ask("SELECT FROM users LIMIT 2")).rows == (b"{}", b"{}")


async def test_max_rows_cuts_and_says_so(dsn: str) -> None:
    async with asking(dsn) as ask:
        cut = await ask("SELECT id FROM users", Limits(max_rows=49))
        whole = await ask("SELECT id FROM users", Limits(max_rows=50))
    assert (len(cut.rows), cut.rows_returned, cut.truncated) == (49, 49, True)
    assert (len(whole.rows), whole.truncated) == (50, False)


async def test_max_bytes_cuts_between_rows(dsn: str) -> None:
    row = len(b'{"id":10}')
    async with asking(dsn) as ask:
        result = await ask("SELECT id FROM users WHERE id >= 10 ORDER BY id", Limits(max_bytes=3 * row + row - 1))
        exact = await ask("SELECT id FROM users WHERE id BETWEEN 10 AND 12", Limits(max_bytes=3 * row))
    assert (result.rows_returned, result.truncated) == (3, True)
    assert (exact.rows_returned, exact.truncated) == (3, False)


async def test_a_row_alone_above_max_bytes_is_left_out(dsn: str) -> None:
    async with asking(dsn) as ask:
        result = await ask("SELECT repeat('x', 1000) AS x", Limits(max_bytes=500))
    assert (result.rows, result.rows_returned, result.truncated) == ((), 0, True)


@pytest.mark.parametrize(
    "sql",
    ["SELECT nextval('numbers')", "SELECT scribble()", "EXPLAIN ANALYZE SELECT scribble()", "SELECT * FROM users FOR SHARE"],
)
async def test_a_read_cannot_write(dsn: str, sql: str) -> None:
    statement = analyze(sql)
    assert isinstance(statement, Statement)
    statement = msgspec.structs.replace(statement, locks=False)
    async with asking(dsn) as ask:
        with pytest.raises(ExecutionFailed) as caught:
            await execute(ask.pool, Permit(Allowed(statement, (), ""), "", ""), Limits(), ask.catalog)
    assert caught.value.sqlstate == "25006"


@pytest.mark.parametrize(
    ("sql", "sqlstate", "at"),
    [
        ("SELECT nope FROM users", "42703", "nope"),
        ("SELECT 'ü', nope FROM users", "42703", "nope"),
        ("; SELECT id FROM nowhere -- x", "42P01", "nowhere"),
        ("SELECT 1/0", "22012", None),
        ("SELECT id, id FROM users WHERE missing = 1", "42703", "missing"),
        ("SELECT * FROM users JOIN nowhere USING (id)", "42P01", "nowhere"),
        ("EXPLAIN SELECT nope FROM users", "42703", "nope"),
    ],
)
async def test_errors_name_the_place_in_the_agents_text(dsn: str, sql: str, sqlstate: str, at: str | None) -> None:
    async with asking(dsn) as ask:
        failure = await ask.fails(sql)
        assert (failure.sqlstate, failure.position) == (sqlstate, None if at is None else sql.index(at) + 1)
        assert await ask.rows("SELECT 1 AS a") == [{"a": 1}]
        assert ask.pool.statistics().idle == 1


async def test_show_and_explain_are_rows(dsn: str) -> None:
    async with asking(dsn) as ask:
        assert await ask.rows("SHOW search_path;") == [{"search_path": "public, pg_temp"}]
        plan = await ask("EXPLAIN (COSTS off) SELECT * FROM users")
        assert plan.rows == (b'{"QUERY PLAN":"Seq Scan on users"}',)
        (embedded,) = await ask.rows("EXPLAIN (FORMAT JSON) SELECT * FROM users")
        assert embedded["QUERY PLAN"][0]["Plan"]["Relation Name"] == "users"
        assert (await ask("EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM users", Limits(max_rows=1))).truncated


async def test_every_session_is_pinned_whatever_role_and_database_say(postgres: Any) -> None:
    dsn = postgres.create_database("""
        CREATE ROLE odd LOGIN;
        ALTER ROLE odd SET search_path = 'pg_temp, public';
        ALTER ROLE odd SET TimeZone = 'Asia/Tokyo';
        ALTER ROLE odd SET IntervalStyle = 'sql_standard';
        ALTER ROLE odd SET DateStyle = 'German';
        ALTER ROLE odd SET default_transaction_read_only = off;
        ALTER ROLE odd SET statement_timeout = 0;
        ALTER ROLE odd SET extra_float_digits = -15;
        ALTER ROLE odd SET bytea_output = 'escape';
        ALTER ROLE odd SET standard_conforming_strings = off;
    """, user="odd")  # fmt: skip
    names = (
        "search_path", "TimeZone", "IntervalStyle", "DateStyle", "default_transaction_read_only", "statement_timeout",
        "extra_float_digits", "bytea_output", "standard_conforming_strings", "application_name", "lock_timeout",
    )  # fmt: skip
    async with asking(dsn, Limits(statement_timeout_ms=12_000, lock_timeout_ms=1_500)) as ask:
        columns = ", ".join(f"current_setting('{name}') AS \"{name}\"" for name in names)
        (row,) = await ask.rows(f"SELECT {columns}")
    assert list(row.values()) == [
        "public, pg_temp", "UTC", "iso_8601", "ISO, MDY", "on", "12s", "1", "hex", "on", "gatewayd", "1500ms",
    ]  # fmt: skip


async def test_new_limits_reach_open_sessions(dsn: str) -> None:
    async with asking(dsn) as ask:
        await ask("SELECT 1 AS a")
        ask.pool.repin(Limits(statement_timeout_ms=50))
        assert (await ask.fails("SELECT pg_sleep(10)")).sqlstate == "57014"
        assert ask.pool.statistics().idle == 1


async def test_a_megabyte_of_text_runs(dsn: str) -> None:
    sql = "SELECT length('" + "ü" * 400_000 + "') AS n"
    async with asking(dsn) as ask:
        assert (await ask(sql)).rows == (b'{"n":400000}',)


async def test_a_row_of_a_megabyte_is_whole(dsn: str) -> None:
    async with asking(dsn) as ask:
        (row,) = (await ask("SELECT repeat('ü', 500000) AS x")).rows
    assert msgspec.json.decode(row) == {"x": "ü" * 500_000}
