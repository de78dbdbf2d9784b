"""Hostile and huge texts: a decision without an exception, and without a stall (decision 3.1). Bounds, not timings: what is
bounded before it can hurt is named by its reason."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement, Unparsed
from gatewayd.sql.text.parse import MAX_BYTES
from tests.sql.sql_facts import statement, unparsed

DEEP = {
    "brackets": "SELECT " + "(" * 50_000 + "1" + ")" * 50_000,
    "bracketed selects": "(" * 50_000 + "SELECT 1" + ")" * 50_000,
    "operators": "SELECT " + "1+" * 50_000 + "1",
    "not": "SELECT " + "NOT " * 50_000 + "true",
    "subqueries": "SELECT " + "(SELECT " * 5_000 + "1" + ")" * 5_000,
    "subqueries in from": "SELECT * FROM " + "(SELECT * FROM " * 3_000 + "t" + ") q" * 3_000,
    "case": "SELECT " + "CASE WHEN " * 5_000 + "1" + " THEN 1 END" * 5_000,
    "calls": "SELECT " + "f(" * 9_000 + "1" + ")" * 9_000,
    "unions": "SELECT 1 " + "UNION SELECT 1 " * 10_000,
    "joins": "SELECT 1 FROM a " + "CROSS JOIN a " * 20_000,
    "arrays": "SELECT ARRAY" + "[" * 9_000 + "1" + "]" * 9_000,
    "casts": "SELECT 1" + "::int" * 50_000,
    "withs": "WITH a AS (" * 3_000 + "SELECT 1" + ") SELECT 1" * 3_000,
    "collations": "SELECT a" + ' COLLATE "C"' * 50_000,
    "json nested columns": "SELECT * FROM JSON_TABLE('1', '$' COLUMNS (" + "NESTED '$' COLUMNS (" * 2_000 + "a int" + ")" * 2_002,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_is_refused(name: str) -> None:
    assert "nested too deeply" in unparsed(DEEP[name][:MAX_BYTES]).reason


@pytest.mark.parametrize("depth", range(150, 700, 25))
@pytest.mark.parametrize(
    ("head", "open_", "middle", "close"),
    [
        ("SELECT ", "(SELECT ", "1", ")"),
        ("SELECT * FROM ", "(SELECT * FROM ", "t", ") q"),
        ("SELECT ", "1+", "1", ""),
        ("SELECT 1 FROM a ", "CROSS JOIN b ", "", ""),
        ("SELECT 1 ", "UNION SELECT 2 ", "", ""),
        ("SELECT a", "::int", "", ""),
        ("", "WITH a AS (", "SELECT 1", ") SELECT * FROM a"),
    ],
)
def test_nesting_around_the_bound_is_read_or_refused(depth: int, head: str, open_: str, middle: str, close: str) -> None:
    found = analyze(head + open_ * depth + middle + close * depth)
    assert isinstance(found, Statement) or "nested too deeply" in found.reason


def test_honest_depth_is_read() -> None:
    statement("SELECT " + "a || " * 200 + "b")
    statement("SELECT 1 " + "UNION ALL SELECT 2 " * 300)
    statement("SELECT * FROM a " + "JOIN b ON a.x = b.x " * 100)
    statement("SELECT * FROM " + "(SELECT * FROM " * 50 + "t" + ") q" * 50)
    chain = ", ".join(f"q{n + 1} AS (SELECT * FROM q{n})" for n in range(100))
    assert len(statement(f"WITH q0 AS (SELECT a, b FROM t), {chain} SELECT q100.a FROM q100").outputs) == 1


def test_wide_statements_are_read() -> None:
    assert len(statement("SELECT 1 WHERE a IN (" + "1," * 100_000 + "1)").operators) == 1
    assert len(statement("SELECT * FROM " + "t," * 1_999 + "t").relations) == 2_000
    assert (
        len(statement("INSERT INTO t VALUES " + "(1, 'some text', '2024-01-01', 2.5)," * 20_000 + "(1, '', '', 2)").relations)
        == 1
    )
    assert statement("WITH " + ",".join(f"q{n} AS (SELECT 1)" for n in range(900)) + " SELECT * FROM q1").relations == ()
    assert len(statement("SELECT t.a FROM t WHERE " + "t.b OR " * 19_990 + "t.c").fields) > 19_990


def test_the_longest_text_is_read_and_a_longer_one_refused() -> None:
    text = "SELECT '" + "é" * ((MAX_BYTES - 9) // 2) + "'"
    statement(text)
    assert "bytes of UTF-8" in unparsed(text + "  ").reason


REPEATS = {
    "comments inside comments": "/*" * 100_000 + "*/" * 100_000 + "SELECT 1",
    "plus signs": "SELECT " + "+" * 100_000 + "1",
    "plus and minus": "SELECT " + "+-" * 50_000 + "1",
}


@pytest.mark.parametrize("name", REPEATS)
def test_what_the_scanner_reads_again_and_again_is_refused(name: str) -> None:
    assert "runs of operator characters" in unparsed(REPEATS[name]).reason


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET (" + "a," * 50_000 + "a) = (SELECT '" + "x" * 500_000 + "')",
        "UPDATE t SET (" + "a," * 50_000 + "a)/**/= (SELECT '" + "x" * 500_000 + "')",
        "UPDATE t SET (a[(1)]," + "a," * 50_000 + "a)\n--\n= (SELECT '" + "x" * 500_000 + "')",
        "UPDATE t/**/SET/**/(" + "a," * 3_000 + "a) = (SELECT " + "1," * 3_000 + "1)",
    ],
)
def test_assignments_that_the_tree_would_repeat_are_refused(sql: str) -> None:
    assert "too large for SET (column" in unparsed(sql).reason


def test_too_many_parts_are_refused() -> None:
    assert "too many parts" in unparsed("SELECT 1 WHERE " + "a OR " * 150_000 + "a").reason
    assert "too many parts" in unparsed("SELECT 1;" * 110_000).reason


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("SELECT 1 FROM " + "t," * 2_000 + "t", "2000 tables, joins"),
        ("SELECT 1 FROM " + "generate_series(1, 2)," * 2_000 + "t", "2000 tables, joins, subqueries and functions"),
        ("SELECT " + "a," * 20_000 + "a FROM t", "20000 column references"),
        ("SELECT " + "(SELECT 1)," * 2_000 + "1", "2000 queries"),
        ("WITH " + ",".join(f"q{n} AS (SELECT 1)" for n in range(2_000)) + " SELECT 1", "2000 queries"),
    ],
)
def test_each_bound_on_cost_is_named(sql: str, bound: str) -> None:
    assert f"more than {bound}" in unparsed(sql).reason


def test_honest_banners_and_large_updates_are_not_taken_for_attacks() -> None:
    statement(("/" + "*" * 100 + "/\n-- " + "=" * 100 + "\n") * 1_000 + "SELECT 1 -- " + "+-" * 200)
    rows = ",".join(f"({n}, 'value {n}')" for n in range(5_000))
    statement(f"UPDATE t SET a = v.a FROM (VALUES {rows}) AS v (id, a) WHERE lower(t.id) = lower(v.id)")
    statement(f"INSERT INTO t VALUES {rows} ON CONFLICT (id) DO UPDATE SET (a, b) = (excluded.a, excluded.b)")


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_statement_or_none(text: str) -> None:
    assert isinstance(analyze(text), Statement | Unparsed)


WORDS = st.sampled_from(
    [
        "SELECT",
        "FROM",
        "WHERE",
        "t",
        "u",
        "x.a",
        "(x).b",
        "*",
        ",",
        "(",
        ")",
        ";",
        "'",
        '"',
        "1",
        "'x'",
        "$1",
        "$$",
        "+",
        "-",
        "/*",
        "*/",
        "--",
        "WITH",
        "AS",
        "(",
        ")",
        "RECURSIVE",
        "UNION",
        "ALL",
        "INSERT",
        "INTO",
        "VALUES",
        "UPDATE",
        "SET",
        "=",
        "DELETE",
        "USING",
        "MERGE",
        "ON",
        "MATCHED",
        "WHEN",
        "THEN",
        "RETURNING",
        "JOIN",
        "LATERAL",
        "f(",
        ")",
        "::",
        "text",
        "[",
        "]",
        "ARRAY",
        "ROW",
        "CASE",
        "END",
        "GROUP",
        "BY",
        "ORDER",
        "LIMIT",
        "FOR",
        "UPDATE",
        "OF",
        "CREATE",
        "TABLE",
        "VIEW",
        "INDEX",
        "DROP",
        "ALTER",
        "EXPLAIN",
        "ANALYZE",
        "SHOW",
        "é",
        "\ud800",
        "\x00",
    ]
)


@given(st.lists(WORDS, max_size=40).map(" ".join))
@settings(max_examples=600, deadline=None)
def test_any_words_give_a_statement_or_none(text: str) -> None:
    found = analyze(text)
    if isinstance(found, Statement):
        data = text.encode()
        assert 0 <= found.text_start < found.text_end <= len(data)
        alone = analyze(data[found.text_start : found.text_end].decode())
        assert isinstance(alone, Statement)
        assert (alone.fingerprint, alone.kind) == (found.fingerprint, found.kind)
    else:
        assert found.reason


@given(st.binary(max_size=100))
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_a_statement_or_none(data: bytes) -> None:
    assert isinstance(analyze(data.decode(errors="surrogateescape")), Statement | Unparsed)
