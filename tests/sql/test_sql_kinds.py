"""Statement kinds, their category, how the shell runs them, and the guardrail sites (decisions 3.2, 3.6, 3.7)."""

import pytest

from tests.sql.sql_facts import refused, statement, unparsed

KINDS = [
    ("SELECT 1", "SELECT", "read"),
    ("VALUES (1)", "SELECT", "read"),
    ("TABLE t", "SELECT", "read"),
    ("SHOW timezone", "SHOW", "read"),
    ("EXPLAIN SELECT 1", "EXPLAIN", "read"),
    ("EXPLAIN DELETE FROM t WHERE a", "EXPLAIN", "row write"),
    ("EXPLAIN CREATE TABLE t AS SELECT 1", "EXPLAIN", "relation write"),
    ("INSERT INTO t VALUES (1)", "INSERT", "row write"),
    ("UPDATE t SET a = 1", "UPDATE", "row write"),
    ("DELETE FROM t", "DELETE", "row write"),
    ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", "MERGE", "row write"),
    ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", "SELECT", "row write"),
    ("SELECT 1 INTO t", "SELECT INTO", "relation write"),
    ("SELECT 1 INTO t UNION SELECT 2", "SELECT INTO", "relation write"),
    ("CREATE TABLE t (a int)", "CREATE TABLE", "relation write"),
    ("CREATE TABLE t AS SELECT 1", "CREATE TABLE AS", "relation write"),
    ("CREATE MATERIALIZED VIEW t AS SELECT 1", "CREATE MATERIALIZED VIEW", "relation write"),
    ("REFRESH MATERIALIZED VIEW t", "REFRESH MATERIALIZED VIEW", "relation write"),
    ("CREATE VIEW v AS SELECT 1", "CREATE VIEW", "relation write"),
    ("CREATE INDEX ON t (a)", "CREATE INDEX", "relation write"),
    ("CREATE SEQUENCE s", "CREATE SEQUENCE", "relation write"),
    ("CREATE TRIGGER x AFTER INSERT ON t EXECUTE FUNCTION f()", "CREATE TRIGGER", "relation write"),
    ("CREATE RULE x AS ON INSERT TO t DO NOTHING", "CREATE RULE", "relation write"),
    ("CREATE POLICY x ON t", "CREATE POLICY", "relation write"),
    ("ALTER POLICY x ON t TO PUBLIC", "ALTER POLICY", "relation write"),
    ("ALTER TABLE t ADD a int", "ALTER TABLE", "relation write"),
    ("ALTER VIEW v ALTER a SET DEFAULT 1", "ALTER VIEW", "relation write"),
    ("ALTER INDEX i SET (fillfactor = 70)", "ALTER INDEX", "relation write"),
    ("ALTER SEQUENCE s RESTART", "ALTER SEQUENCE", "relation write"),
    ("ALTER TABLE t RENAME TO u", "ALTER TABLE", "relation write"),
    ("ALTER TABLE t RENAME a TO b", "ALTER TABLE", "relation write"),
    ("ALTER MATERIALIZED VIEW t RENAME a TO b", "ALTER MATERIALIZED VIEW", "relation write"),
    ("ALTER RULE x ON t RENAME TO y", "ALTER RULE", "relation write"),
    ("ALTER VIEW v SET SCHEMA s", "ALTER VIEW", "relation write"),
    ("DROP TABLE t", "DROP TABLE", "relation write"),
    ("DROP MATERIALIZED VIEW t", "DROP MATERIALIZED VIEW", "relation write"),
    ("DROP TRIGGER x ON t", "DROP TRIGGER", "relation write"),
    ("TRUNCATE t", "TRUNCATE TABLE", "relation write"),
    ("COMMENT ON TABLE t IS 'x'", "COMMENT", "relation write"),
    ("GRANT SELECT ON t TO PUBLIC", "GRANT", "relation write"),
    ("REVOKE SELECT ON t FROM PUBLIC", "REVOKE", "relation write"),
]


@pytest.mark.parametrize(("sql", "kind", "category"), KINDS, ids=[case[0] for case in KINDS])
def test_an_allowed_kind(sql: str, kind: str, category: str) -> None:
    found = statement(sql)
    assert (found.kind, found.category) == (kind, category)
    assert refused(sql) == []


DENIED = [
    ("COPY t TO STDOUT", "COPY"),
    ("COPY (SELECT * FROM t) TO PROGRAM 'x'", "COPY"),
    ("CALL f()", "CALL"),
    ("DO 'x'", "DO"),
    ("PREPARE x AS SELECT 1", "PREPARE"),
    ("EXECUTE x", "EXECUTE"),
    ("DEALLOCATE ALL", "DEALLOCATE"),
    ("DECLARE c CURSOR FOR SELECT 1", "DECLARE CURSOR"),
    ("FETCH c", "FETCH"),
    ("MOVE c", "FETCH"),
    ("CLOSE c", "CLOSE"),
    ("LOCK t", "LOCK TABLE"),
    ("LISTEN x", "LISTEN"),
    ("NOTIFY x", "NOTIFY"),
    ("UNLISTEN *", "UNLISTEN"),
    ("SET a = 1", "SET"),
    ("RESET ALL", "SET"),
    ("SET ROLE x", "SET"),
    ("DISCARD ALL", "DISCARD"),
    ("BEGIN", "TRANSACTION"),
    ("COMMIT", "TRANSACTION"),
    ("ROLLBACK TO x", "TRANSACTION"),
    ("PREPARE TRANSACTION 'x'", "TRANSACTION"),
    ("SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS"),
    ("VACUUM t", "VACUUM"),
    ("ANALYZE t", "VACUUM"),
    ("CLUSTER t", "CLUSTER"),
    ("REINDEX TABLE t", "REINDEX"),
    ("CHECKPOINT", "CHECKPOINT"),
    ("LOAD 'x'", "LOAD"),
    ("CREATE ROLE x", "CREATE ROLE"),
    ("ALTER ROLE x SUPERUSER", "ALTER ROLE"),
    ("GRANT a TO b", "GRANT ROLE"),
    ("CREATE DATABASE x", "CREATE DATABASE"),
    ("CREATE SCHEMA x CREATE TABLE t (a int)", "CREATE SCHEMA"),
    ("CREATE EXTENSION x", "CREATE EXTENSION"),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE FUNCTION"),
    ("CREATE LANGUAGE x", "CREATE EXTENSION"),
    ("CREATE TYPE x AS (a int)", "CREATE TYPE"),
    ("CREATE DOMAIN x AS int", "CREATE DOMAIN"),
    ("CREATE AGGREGATE a (int) (SFUNC = f, STYPE = int)", "CREATE"),
    ("CREATE OPERATOR + (FUNCTION = f, LEFTARG = int)", "CREATE"),
    ("CREATE CAST (a AS b) WITHOUT FUNCTION", "CREATE CAST"),
    ("CREATE SERVER x FOREIGN DATA WRAPPER y", "CREATE SERVER"),
    ("CREATE FOREIGN TABLE t (a int) SERVER x", "CREATE FOREIGN TABLE"),
    ("IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z", "IMPORT FOREIGN SCHEMA"),
    ("CREATE PUBLICATION x FOR ALL TABLES", "CREATE PUBLICATION"),
    ("CREATE SUBSCRIPTION x CONNECTION 'y' PUBLICATION z", "CREATE SUBSCRIPTION"),
    ("CREATE EVENT TRIGGER x ON ddl_command_start EXECUTE FUNCTION f()", "CREATE EVENT TRIGGER"),
    ("CREATE STATISTICS s ON a, b FROM t", "CREATE STATISTICS"),
    ("ALTER SYSTEM SET a = 1", "ALTER SYSTEM"),
    ("ALTER DATABASE x SET a = 1", "ALTER DATABASE"),
    ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO x", "ALTER DEFAULT PRIVILEGES"),
    ("ALTER TABLE t OWNER TO x", "ALTER TABLE"),
    ("SECURITY LABEL ON TABLE t IS 'x'", "SECURITY LABEL"),
    ("REASSIGN OWNED BY a TO b", "REASSIGN OWNED"),
    ("DROP OWNED BY a", "DROP OWNED"),
]


@pytest.mark.parametrize(("sql", "kind"), DENIED, ids=[case[0] for case in DENIED])
def test_a_kind_that_is_denied_whatever_the_policy_says(sql: str, kind: str) -> None:
    found = statement(sql)
    assert found.kind == kind
    assert refused(sql) != []
    assert found.form == "utility"


SITES = [
    ("SELECT 1", set()),
    ("INSERT INTO t VALUES (1)", {"block_dml"}),
    ("UPDATE t SET a = 1", {"block_dml", "block_unqualified_dml"}),
    ("UPDATE t SET a = 1 WHERE true", {"block_dml"}),
    ("UPDATE t SET a = 1 FROM u", {"block_dml", "block_unqualified_dml"}),
    ("DELETE FROM t", {"block_dml", "block_unqualified_dml"}),
    ("DELETE FROM t USING u WHERE t.a = u.a", {"block_dml"}),
    ("WITH d AS (DELETE FROM t) SELECT 1", {"block_dml", "block_unqualified_dml"}),
    ("WITH d AS (UPDATE t SET a = 1 WHERE b) INSERT INTO u VALUES (1)", {"block_dml"}),
    ("EXPLAIN ANALYZE DELETE FROM t", {"block_dml", "block_unqualified_dml"}),
    ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", {"block_dml", "block_unqualified_dml"}),
    ("MERGE INTO t USING u ON 1 = 1 WHEN MATCHED THEN UPDATE SET a = 1", {"block_dml", "block_unqualified_dml"}),
    (
        "MERGE INTO t USING u ON EXISTS (SELECT 1 FROM v WHERE v.a) WHEN MATCHED THEN DELETE",
        {"block_dml", "block_unqualified_dml"},
    ),
    ("MERGE INTO t USING u ON true WHEN NOT MATCHED THEN INSERT VALUES (1)", {"block_dml"}),
    ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", {"block_dml"}),
    ("CREATE TABLE t (a int)", {"block_dml"}),
    ("CREATE TABLE t AS SELECT 1", {"block_dml"}),
    ("SELECT 1 INTO t", {"block_dml"}),
    ("CREATE MATERIALIZED VIEW t AS SELECT 1", {"block_dml"}),
    ("REFRESH MATERIALIZED VIEW t", {"block_dml"}),
    ("CREATE VIEW v AS SELECT 1", {"block_dml"}),
    ("CREATE RULE x AS ON INSERT TO t DO ALSO DELETE FROM u", {"block_dml", "block_unqualified_dml"}),
    ("DROP TABLE t", {"block_ddl"}),
    ("DROP TRIGGER x ON t", {"block_ddl"}),
    ("TRUNCATE t", {"block_ddl"}),
    ("ALTER TABLE t ADD a int", {"block_ddl"}),
    ("ALTER TABLE t RENAME TO u", {"block_ddl"}),
    ("ALTER TABLE t SET SCHEMA s", {"block_ddl"}),
    ("ALTER SEQUENCE s RESTART", {"block_ddl"}),
    ("ALTER POLICY x ON t USING (true)", {"block_ddl"}),
    ("CREATE TRIGGER x AFTER INSERT ON t EXECUTE FUNCTION f()", set()),
    ("CREATE POLICY x ON t", set()),
    ("COMMENT ON TABLE t IS 'x'", set()),
]


@pytest.mark.parametrize(("sql", "rules"), SITES, ids=[case[0] for case in SITES])
def test_guardrail_sites(sql: str, rules: set[str]) -> None:
    assert {site.rule for site in statement(sql).sites} == rules


@pytest.mark.parametrize(
    ("sql", "explains"),
    [
        ("EXPLAIN SELECT 1", "plan"),
        ("EXPLAIN ANALYZE SELECT 1", "analyze"),
        ("EXPLAIN (ANALYZE) SELECT 1", "analyze"),
        ("EXPLAIN (ANALYZE 1) SELECT 1", "analyze"),
        ("EXPLAIN (ANALYZE yes) SELECT 1", "analyze"),
        ("EXPLAIN (ANALYZE 'on', VERBOSE) SELECT 1", "analyze"),
        ("EXPLAIN (ANALYZE off) SELECT 1", "plan"),
        ("EXPLAIN (ANALYZE FALSE, FORMAT JSON) SELECT 1", "plan"),
        ("EXPLAIN (ANALYZE 0) SELECT 1", "plan"),
        ("EXPLAIN (ANALYZE off, ANALYZE) SELECT 1", "analyze"),
        ("SELECT 1", "no"),
    ],
)
def test_whether_explain_runs_its_statement(sql: str, explains: str) -> None:
    assert statement(sql).explains == explains


@pytest.mark.parametrize(
    ("sql", "setting"),
    [("SHOW timezone", "timezone"), ("SHOW TIME ZONE", "timezone"), ("SHOW ALL", "all"), ("SHOW a.b", "a.b"), ("SELECT 1", None)],
)
def test_the_setting_that_show_asks_for(sql: str, setting: str | None) -> None:
    assert statement(sql).setting == setting


FORMS = [
    ("SELECT 1", "query", True, None),
    ("VALUES (1)", "query", True, None),
    ("SELECT 1 INTO t", "utility", False, None),
    ("SHOW timezone", "utility", True, None),
    ("EXPLAIN SELECT 1", "utility", True, None),
    ("CREATE TABLE t (a int)", "utility", False, None),
    ("INSERT INTO t VALUES (1)", "dml", False, None),
    ("INSERT INTO t VALUES (1) RETURNING a, 'é;--' -- x", "dml", True, "a, 'é;--'"),
    ("UPDATE \"é\" SET a = 'é' WHERE b RETURNING *;", "dml", True, "*"),
    ("DELETE FROM t WHERE b RETURNING WITH (OLD AS o) o.a , f(1) /* x */ ; ; ", "dml", True, "o.a , f(1)"),
    ("WITH d AS (DELETE FROM t WHERE a RETURNING *) SELECT * FROM d ORDER BY 1 -- é", "dml", True, "SELECT * FROM d ORDER BY 1"),
    ("/* é */ WITH d AS (DELETE FROM t WHERE a) VALUES (1), (2);", "dml", True, "VALUES (1), (2)"),
    ("WITH d AS (DELETE FROM t WHERE a RETURNING *) TABLE d", "dml", True, "TABLE d"),
    ("WITH d AS (DELETE FROM t WHERE a), e (x) AS MATERIALIZED (SELECT 1) (SELECT 1 UNION SELECT 2) LIMIT 1", "dml", True,
     "(SELECT 1 UNION SELECT 2) LIMIT 1"),
    ("(WITH d AS (DELETE FROM t WHERE a) SELECT 1)", "dml", True, "SELECT 1"),
    ("WITH RECURSIVE e AS (SELECT 1 AS a) SEARCH DEPTH FIRST BY a SET b, d AS (DELETE FROM t WHERE a) SELECT 2",
     "dml", True, "SELECT 2"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "form", "returns", "spliced"), FORMS, ids=[case[0] for case in FORMS])
def test_how_the_shell_runs_it(sql: str, form: str, returns: bool, spliced: str | None) -> None:
    found = statement(sql)
    assert (found.form, found.returns_rows) == (form, returns)
    text = sql.encode()
    assert (text[slice(*found.splice)].decode() if found.splice else None) == spliced


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT 1", "SELECT 1"),
        (" \n SELECT 1 ; \n", "SELECT 1"),
        ("SELECT 1 -- x", "SELECT 1"),
        ("SELECT 1 /* ; */ ; -- ;", "SELECT 1"),
        ("; ; SELECT 'é--' -- é\n;", "SELECT 'é--'"),
        ("-- é\nSELECT 1 /* a /* b */ c */ + /* é */ 2 /* d */", "SELECT 1 /* a /* b */ c */ + /* é */ 2"),
        ("SELECT '--' || $$ -- ; */ $$", "SELECT '--' || $$ -- ; */ $$"),
        ("SELECT 1 -- a\n -- b\n", "SELECT 1"),
    ],
)
def test_the_text_of_the_statement_itself(sql: str, text: str) -> None:
    found = statement(sql)
    assert sql.encode()[found.text_start : found.text_end].decode() == text


@pytest.mark.parametrize(
    ("sql", "rule", "reason"),
    [
        ("", "parse_error", "no statements"),
        (" ; -- x\n ;", "parse_error", "no statements"),
        ("/* é */", "parse_error", "no statements"),
        ("SELEC 1", "parse_error", 'syntax error at or near "SELEC" (line 1, column 1)'),
        ("SELECT 'é',\n  é é é )", "parse_error", 'syntax error at or near "é" (line 2, column 7)'),
        ("SELECT 'abc", "parse_error", "unterminated quoted string"),
        ("SELECT\n 'é', $1", "parse_error", "parameter placeholder at line 2, column 7"),
        ("SELECT f($1)", "parse_error", "parameter placeholder at line 1, column 10"),
        ("SELECT 1\0", "parse_error", "NUL byte at line 1, column 9"),
        ("SELECT '\ud800'", "parse_error", "lone surrogate at character 9"),
        ("SELECT 1; DROP TABLE t", "multi_statement", "2 statements, the second at line 1, column 11"),
        ("SELECT 'é';\nSELECT 2;;", "multi_statement", "the second at line 2, column 1"),
    ],
)
def test_a_text_that_is_no_single_statement(sql: str, rule: str, reason: str) -> None:
    found = unparsed(sql)
    assert found.rule == rule
    assert reason in found.reason


def test_a_placeholder_inside_a_string_is_none() -> None:
    statement("""SELECT '"ParamRef":{"number":1}', "ParamRef" FROM t""")
