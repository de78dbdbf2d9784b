"""Names of result columns: what PostgreSQL calls them, asked from PostgreSQL itself (decision 6)."""

from typing import Any

import msgspec
import pytest

from gatewayd.sql.facts.statement import Star
from tests.conftest import Postgres
from tests.sql.sql_facts import statement

EXPRESSIONS = [
    "1",
    "a",
    "t.a",
    "public.t.a",
    "a AS b",
    '1 AS "X y"',
    "(pair).x",
    "(t).a",
    "list[1]",
    "list[1:2]",
    "(SELECT list)[1]",
    "upper('x')",
    "pg_catalog.upper('x')",
    "count(*) OVER ()",
    "a + 1",
    "- a",
    "NOT true",
    "a IS NULL",
    "a::text",
    "1::text",
    "'1'::int4",
    "'1'::integer",
    "CAST('1' AS numeric(3, 1))",
    "'1'::int::text",
    "'{1}'::int[]",
    "(a + 1)::text",
    "interval '1 day'",
    "date '2020-01-01'",
    "timestamp with time zone '2020-01-01'",
    "'x'::bpchar",
    "'x'::char(3)",
    "'x'::varchar(3)",
    "true::bool",
    "'x' COLLATE \"C\"",
    "upper('x') COLLATE \"C\"",
    "('1'::text COLLATE \"C\")",
    "CASE WHEN true THEN 1 END",
    "CASE WHEN true THEN 1 ELSE a END",
    "CASE WHEN true THEN 1 ELSE 1::int8 END",
    "CASE WHEN true THEN 1 ELSE CASE WHEN true THEN 1 ELSE upper('x')::int END END",
    "(CASE WHEN true THEN 1 END)::text",
    "COALESCE(a, 1)",
    "GREATEST(a, 1)",
    "LEAST(a, 1)",
    "NULLIF(a, 1)",
    "ARRAY[1, 2]",
    "ARRAY(SELECT 1)",
    "ROW(1, 2)",
    "(1, 2)",
    "EXISTS (SELECT 1)",
    "(SELECT 1)",
    "(SELECT a)",
    "(SELECT 1 AS z)",
    "(SELECT upper('x'))::text",
    "(SELECT 1 UNION SELECT 2 LIMIT 1)",
    "(VALUES (1))",
    "(WITH x AS (SELECT 1 AS y) SELECT y FROM x)",
    "1 IN (SELECT 1)",
    "1 = ANY (ARRAY[1])",
    "1 BETWEEN 0 AND 2",
    "'a' LIKE 'b'",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP(0)",
    "LOCALTIME",
    "CURRENT_USER",
    "USER",
    "SESSION_USER",
    "CURRENT_CATALOG",
    "CURRENT_SCHEMA",
    "extract(year FROM now())",
    "now() AT TIME ZONE 'UTC'",
    "position('a' IN 'b')",
    "substring('abc' FROM 2)",
    "trim(' x ')",
    "trim(LEADING FROM ' x')",
    "overlay('abc' PLACING 'x' FROM 1)",
    "normalize('x')",
    "'x' IS NORMALIZED",
    "COLLATION FOR ('x' COLLATE \"C\")",
    "json_object('a': 1)",
    "json_array(1)",
    "json_array(SELECT 1)",
    "'1' IS JSON",
]
NEEDS_17 = [
    "json_query('1', '$')",
    "json_value('1', '$')",
    "json_exists('1', '$')",
    "json('1')",
    "json_scalar(1)",
    "json_serialize('1')",
    "(json_value('1', '$'))::int",
]
TABLE = """CREATE TYPE pair AS (x int, y int); CREATE TABLE t (a int, pair pair, list int[]);
INSERT INTO t VALUES (1, '(1,2)', '{1,2}')"""
GROUPED = ["json_objectagg('a': 1)", "json_arrayagg(1)", "grouping(a)", "sum(a)", "count(*)", "count(*) FILTER (WHERE true)"]


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> str:
    return postgres.create_database(TABLE)


def names(postgres: Postgres, database: str, sql: str) -> list[str]:
    row: dict[str, Any] = msgspec.json.decode(postgres.execute(f"SELECT row_to_json(q) FROM ({sql} LIMIT 1) AS q", database))
    return list(row)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_column_is_named_as_postgresql_names_it(expression: str, postgres: Postgres, database: str) -> None:
    sql = f"SELECT {expression} FROM t"
    assert list(statement(sql).outputs) == names(postgres, database, sql)


@pytest.mark.parametrize("expression", GROUPED)
def test_an_aggregate_is_named_as_postgresql_names_it(expression: str, postgres: Postgres, database: str) -> None:
    sql = f"SELECT {expression} FROM t GROUP BY a"
    assert list(statement(sql).outputs) == names(postgres, database, sql)


@pytest.mark.parametrize("expression", NEEDS_17)
def test_a_json_function_is_named_as_postgresql_names_it(expression: str, postgres: Postgres, database: str) -> None:
    if int(postgres.execute("SHOW server_version_num")) < 170000:
        pytest.skip("the server does not know SQL/JSON query functions")
    sql = f"SELECT {expression} FROM t"
    assert list(statement(sql).outputs) == names(postgres, database, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "VALUES (1, 2)",
        "SELECT * FROM (VALUES (1, 2)) v",
        "SELECT * FROM (VALUES (1, 2)) v (x)",
        "SELECT v.*, 3 AS z FROM (VALUES (1, 2)) v (x, y)",
        "SELECT 1 AS x, 2 AS y UNION SELECT 3, 4 AS w",
        "WITH q (x) AS (SELECT 1, 2 AS y) SELECT * FROM q",
        "WITH q (x) AS (SELECT 1, 2 AS y) SELECT * FROM q AS r (p)",
        "WITH RECURSIVE q AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM q WHERE x < 3) SELECT * FROM q",
        "WITH RECURSIVE q AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM q WHERE x < 3) SEARCH DEPTH FIRST BY x SET y TABLE q",
        "WITH RECURSIVE q AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM q WHERE x < 3) CYCLE x SET y USING z SELECT * FROM q",
        "SELECT * FROM (SELECT 1 AS a) x JOIN (SELECT 1 AS b) y ON true",
        "SELECT * FROM (SELECT 1 AS b, 2 AS a) x JOIN (SELECT 2 AS a, 3 AS c) y USING (a)",
        "SELECT * FROM (SELECT 1 AS b, 2 AS a) x NATURAL JOIN (SELECT 3 AS c, 2 AS a) y",
        "SELECT j.* FROM ((SELECT 1 AS b, 2 AS a) x RIGHT JOIN (SELECT 3 AS c, 2 AS a) y USING (a)) AS j (p)",
        "SELECT y.* FROM (SELECT 1 AS b, 2 AS a) x JOIN (SELECT 3 AS c, 2 AS a) y USING (a)",
        "SELECT * FROM json_to_record('{}') AS x (a int, b text)",
        "SELECT * FROM (SELECT 1 AS a, 2 AS b) q (x), LATERAL (SELECT q.x AS z) r",
    ],
)
def test_stars_over_queries_are_written_out(sql: str, postgres: Postgres, database: str) -> None:
    assert list(statement(sql).outputs) == names(postgres, database, sql)


@pytest.mark.parametrize(
    ("sql", "outputs"),
    [
        ("SELECT * FROM t", (Star(0),)),
        ("SELECT *, 1 AS x FROM t", (Star(0), "x")),
        ("SELECT u.*, t.* FROM t, u", (Star(1), Star(0))),
        ("TABLE t", (Star(0),)),
        ("WITH q AS (SELECT * FROM t) SELECT q.*, a FROM q", (Star(0), "a")),
        ("SELECT * FROM t JOIN u USING (a)", (Star(),)),
        ("SELECT * FROM f()", (Star(),)),
        ("SELECT * FROM t AS x (a)", ("a", Star())),
        ("SELECT (f()).*", (Star(),)),
        # The embedded server has no XML.
        ("SELECT xmlelement(NAME a), xmlforest(1 AS b), xmlpi(NAME c)", ("xmlelement", "xmlforest", "xmlpi")),
        ("SELECT xmlconcat(a), xmlparse(CONTENT 'x'), a IS DOCUMENT", ("xmlconcat", "xmlparse", "?column?")),
        ("SELECT xmlserialize(CONTENT a AS text), xmlroot(a, VERSION '1')", ("xmlserialize", "xmlroot")),
        ("SELECT * FROM XMLTABLE('/a' PASSING a COLUMNS n FOR ORDINALITY, b text PATH '.')", ("n", "b")),
        ("SELECT (SELECT * FROM t)", (Star(),)),
        ("INSERT INTO t VALUES (1) RETURNING *, a + 1", (Star(0), "?column?")),
        ("UPDATE t SET a = 1 FROM u WHERE true RETURNING *", (Star(0), Star(1))),
        ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE RETURNING *", (Star(1), Star(0))),
        ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE RETURNING merge_action()", ("merge_action",)),
        ("UPDATE t SET a = 1 WHERE b RETURNING old.a, new.*", ("a", Star(0))),
        ("INSERT INTO t VALUES (1)", ()),
        ("EXPLAIN SELECT 1", ("QUERY PLAN",)),
        ("SELECT", ()),
        ("CREATE TABLE t AS SELECT 1", ()),
    ],
)
def test_what_the_text_leaves_to_the_catalog(sql: str, outputs: tuple[object, ...]) -> None:
    assert statement(sql).outputs == outputs
