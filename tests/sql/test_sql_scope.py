"""Which names are CTEs and which are tables, exactly as PostgreSQL decides (decision 3.3; traps 1, 2 and 16)."""

import pytest

from tests.conftest import Postgres
from tests.sql.sql_facts import relations

CASES = [
    # A target is never a CTE (15.1).
    ("WITH users AS (SELECT 1) DELETE FROM users", "users:rw"),
    ("WITH users AS (SELECT 1) UPDATE users SET a = 1 WHERE b", "users:rw"),
    ("WITH users AS (SELECT 1) INSERT INTO users VALUES (1)", "users:w"),
    ("WITH u AS (SELECT 1) MERGE INTO u USING u AS s ON u.a = s.a WHEN MATCHED THEN DO NOTHING", "u:rw"),
    ("WITH x AS (SELECT 1) SELECT * INTO x FROM x", "x:wc"),
    ("CREATE TABLE x AS WITH x AS (SELECT 1) SELECT * FROM x", "x:wc"),
    # Plain WITH: visible in later siblings and the main query only (15.2).
    ("WITH x AS (SELECT * FROM secrets), secrets AS (SELECT 1) SELECT * FROM x, secrets", "secrets:r"),
    ("WITH x AS (SELECT 1), y AS (SELECT * FROM x) SELECT * FROM y", ""),
    ("WITH x AS (SELECT * FROM x) SELECT * FROM x", "x:r"),
    # RECURSIVE: in all bodies of that WITH.
    ("WITH RECURSIVE x AS (SELECT * FROM y), y AS (SELECT 1) SELECT * FROM x", ""),
    ("WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT * FROM x) SELECT * FROM x", ""),
    ("WITH RECURSIVE x AS (WITH y AS (SELECT * FROM y) SELECT * FROM y) SELECT * FROM x", "y:r"),
    # The scope of a WITH ends with its own query.
    ("(WITH x AS (SELECT 1) SELECT * FROM x) UNION SELECT * FROM x", "x:r"),
    ("SELECT (WITH x AS (SELECT 1) SELECT * FROM x), (SELECT * FROM x)", "x:r"),
    ("WITH a AS (WITH x AS (SELECT 1) SELECT * FROM x) SELECT * FROM a, x", "x:r"),
    ("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x) q, x", "x:r"),
    ("INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x RETURNING (SELECT 1 FROM x)", "t:rw x:r"),
    # It reaches into everything below.
    ("WITH x AS (SELECT 1) SELECT (SELECT 1 FROM x) FROM (SELECT * FROM x) q WHERE EXISTS (SELECT FROM x)", ""),
    ("WITH x AS (SELECT 1) SELECT 1 UNION (SELECT * FROM x UNION SELECT * FROM x ORDER BY 1)", ""),
    ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x ON CONFLICT (a) DO UPDATE SET b = (SELECT 1 FROM x)", "t:rw"),
    ("WITH x AS (SELECT 1) UPDATE t SET a = 1 FROM x WHERE (SELECT true FROM x) RETURNING (SELECT 1 FROM x)", "t:rw"),
    ("WITH x AS (SELECT 1) DELETE FROM t USING x WHERE t.a = x.a", "t:rw"),
    ("WITH x AS (DELETE FROM t WHERE a RETURNING *) SELECT * FROM x", "t:rw"),
    ("WITH x AS (SELECT 1), y AS (DELETE FROM t USING x WHERE true) SELECT 1", "t:rw"),
    ("WITH x AS (SELECT 1) SELECT * FROM f((SELECT 1 FROM x))", ""),
    ("WITH x AS (SELECT 1) SELECT 1 LIMIT (SELECT 1 FROM x)", ""),
    ("WITH x AS (SELECT 1) VALUES ((SELECT 1 FROM x))", ""),
    ("WITH x AS (SELECT 1) TABLE x", ""),
    # The inner name wins; a qualified name is never a CTE.
    ("WITH x AS (SELECT 1) SELECT * FROM (WITH x AS (SELECT * FROM y) SELECT * FROM x) q, x", "y:r"),
    ("WITH x AS (SELECT 1) SELECT * FROM public.x", "public.x:r"),
    ("WITH x AS (SELECT 1) SELECT * FROM db.public.x", "db.public.x:r"),
    # Names are as the parser folds them.
    ('WITH "X" AS (SELECT 1) SELECT * FROM X', "x:r"),
    ("WITH X AS (SELECT 1) SELECT * FROM x", ""),
    ('WITH x AS (SELECT 1) SELECT * FROM "x"', ""),
    # CREATE VIEW's own name is no table of its query.
    ("CREATE VIEW v AS WITH a AS (SELECT * FROM b) SELECT * FROM a", "v:wc b:r"),
]


@pytest.mark.parametrize(("sql", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_name_is_a_cte_only_where_postgresql_sees_it(sql: str, expected: str) -> None:
    assert relations(sql) == expected


READS = [(sql, expected) for sql, expected in CASES if "w" not in expected and "db." not in sql]
DEPENDS = """SELECT DISTINCT d.refobjid::regclass::text AS name FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
WHERE r.ev_class = 'seen'::regclass AND d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
AND d.refobjid <> r.ev_class"""


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> str:
    tables = "; ".join(f"CREATE TABLE {name} (a int)" for name in ("x", "y", "secrets"))
    return postgres.create_database(f"{tables}; CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")


@pytest.mark.parametrize(("sql", "expected"), READS, ids=[case[0] for case in READS])
def test_postgresql_reads_the_same_tables(sql: str, expected: str, postgres: Postgres, database: str) -> None:
    postgres.execute(f"DROP VIEW IF EXISTS seen; CREATE VIEW seen AS SELECT count(*) FROM ({sql}) AS q", database)
    named = {use.split(":")[0].removeprefix("public.") for use in expected.split()}
    assert {row["name"] for row in postgres.query(DEPENDS, database)} == named


LOCKS = [
    ("SELECT * FROM t FOR UPDATE", "t:rw"),
    ("SELECT * FROM t FOR KEY SHARE", "t:rw"),
    ("SELECT * FROM t, u FOR SHARE OF u", "t:r u:rw"),
    ("SELECT * FROM t AS a, t AS b FOR UPDATE OF b", "t:r t:rw"),
    ("SELECT * FROM s.t, r.t FOR UPDATE OF t", "s.t:rw r.t:rw"),
    ("SELECT * FROM s.t JOIN r.t ON true FOR UPDATE OF t", "s.t:rw r.t:rw"),
    ("SELECT * FROM t JOIN t ON true JOIN t ON true FOR UPDATE OF t", "t:rw t:rw t:rw"),
    ("SELECT * FROM t JOIN u ON true LEFT JOIN v ON true FOR UPDATE", "t:rw u:rw v:rw"),
    ("SELECT * FROM (t JOIN u ON true) FOR UPDATE OF u", "t:r u:rw"),
    ("SELECT * FROM (SELECT * FROM (SELECT * FROM t) q) r FOR UPDATE", "t:rw"),
    ("SELECT * FROM (SELECT * FROM t WHERE a IN (SELECT a FROM u)) q, v FOR UPDATE OF q", "t:rw u:r v:r"),
    ("SELECT (SELECT 1 FROM t FOR UPDATE) FROM u", "t:rw u:r"),
    ("SELECT * FROM t WHERE a IN (SELECT a FROM u) FOR UPDATE", "t:rw u:r"),
    ("SELECT * FROM t FOR UPDATE OF nothing_here", "t:rw"),
]


@pytest.mark.parametrize(("sql", "expected"), LOCKS, ids=[case[0] for case in LOCKS])
def test_a_locking_clause_writes_what_it_locks(sql: str, expected: str) -> None:
    assert relations(sql) == expected
