"""What PostgreSQL would run: calls, operators, types, and selections that may be calls (decision 3.5)."""

import pytest

from gatewayd.sql.facts.statement import Star
from tests.conftest import Postgres
from tests.sql.sql_facts import refused, statement

FUNCTIONS = [
    ("SELECT f()", {("f", 0)}),
    ("SELECT s.f(1, 2)", {("s.f", 2)}),
    ("SELECT f(a => 1, b => g(2))", {("f", 2), ("g", 1)}),
    ("SELECT f(VARIADIC ARRAY[1])", {("f", -1)}),
    ("SELECT count(*), count(DISTINCT a)", {("count", 0), ("count", 1)}),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", {("percentile_cont", 2)}),
    ("SELECT f() OVER (PARTITION BY g() ORDER BY h() ROWS i() PRECEDING)", {("f", 0), ("g", 0), ("h", 0), ("i", 0)}),
    ("SELECT count(*) FILTER (WHERE f()) FROM g() WHERE h()", {("count", 0), ("f", 0), ("g", 0), ("h", 0)}),
    ("SELECT * FROM ROWS FROM (f(1), g()) WITH ORDINALITY", {("f", 1), ("g", 0)}),
    ("SELECT 1 LIMIT f() OFFSET g()", {("f", 0), ("g", 0)}),
    ("SELECT extract(year FROM a), a AT TIME ZONE 'x'", {("pg_catalog.extract", 2), ("pg_catalog.timezone", 2)}),
    ("SELECT a LIKE b ESCAPE 'c', a SIMILAR TO b", {("pg_catalog.like_escape", 2), ("pg_catalog.similar_to_escape", 1)}),
    ("SELECT CURRENT_USER, CURRENT_DATE, SESSION_USER", set()),
    ("SELECT COALESCE(a, b), GREATEST(a, b), NULLIF(a, b), CASE WHEN a THEN b END, ROW(a)", set()),
    ("SELECT * FROM t TABLESAMPLE BERNOULLI (f())", {("f", 0)}),
    ("SELECT * FROM t TABLESAMPLE s.method (1)", {("s.method", 1)}),
    (
        "INSERT INTO t VALUES (f()) ON CONFLICT (g(a)) DO UPDATE SET b = h() RETURNING i()",
        {("f", 0), ("g", 1), ("h", 0), ("i", 0)},
    ),
    ("CREATE TABLE t (a int DEFAULT nextval('s'), CHECK (f(a)))", {("nextval", 1), ("f", 1)}),
    ("CREATE INDEX i ON t (f(a) text_pattern_ops) WHERE g()", {("f", 1), ("g", 0)}),
    ("CREATE VIEW v AS SELECT f()", {("f", 0)}),
    ("ALTER TABLE t ALTER a TYPE int USING f(a)", {("f", 1)}),
    ("EXPLAIN SELECT f()", {("f", 0)}),
    ("SELECT * FROM JSON_TABLE('1', '$' PASSING a AS x COLUMNS (b int))", {("pg_catalog.to_jsonb", 1)}),
    ("SELECT db.s.f()", {("s.f", 0)}),
]


OLDER = [
    ("SELECT json_value(a, 'b'), json_query(a, 'b')", {("json_value", 170000), ("json_query", 170000)}),
    ("SELECT * FROM json_exists('a', 'b')", {("json_exists", 170000)}),
    (
        "SELECT json(a), json_scalar(b), json_serialize(c)",
        {("json", 170000), ("json_scalar", 170000), ("json_serialize", 170000)},
    ),
    (
        "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE RETURNING merge_action()",
        {("merge_action", 170000)},
    ),
    ("SELECT json_array(a), json_object()", {("json_array", 160000), ("json_object", 160000)}),
    ("SELECT json_object(a, b)", {("json_object", 0), ("json_object", 160000)}),
    ("SELECT system_user", {("system_user", 0), ("system_user", 160000)}),
    ("SELECT json_arrayagg(a), json_objectagg('k': b)", {("json_arrayagg", 160000), ("json_objectagg", 160000)}),
    ("SELECT json_array(SELECT 1)", {("json_array", 160000)}),
]


@pytest.mark.parametrize(("sql", "expected"), OLDER, ids=[case[0] for case in OLDER])
def test_grammar_that_older_servers_read_as_calls(sql: str, expected: set[tuple[str, int]]) -> None:
    """On PostgreSQL 16 `json_value(a, 'b')` runs whatever function somebody gave that name."""
    assert {(use.name, use.grammar_since) for use in statement(sql).functions} == expected


@pytest.mark.parametrize(("sql", "expected"), FUNCTIONS, ids=[case[0] for case in FUNCTIONS])
def test_functions(sql: str, expected: set[tuple[str, int]]) -> None:
    found = {(f"{use.schema}.{use.name}" if use.schema else use.name, use.arguments) for use in statement(sql).functions}
    assert found == expected


def test_a_trigger_function_is_marked() -> None:
    [use] = statement("CREATE TRIGGER x AFTER INSERT ON t EXECUTE FUNCTION app.f('a')").functions
    assert (use.schema, use.name, use.trigger) == ("app", "f", True)


OPERATORS = [
    ("SELECT a + b", {"+"}),
    ("SELECT - a, a OPERATOR(s.@@) b", {"-", "s.@@"}),
    ("SELECT a IN (1), b NOT IN (1, 2)", {"=", "<>"}),
    ("SELECT a BETWEEN 1 AND 2", {">=", "<="}),
    ("SELECT a NOT BETWEEN SYMMETRIC 1 AND 2", {"<", ">"}),
    ("SELECT a LIKE b, a NOT ILIKE b, a SIMILAR TO b", {"~~", "!~~*", "~"}),
    ("SELECT a = ANY (b), a < ALL (SELECT 1)", {"=", "<"}),
    ("SELECT a IN (SELECT 1)", {"="}),
    ("SELECT (a, b) = (SELECT 1, 2)", {"="}),
    ("SELECT (a, b) < (1, 2)", {"<"}),
    ("SELECT a IS DISTINCT FROM b", {"="}),
    ("SELECT NULLIF(a, b)", {"="}),
    ("SELECT CASE a WHEN b THEN c END", {"="}),
    ("SELECT * FROM t ORDER BY a USING OPERATOR(s.<<)", {"s.<<"}),
    ("SELECT array_agg(a ORDER BY b USING ~<~)", {"~<~"}),
    ("SELECT * FROM t JOIN u USING (a)", {"="}),
    ("SELECT * FROM t NATURAL JOIN u", {"="}),
    ("SELECT * FROM t CROSS JOIN u", set()),
    ("CREATE TABLE t (a int, EXCLUDE USING gist (a WITH OPERATOR(s.&&)))", {"s.&&"}),
    ("WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a FROM x) CYCLE a SET b USING c SELECT 1", {"="}),
    ("SELECT a IS NULL, NOT b, a AND b OR c", set()),
]


@pytest.mark.parametrize(("sql", "expected"), OPERATORS, ids=[case[0] for case in OPERATORS])
def test_operators(sql: str, expected: set[str]) -> None:
    assert {f"{use.schema}.{use.name}" if use.schema else use.name for use in statement(sql).operators} == expected


TYPES = [
    ("SELECT a::text, CAST(b AS app.mood), int '1'", {"text", "app.mood", "pg_catalog.int4"}),
    ("SELECT a::numeric(10, 2)[]", {"pg_catalog.numeric"}),
    ("SELECT * FROM f() AS x (a mood, b int)", {"mood", "pg_catalog.int4"}),
    ("SELECT * FROM ROWS FROM (f() AS (a mood)) x", {"mood"}),
    ("SELECT * FROM JSON_TABLE('1', '$' COLUMNS (a mood PATH '$', NESTED '$' COLUMNS (b app.mood)))", {"mood", "app.mood"}),
    ("SELECT * FROM XMLTABLE('/a' PASSING 'x' COLUMNS a mood)", {"mood"}),
    ("SELECT JSON_VALUE(a, '$' RETURNING mood), JSON_QUERY(a, '$' RETURNING app.mood)", {"mood", "app.mood"}),
    ("SELECT JSON_OBJECT('a': 1 RETURNING mood)", {"mood"}),
    ("SELECT XMLSERIALIZE(CONTENT a AS mood)", {"mood"}),
    ("CREATE TABLE t (a mood, b serial, c bigserial, d public.serial)", {"mood", "public.serial"}),
    ("CREATE TABLE t OF app.kind", {"app.kind"}),
    ("ALTER TABLE t ADD a mood, ALTER b TYPE app.mood", {"mood", "app.mood"}),
    ("CREATE SEQUENCE s AS mood", {"mood"}),
]


@pytest.mark.parametrize(("sql", "expected"), TYPES, ids=[case[0] for case in TYPES])
def test_types(sql: str, expected: set[str]) -> None:
    assert {f"{use.schema}.{use.name}" if use.schema else use.name for use in statement(sql).types} == expected


FIELDS = [
    # (statement, name, relation's name, columns, outputs)
    ("SELECT t.a FROM t", "a", "t", None, None),
    ("SELECT x.a FROM t AS x", "a", "t", None, None),
    ("SELECT s.t.a FROM s.t", "a", "t", None, None),
    ("SELECT db.s.t.a FROM s.t", "a", "t", None, None),
    ("SELECT public.t.a FROM t", "a", "t", None, None),
    ("SELECT q.a FROM (SELECT 1 AS a, 2 AS b) q", "a", None, ("a", "b"), None),
    ("SELECT q.a FROM (SELECT f(), x.y, 'z'::text) q", "a", None, ("f", "y", "text"), None),
    ("SELECT q.a FROM (VALUES (1, 2)) q", "a", None, ("column1", "column2"), None),
    ("SELECT q.a FROM (VALUES (1, 2)) q (a)", "a", None, ("a", "column2"), None),
    ("WITH q AS (SELECT 1 AS b) SELECT q.a FROM q", "a", None, ("b",), None),
    ("WITH q (c) AS (SELECT 1 AS b) SELECT q.a FROM q", "a", None, ("c",), None),
    ("WITH q AS (SELECT *, 1 AS b FROM t) SELECT q.a FROM q", "a", None, None, (Star(0), "b")),
    ("WITH q AS (SELECT * FROM t) SELECT q.a FROM q", "a", None, None, (Star(0),)),
    ("WITH q AS (SELECT t.* FROM t, u) SELECT r.a FROM (SELECT * FROM q) r", "a", None, None, (Star(0),)),
    ("WITH q AS (DELETE FROM t WHERE b RETURNING c, 1) SELECT q.a FROM q", "a", None, ("c", "?column?"), None),
    ("SELECT q.a FROM (SELECT 1 AS b UNION SELECT 2 AS a) q", "a", None, ("b",), None),
    ("SELECT j.a FROM (t CROSS JOIN u) AS j", "a", None, None, (Star(0), Star(1))),
    ("SELECT j.a FROM t JOIN u USING (a) AS j", "a", None, ("a",), None),
    ("SELECT x.a FROM t AS x (b)", "a", None, None, ("b", Star())),
    ("SELECT x.b FROM t AS x (b)", "b", None, ("b",), None),
    ("SELECT x.a FROM JSON_TABLE('1', '$' COLUMNS (a int, NESTED '$' COLUMNS (b int))) x", "a", None, ("a", "b"), None),
    ("SELECT x.a FROM XMLTABLE('/a' PASSING 'x' COLUMNS a int) x", "a", None, ("a",), None),
    ("SELECT x.a FROM f() AS x (a int, b int)", "a", None, ("a", "b"), None),
    ("SELECT x.b FROM f() AS x (a)", "b", None, None, ("a", Star())),
    ("SELECT x.a FROM f() AS x", "a", None, None, (Star(),)),
    ("UPDATE t SET b = u.a FROM u WHERE true", "a", "u", None, None),
    ("INSERT INTO t VALUES (1) ON CONFLICT (b) DO UPDATE SET b = excluded.a", "a", "t", None, None),
    ("UPDATE t SET b = 1 WHERE c RETURNING old.a", "a", "t", None, None),
    ("DELETE FROM t WHERE b RETURNING WITH (OLD AS o) o.a", "a", "t", None, None),
    ("CREATE RULE x AS ON UPDATE TO t DO ALSO DELETE FROM u WHERE new.a", "a", "t", None, None),
    ("CREATE TABLE t (b int, CHECK (t.a))", "a", None, ("b",), None),
    ("CREATE INDEX i ON t (f(t.a))", "a", "t", None, None),
    # What the text cannot tell.
    ("SELECT ('x'::text).a", "a", None, None, None),
    ("SELECT (t).a FROM t", "a", None, None, None),
    ("SELECT (SELECT t).a FROM t", "a", None, None, None),
    ("SELECT (f()).a", "a", None, None, None),
    ("SELECT (b[1]).a FROM t", "a", None, None, None),
    ("SELECT nowhere.a FROM t", "a", None, None, None),
    ("SELECT other.t.a FROM s.t", "a", None, None, None),
    ("SELECT s.x.a FROM s.t AS x", "a", None, None, None),
    ("SELECT t.a FROM s.t, r.t", "a", None, None, None),
]


@pytest.mark.parametrize(("sql", "name", "relation", "columns", "outputs"), FIELDS, ids=[case[0] for case in FIELDS])
def test_proof_of_a_selection(sql: str, name: str, relation: object, columns: object, outputs: object) -> None:
    found = statement(sql)
    [use] = [use for use in found.fields if use.name == name]
    assert (None if use.relation is None else found.relations[use.relation].name) == relation
    assert (use.columns, use.outputs) == (columns, outputs)


VISIBILITY = [
    # The innermost level that has the name decides.
    ("SELECT (SELECT x.a FROM u AS x) FROM t AS x", "u"),
    ("SELECT (SELECT x.a FROM u) FROM t AS x", "t"),
    # A subquery in FROM sees its siblings only when it is LATERAL.
    ("SELECT (SELECT 1 FROM u AS x, (SELECT x.a) q) FROM t AS x", "t"),
    ("SELECT (SELECT 1 FROM u AS x, LATERAL (SELECT x.a) q) FROM t AS x", "u"),
    ("SELECT (SELECT 1 FROM (SELECT x.a) q, u AS x) FROM t AS x", "t"),
    ("SELECT (SELECT 1 FROM LATERAL (SELECT x.a) q, u AS x) FROM t AS x", "t"),
    ("SELECT (SELECT 1 FROM u AS x JOIN LATERAL (SELECT x.a) q ON true) FROM t AS x", "u"),
    # Functions in FROM are lateral.
    ("SELECT (SELECT 1 FROM u AS x, f(x.a)) FROM t AS x", "u"),
    # ON sees its own join only.
    ("SELECT (SELECT 1 FROM u AS x, v JOIN w ON x.a) FROM t AS x", "t"),
    ("SELECT (SELECT 1 FROM u AS x JOIN w ON x.a) FROM t AS x", "u"),
    # An alias on a join hides what is inside.
    ("SELECT (SELECT x.a FROM (u AS x CROSS JOIN w) AS j) FROM t AS x", "t"),
    # WITH queries do not see the FROM of their own level.
    ("SELECT (WITH q AS (SELECT x.a) SELECT 1 FROM u AS x, q) FROM t AS x", "t"),
    # Nor do the arms of a set operation.
    ("SELECT (SELECT x.a UNION SELECT true FROM u AS x) FROM t AS x", "t"),
]


@pytest.mark.parametrize(("sql", "expected"), VISIBILITY, ids=[case[0] for case in VISIBILITY])
def test_which_range_item_a_qualifier_means(sql: str, expected: str) -> None:
    found = statement(sql)
    [use] = found.fields
    assert use.relation is not None
    assert found.relations[use.relation].name == expected


DEPENDS = """SELECT DISTINCT d.refobjid::regclass::text AS name FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
WHERE r.ev_class = 'seen'::regclass AND d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
AND d.refobjsubid > 0 AND d.refobjid <> r.ev_class"""


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> str:
    tables = "; ".join(f"CREATE TABLE {name} (a boolean)" for name in "tuvw")
    return postgres.create_database(f"{tables}; CREATE FUNCTION f(boolean) RETURNS int LANGUAGE sql AS 'SELECT 1'")


@pytest.mark.parametrize(("sql", "expected"), VISIBILITY, ids=[case[0] for case in VISIBILITY])
def test_postgresql_means_the_same_range_item(sql: str, expected: str, postgres: Postgres, database: str) -> None:
    postgres.execute(f"DROP VIEW IF EXISTS seen; CREATE VIEW seen (one) AS {sql}", database)
    assert [row["name"] for row in postgres.query(DEPENDS, database)] == [expected]


def test_stars_of_stars_do_not_grow() -> None:
    steps = ", ".join(f"q{n + 1} AS (SELECT a.*, b.* FROM q{n} a, q{n} b)" for n in range(40))
    found = statement(f"WITH q0 AS (SELECT 1 AS x, 2 AS y), {steps} SELECT *, q40.z FROM q40")
    assert found.outputs == (Star(), "z")
    assert found.fields[-1].columns is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM pg_temp.t",
        "SELECT * FROM pg_temp_3.t",
        "SELECT pg_temp.f()",
        "SELECT 1::pg_temp.t",
        "SELECT 1 OPERATOR(pg_temp.+) 1",
        "CREATE TEMP TABLE t (a int)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "CREATE TABLE pg_temp.t (a int)",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE TEMP SEQUENCE s",
        "SELECT 1 INTO TEMP t",
        "DROP TABLE pg_temp.t",
        "ALTER TABLE t SET SCHEMA pg_temp",
        "SELECT a FROM t UNION SELECT a FROM u FOR UPDATE",
        "SELECT 1 UNION SELECT 2 INTO t",
        "SELECT * FROM (SELECT 1 INTO t) q",
        "WITH x AS (SELECT 1), x AS (SELECT 2) SELECT 1",
        "SELECT * FROM (WITH x AS (DELETE FROM t WHERE a) SELECT 1) q",
        "UPDATE t SET a = 1 WHERE CURRENT OF c",
        "DROP TABLE t CASCADE",
        "TRUNCATE t CASCADE",
        "ALTER TABLE t DROP COLUMN a CASCADE",
        "ALTER TABLE t DROP CONSTRAINT a CASCADE",
        "ALTER TABLE t OWNER TO x",
        "ALTER TABLE t SET TABLESPACE x",
        "ALTER TABLE t SET ACCESS METHOD x",
        "CREATE TABLE t (a int) TABLESPACE x",
        "CREATE TABLE t (a int) USING x",
        "CREATE INDEX i ON t (a) TABLESPACE x",
        "GRANT SELECT ON ALL TABLES IN SCHEMA s TO PUBLIC",
        "GRANT EXECUTE ON FUNCTION f() TO PUBLIC",
        "GRANT USAGE ON SCHEMA s TO PUBLIC",
        "REVOKE SELECT ON t FROM x CASCADE",
        "COMMENT ON FUNCTION f() IS 'x'",
        "COMMENT ON SCHEMA s IS 'x'",
        "DROP FUNCTION f()",
        "DROP SCHEMA s",
        "DROP TYPE x",
        "DROP EXTENSION x",
        "ALTER TYPE x RENAME TO y",
        "ALTER SCHEMA x RENAME TO y",
        "ALTER FUNCTION f() SET SCHEMA y",
        "ALTER TYPE x ADD ATTRIBUTE a int",
        "CREATE RULE x AS ON INSERT TO t DO ALSO NOTIFY y",
        "CREATE SEQUENCE s SEQUENCE NAME x",
        "EXPLAIN (NOTHING_KNOWN) SELECT 1",
        "EXPLAIN EXECUTE x",
        "EXPLAIN DECLARE c CURSOR FOR SELECT 1",
        "CREATE TABLE t AS EXECUTE x",
    ],
)
def test_what_no_policy_can_grant(sql: str) -> None:
    assert refused(sql)
