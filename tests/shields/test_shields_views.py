"""A view with a key of its own shows what its query shows: no condition of a statement runs on rows that it leaves out."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.masking.plan import Withheld
from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.masking_rig import Denied, Failed, Rig, rig

POLICY = """
table_access:
  default: read_write
  tables: {vault: deny, v: read, v_barrier: read, v_of_v: read, v_joined: read, v_notes: read}
functions: {allow: [public.tells]}
guardrails: {block_unqualified_dml: false}
"""


@pytest.fixture(scope="session")
def dsn(postgres: Postgres) -> str:
    return postgres.create_database((Path(__file__).parent / "views.sql").read_text())


@pytest.fixture
async def ask(dsn: str) -> AsyncIterator[Rig]:
    async with rig(dsn, POLICY) as made:
        yield made


ORACLES = [
    "SELECT id FROM v WHERE value::int > 0",
    "SELECT id FROM v_joined WHERE CASE WHEN value <> '33' THEN value::int ELSE 1 END > 0",
    "SELECT id FROM v_joined WHERE 1 / value::int >= 0",
    "SELECT id FROM v WHERE tells(value)",
    "SELECT id FROM public.v WHERE tells(v.value)",
    "SELECT public.v.id FROM public.v WHERE tells(public.v.value)",
    "SELECT a AS id FROM v AS x (a, b) WHERE tells(b)",
    "SELECT id FROM ONLY v WHERE tells(value)",
    "SELECT id FROM (SELECT * FROM v) AS q WHERE tells(value)",
    "WITH q AS (SELECT * FROM v) SELECT id FROM q WHERE tells(value)",
    "WITH v AS (SELECT * FROM v) SELECT id FROM v WHERE tells(value)",
    "SELECT q.id FROM (TABLE v) AS q WHERE tells(q.value)",
    "SELECT v.id FROM v JOIN notes AS n ON n.id = v.id AND tells(v.value)",
    "SELECT v.id FROM v LEFT JOIN notes AS n ON tells(v.value)",
    "SELECT id FROM v NATURAL JOIN notes WHERE tells(value)",
    "SELECT id FROM notes JOIN v USING (id) WHERE tells(v.value)",
    "SELECT v.id FROM v, LATERAL (SELECT tells(v.value) AS t) AS l WHERE l.t",
    "SELECT n.id FROM notes AS n, LATERAL (SELECT value FROM v WHERE v.id = n.id AND tells(value)) AS l",
    "SELECT id FROM notes AS n WHERE EXISTS (SELECT FROM v WHERE v.id = n.id AND tells(value))",
    "SELECT id FROM notes WHERE id IN (SELECT id FROM v WHERE tells(value))",
    "SELECT (SELECT count(*) FROM v WHERE tells(value)) AS id",
    "SELECT id FROM v AS w WHERE tells((w).value)",
    "SELECT (w.r).id FROM (SELECT v AS r FROM v) AS w WHERE tells((w.r).value)",
    "SELECT id FROM v WHERE tells(to_jsonb(v) ->> 'value')",
    "SELECT number AS id FROM v_of_v WHERE tells(word)",
    "SELECT id FROM v_joined WHERE tells(value)",
    "SELECT id FROM v UNION SELECT id FROM v WHERE tells(value)",
    "SELECT n.id FROM notes AS n JOIN v ON v.id = n.id WHERE tells(v.value) FOR UPDATE OF n",
    "INSERT INTO notes SELECT id + 100, value FROM v WHERE tells(value) RETURNING id",
    "UPDATE notes SET body = v.value FROM v WHERE v.id = notes.id AND tells(v.value) RETURNING notes.id",
    "DELETE FROM notes USING v WHERE v.id + 100 = notes.id AND tells(v.value) RETURNING notes.id",
    "MERGE INTO notes AS n USING v ON n.id = v.id AND tells(v.value) WHEN MATCHED THEN UPDATE SET body = v.value",
    "CREATE TABLE copied AS SELECT id FROM v WHERE tells(value)",
    "CREATE MATERIALIZED VIEW kept AS SELECT id FROM v WHERE tells(value)",
]

LATE = {
    "SELECT v.id FROM v LEFT JOIN notes AS n ON tells(v.value)",
    "SELECT v.id FROM v, LATERAL (SELECT tells(v.value) AS t) AS l WHERE l.t",
}
"""Where PostgreSQL itself runs the condition last."""


@pytest.mark.parametrize("sql", ORACLES)
async def test_no_condition_runs_on_what_the_view_leaves_out(ask: Rig, sql: str) -> None:
    outcome = await ask(sql)
    assert isinstance(outcome, Result), outcome
    if sql.startswith(("SELECT", "WITH")):
        assert outcome.rows


@pytest.mark.parametrize("sql", [each for each in ORACLES if each not in LATE])
async def test_without_the_fence_they_would_tell(ask: Rig, sql: str) -> None:
    assert await ask.fails_on_the_server(sql) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM v_unkeyed",
        "EXPLAIN SELECT * FROM v WHERE tells(value)",
        "EXPLAIN ANALYZE SELECT * FROM v",
        "SELECT * FROM v FOR UPDATE",
        "UPDATE v SET value = 'x' WHERE tells(value)",
        "DELETE FROM v WHERE tells(value)",
        "INSERT INTO v VALUES (9, 'x')",
        "MERGE INTO v USING notes AS n ON n.id = v.id WHEN MATCHED THEN DELETE",
    ],
)
async def test_what_cannot_be_fenced_is_refused_with_a_reason(ask: Rig, sql: str) -> None:
    outcome = await ask(sql)
    assert isinstance(outcome, Denied | Withheld), outcome


@pytest.mark.parametrize("name", ["v", "v_barrier"])
async def test_errors_near_hidden_rows_are_told_by_their_code(ask: Rig, name: str) -> None:
    outcome = await ask(f"SELECT id FROM {name} WHERE (value || 'x')::int = 1")
    assert isinstance(outcome, Failed)
    assert outcome.sqlstate == "22P02"
    assert "11x" not in outcome.message
    assert "withheld" in outcome.message


async def test_a_key_to_a_hidden_table_is_told_by_its_code(ask: Rig) -> None:
    outcome = await ask("INSERT INTO links VALUES (1, 77, 1)")
    assert isinstance(outcome, Failed)
    assert outcome.sqlstate == "23503"
    assert "77" not in outcome.message


async def test_the_database_speaks_where_nothing_hidden_is_near(ask: Rig) -> None:
    outcome = await ask("SELECT (id || 'x')::int FROM v_notes")
    assert isinstance(outcome, Failed)
    assert '"1x"' in outcome.message
    outcome = await ask("INSERT INTO notes VALUES (1, 'again')")
    assert isinstance(outcome, Failed)
    assert "(id)=(1)" in outcome.message


async def test_an_error_points_into_the_agents_own_text(ask: Rig) -> None:
    sql = "SELECT id FROM v WHERE nothing = 1"
    outcome = await ask(sql)
    assert isinstance(outcome, Failed)
    assert outcome.sqlstate == "42703"
    assert outcome.position == sql.index("nothing") + 1


async def test_rows_and_names_are_those_of_the_view(ask: Rig) -> None:
    assert await ask.rows("SELECT * FROM v ORDER BY id") == [{"id": 1, "value": "11"}, {"id": 3, "value": "33"}]
    assert await ask.rows("SELECT count(*) FROM v") == [{"count": 2}]
    assert await ask.rows("SELECT v FROM v WHERE id = 3") == [{"v": {"id": 3, "value": "33"}}]
