"""The parser is newer than many servers: what it takes for grammar of SQL/JSON and MERGE, PostgreSQL 16 takes for calls."""

from pathlib import Path

import pytest

from gatewayd.corridor.answer import Refused
from tests.conftest import Postgres
from tests.faults.corridor import corridor

NAMES = ("json_value", "json_query", "json_exists", "json_scalar", "json_serialize", "merge_action")
CALLS = {name: f"{name}({arguments})" for name, arguments in zip(NAMES, ("t, 'b'",) * 3 + ("t", "t", ""), strict=True)}
SCHEMA = "CREATE TABLE secrets (word text); INSERT INTO secrets VALUES ('the word'); CREATE TABLE written (tag text);" + "".join(
    f'CREATE FUNCTION "{name}"({arguments}) RETURNS text LANGUAGE sql STABLE AS $$SELECT word FROM secrets$$;'
    for name, arguments in zip(NAMES, ("text, text",) * 3 + ("text", "text", ""), strict=True)
)


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_that_a_newer_parser_takes_for_grammar_is_decided_as_a_call(
    postgres: Postgres, tmp_path: Path, name: str
) -> None:
    dsn = postgres.create_database(SCHEMA)
    call = CALLS[name]
    for sql in (
        f"SELECT {call} FROM (VALUES ('a'::text)) AS v (t)",
        f"INSERT INTO written SELECT {call} FROM (VALUES ('a'::text)) AS v (t)",
        f"SELECT x.* FROM (VALUES ('a'::text)) AS v (t), LATERAL {call} AS x",
    ):
        plain = postgres.execute(sql + ("" if sql.startswith("SELECT") else " RETURNING tag"), dsn)
        assert "the word" in plain, "this server takes it for a call: without that the test says nothing"
        async with corridor(dsn, tmp_path) as open_one:
            answer = await open_one.query(sql)
        assert isinstance(answer, Refused)
        assert f"public.{name}" in answer.denied.reason
