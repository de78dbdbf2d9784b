"""Writes against a real PostgreSQL: exact counts, RETURNING within limits, one transaction, nothing half done."""

from typing import Any

import msgspec
import pytest

from gatewayd.policy.file.model import Limits
from tests.postgres.postgres_asking import asking

TABLES = """
CREATE TABLE items (id int PRIMARY KEY, name text);
INSERT INTO items SELECT i, 'item ' || i FROM generate_series(1, 100) i;
CREATE TABLE parents (id int PRIMARY KEY);
CREATE TABLE children (parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
"""


@pytest.fixture
def dsn(postgres: Any) -> Any:
    return postgres.create_database(TABLES)


@pytest.mark.parametrize(
    ("sql", "affected", "rows"),
    [
        ("UPDATE items SET name = 'x' WHERE id <= 3", 3, []),
        ("DELETE FROM items WHERE id > 98", 2, []),
        ("INSERT INTO items VALUES (101, 'ü'), (102, NULL); -- two", 2, []),
        ("INSERT INTO items VALUES (1, 'x') ON CONFLICT DO NOTHING", 0, []),
        ("INSERT INTO items VALUES (101, 'ü') RETURNING *", 1, [{"id": 101, "name": "ü"}]),
        ("INSERT INTO items VALUES (1, 'x') ON CONFLICT DO NOTHING RETURNING id", 0, []),
        ("INSERT INTO items VALUES (1) ON CONFLICT (id) DO UPDATE SET name = 'x' RETURNING name", 1, [{"name": "x"}]),
        ("UPDATE items SET name = 'x' WHERE id = 3 RETURNING id, id, name AS id", 1, [{"id": 3, "id_2": 3, "id_3": "x"}]),
        ("DELETE FROM items USING parents RETURNING parents.*, items.*", 0, []),
        ("WITH x AS (SELECT 7 AS i) DELETE FROM items USING x WHERE id = i RETURNING items.*", 1, [{"id": 7, "name": "item 7"}]),
        (
            "WITH x AS (DELETE FROM items WHERE id = 7 RETURNING *) INSERT INTO items SELECT 700, name FROM x RETURNING *",
            1,
            [{"id": 700, "name": "item 7"}],
        ),
        ("MERGE INTO items USING (VALUES (1)) AS v(id) ON items.id = v.id WHEN MATCHED THEN DELETE", 1, []),
        ("CREATE TABLE made AS SELECT * FROM items", 100, []),
        ("SELECT id INTO made FROM items WHERE id < 5", 4, []),
        ("CREATE TABLE made (id int)", None, []),
    ],
)  # fmt: skip
async def test_counts_and_rows(dsn: str, sql: str, affected: int | None, rows: list[object]) -> None:
    async with asking(dsn) as ask:
        result = await ask(sql)
        assert result.rows_affected == affected
        assert [msgspec.json.decode(row) for row in result.rows] == rows
        assert result.rows_returned == (len(rows) if "RETURNING" in sql else None)
        assert ask.pool.statistics().idle == 1


@pytest.mark.parametrize("limits", [Limits(max_rows=10), Limits(max_bytes=300)])
async def test_a_cut_answer_counts_every_row(dsn: str, limits: Limits) -> None:
    async with asking(dsn) as ask:
        result = await ask("UPDATE items SET name = 'changed' RETURNING *", limits)
        assert (result.rows_affected, result.rows_returned, result.truncated) == (100, len(result.rows), True)
        assert 0 < len(result.rows) <= 12
        assert await ask.rows("SELECT count(*) AS n FROM items WHERE name = 'changed'") == [{"n": 100}]


async def test_a_returned_row_alone_above_max_bytes_is_left_out(dsn: str) -> None:
    async with asking(dsn) as ask:
        result = await ask("UPDATE items SET name = repeat('x', 1000) WHERE id = 1 RETURNING *", Limits(max_bytes=100))
    assert (result.rows, result.rows_affected, result.truncated) == ((), 1, True)


async def test_a_select_under_a_modifying_with_runs_whole(dsn: str) -> None:
    sql = "WITH gone AS (DELETE FROM items RETURNING id) SELECT id, id FROM gone ORDER BY id"
    async with asking(dsn) as ask:
        result = await ask(sql, Limits(max_rows=2))
        assert result.rows == (b'{"id":1,"id_2":1}', b'{"id":2,"id_2":2}')
        assert result.truncated
        assert await ask.rows("SELECT count(*) AS n FROM items") == [{"n": 0}]


async def test_locking_reads_run_read_write(dsn: str) -> None:
    async with asking(dsn) as ask:
        assert await ask.rows("SELECT id FROM items ORDER BY id LIMIT 1 FOR UPDATE") == [{"id": 1}]
        assert await ask.rows("SELECT * FROM (SELECT id FROM items WHERE id = 2 FOR SHARE) AS s") == [{"id": 2}]


async def test_deferred_constraints_speak_before_success(dsn: str) -> None:
    async with asking(dsn) as ask:
        failure = await ask.fails("INSERT INTO children VALUES (1)")
        assert failure.sqlstate == "23503"
        assert "Key (parent)=(1)" in failure.message
        assert await ask.rows("SELECT count(*) AS n FROM children") == [{"n": 0}]
        assert (await ask.fails("INSERT INTO children VALUES (1) RETURNING *")).sqlstate == "23503"


@pytest.mark.parametrize(
    ("sql", "sqlstate", "at"),
    [
        ("; UPDATE items SET nope = 'ü'", "42703", "nope"),
        ("UPDATE items SET name = 'ü' WHERE id = 1 RETURNING nope", "42703", "nope"),
        ("WITH x AS (SELECT 'ü') UPDATE items SET name = 'é' RETURNING missing -- c", "42703", "missing"),
        ("WITH x AS (SELECT nope) DELETE FROM items RETURNING *", "42703", "nope"),
        ("WITH x AS (DELETE FROM items RETURNING id) SELECT nope FROM x", "42703", "nope"),
        ("CREATE TABLE items (id int)", "42P07", None),
    ],
)
async def test_errors_name_the_place_and_undo_everything(dsn: str, sql: str, sqlstate: str, at: str | None) -> None:
    async with asking(dsn) as ask:
        failure = await ask.fails(sql)
        assert (failure.sqlstate, failure.position) == (sqlstate, None if at is None else sql.index(at) + 1)
        assert await ask.rows("SELECT count(*) AS n FROM items WHERE name LIKE 'item %'") == [{"n": 100}]
        assert ask.pool.statistics().idle == 1


async def test_an_error_in_the_middle_undoes_everything(dsn: str) -> None:
    async with asking(dsn) as ask:
        assert (await ask.fails("UPDATE items SET name = (1 / (id - 50))::text RETURNING *")).sqlstate == "22012"
        assert await ask.rows("SELECT count(*) AS n FROM items WHERE name LIKE 'item %'") == [{"n": 100}]


async def test_nothing_outlives_what_is_allowed(dsn: str) -> None:
    """The same session after every kind of statement shows what a fresh one shows."""
    left = """
        SELECT (SELECT count(*) FROM pg_prepared_statements WHERE name <> '') AS prepared,
               (SELECT count(*) FROM pg_cursors WHERE name <> '') AS cursors,
               (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype IN ('advisory', 'tuple')) AS locks,
               (SELECT count(*) FROM pg_listening_channels()) AS channels,
               (SELECT count(*) FROM pg_class WHERE relpersistence = 't') AS temporary,
               (SELECT string_agg(name || '=' || setting, ' ') FROM pg_settings WHERE source = 'session') AS settings,
               current_setting('transaction_read_only') AS read_only, pg_backend_pid() AS pid
    """
    async with asking(dsn, size=1) as ask:
        before = await ask.rows(left)
        for sql in (
            "SELECT * FROM items",
            "SELECT set_config('search_path', 'elsewhere', true), set_config('default_transaction_read_only', 'off', true)",
            "SELECT pg_advisory_xact_lock(1)",
            "SELECT id FROM items FOR UPDATE",
            "UPDATE items SET name = 'x' RETURNING *",
            "CREATE TABLE made AS SELECT 1 AS a",
            "EXPLAIN ANALYZE SELECT * FROM items",
            "SHOW search_path",
        ):
            await ask(sql)
        await ask.fails("SELECT 1/0")
        await ask.fails("UPDATE items SET id = 1")
        assert await ask.rows(left) == before
