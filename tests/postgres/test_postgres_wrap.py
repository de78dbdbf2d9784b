"""The composed text holds the agent's statement unchanged, whatever it contains, and positions lead back to it."""

import pytest
from pglast.parser import parse_sql_json

from gatewayd.catalog import Catalog, Relation
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.execute import wrap
from gatewayd.postgres.execute.displayed_columns import reads_catalog_alone
from gatewayd.postgres.execute.wrap import (
    AS_THEY_ARE,
    NotWrapped,
    Sent,
    Shown,
    as_written,
    wrap_below_with,
    wrap_query,
    wrap_returning,
)
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement

LIMITS = Limits(max_rows=7, max_bytes=99)
MASKED = Shown(("a", "b"), ("q.a", "'***' AS b"), ('q."b"::text',))
APART = Shown(("a", "b"), ("q.a", "'***' AS b"), is_planned_apart=True)
WAYS = pytest.mark.parametrize(
    "shown", [AS_THEY_ARE, MASKED, Shown(is_planned_apart=True), APART], ids=["as they are", "masked", "apart", "apart, masked"]
)


def facts(sql: str) -> Statement:
    statement = analyze(sql)
    assert isinstance(statement, Statement), statement
    return statement


QUERIES = [
    "SELECT 1",
    "  SELECT 1 ; ",
    ";;SELECT 1;;",
    "SELECT 1 -- the end",
    "SELECT 1 -- the end ) AS q; --",
    "/* /* nested */ ) */ SELECT 1 /* ) AS q */",
    "SELECT ')' || $$ ) AS q -- $$ || E'\\')' || U&'\\0041' AS \")\"",
    "(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1 LIMIT 1",
    "VALUES (1, 'ü'), (2, '…')",
    "TABLE pg_catalog.pg_class",
    "WITH q AS (SELECT 1 AS q) SELECT q FROM q",
    "SELECT",
    "SELECT * FROM t FOR UPDATE OF t SKIP LOCKED",
    'SELECT 1 AS "q", j.t FROM (SELECT 2 AS t) AS j',
]


@WAYS
@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_stands_in_its_wrapper_unchanged(sql: str, shown: Shown) -> None:
    sent = wrap_query(facts(sql), LIMITS, shown)
    ((start, own, length),) = sent.pieces
    assert sent.text[start : start + length] == sql[own : own + length]
    assert '"stmts":[{"stmt":{"CopyStmt"' in parse_sql_json(sent.text)


@pytest.mark.parametrize("name", ["ssn", "ü€😀", 'a"b', "x\ny"])
def test_a_masked_column_may_have_any_name(name: str) -> None:
    sql = "SELECT ssn AS " + '"' + name.replace('"', '""') + '"' + ", 'é' FROM users"
    column = "q." + sql.removeprefix("SELECT ssn AS ").removesuffix(", 'é' FROM users")
    sent = wrap_query(facts(sql), LIMITS, Shown(items=(f"'***' AS {column[2:]}", 'q."?column?"'), values=(f"{column}::text",)))
    ((start, _, length),) = sent.pieces
    assert sent.text[start : start + length] == sql


@WAYS
@pytest.mark.parametrize(
    "own",
    [
        "SELECT 1) AS q LIMIT 1) AS r) AS w) TO STDOUT; DROP TABLE t; COPY (SELECT 1 FROM (SELECT 1 FROM (SELECT 1",
        "SELECT 1) AS q, (SELECT 2",
        "SELECT 1; SELECT 2",
        "SELECT 1 UNION",
        "DELETE FROM t",
        "",
    ],
)
def test_a_text_that_is_not_one_query_is_not_sent(own: str, shown: Shown) -> None:
    statement = Statement(own, "SELECT", "read", "", text_end=len(own.encode()))
    with pytest.raises(NotWrapped):
        wrap_query(statement, LIMITS, shown)


RETURNING = [
    "UPDATE t SET a = ARRAY[1, 2] WHERE b IN (1, 2) AND c NOT IN ('x', 'y') RETURNING a",  # lists have positions of their own
    "INSERT INTO t VALUES (1) RETURNING *",
    "WITH x AS (SELECT 'ü) UPDATE') UPDATE t SET a = 'é' WHERE b IN (SELECT 1) RETURNING a, b -- )",
    "WITH RECURSIVE x AS (SELECT 1 UNION SELECT 2), y AS (DELETE FROM u RETURNING id) DELETE FROM t USING y RETURNING t.*, y.id",
    "WITH gatewayd_1 AS (SELECT 1) INSERT INTO t SELECT * FROM gatewayd_1 ON CONFLICT DO NOTHING RETURNING a",
    "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE RETURNING merge_action(), t.*",
]


@pytest.mark.parametrize("items", [(), MASKED.items])
@pytest.mark.parametrize("sql", RETURNING)
def test_a_write_becomes_the_last_with_query(sql: str, items: tuple[str, ...]) -> None:
    sent = wrap_returning(facts(sql), LIMITS, Shown(("x", 'y"'), items))
    assert "".join(sent.text[start : start + length] for start, _, length in sent.pieces) == sql.removesuffix(" -- )")
    assert sent.text.count("gatewayd_2") == (2 if "gatewayd_1 AS (SELECT" in sql else 0)
    assert '("x", "y""") AS (\n' in sent.text


@WAYS
def test_a_main_query_below_a_modifying_with_is_wrapped_alone(shown: Shown) -> None:
    sql = "; WITH é AS (DELETE FROM t RETURNING id) SELECT count(*) FROM é -- x"
    sent = wrap_below_with(facts(sql), LIMITS, shown)
    assert sent.text.startswith("COPY (WITH é AS (DELETE FROM t RETURNING id) SELECT CASE")
    assert "".join(sent.text[start : start + length] for start, _, length in sent.pieces) == sql[2:-5]


def test_positions_lead_back_to_the_agents_text() -> None:
    sql = "; WITH é AS (DELETE FROM t RETURNING id) SELECT nope FROM é"
    sent = wrap_below_with(facts(sql), LIMITS, AS_THEY_ARE)
    assert sent.position(sent.text.index("nope") + 1) == sql.index("nope") + 1
    assert sent.position(sent.text.index("RETURNING") + 1) == sql.index("RETURNING") + 1
    assert sent.position(sent.text.index("CASE") + 1) is None
    assert sent.position(len(sent.text)) is None
    moved = sent.behind("BEGIN;", ";COMMIT")
    assert moved.position(moved.text.index("nope") + 1) == sql.index("nope") + 1


def test_one_past_the_end_still_is_the_agents() -> None:
    assert Sent("ab", ((0, 0, 2),)).position(3) == 3


def test_leading_and_trailing_text_is_not_sent() -> None:
    assert as_written(facts(" ; SHOW search_path ; ")).text == "SHOW search_path"


def test_the_head_is_parsed_once_per_limits() -> None:
    wrap_query(facts("SELECT 1"), LIMITS, AS_THEY_ARE)
    before = wrap.head_json.cache_info().misses
    wrap_query(facts("SELECT 2"), LIMITS, AS_THEY_ARE)
    assert wrap.head_json.cache_info().misses == before


def test_a_statement_over_the_catalog_alone_is_planned_apart() -> None:
    own = Relation(1259, "pg_catalog", "pg_class", "table")
    catalog = Catalog(
        1, "shop", relations={("pg_catalog", "pg_class"): own, ("public", "t"): Relation(20001, "public", "t", "table")}
    )
    for sql in ("SELECT * FROM pg_class", "SELECT 1 FROM pg_catalog.pg_class JOIN information_schema.tables ON true"):
        assert reads_catalog_alone(facts(sql), catalog), sql
    for sql in (
        "SELECT 1",
        "SELECT * FROM t",
        "SELECT * FROM pg_class, t",
        "SELECT * FROM pg_class WHERE oid IN (SELECT 1 FROM public.t)",
    ):
        assert not reads_catalog_alone(facts(sql), catalog), sql
