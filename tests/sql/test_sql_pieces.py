"""Long texts and trees are worked on a piece at a time, and what comes out is that of the whole."""

import pytest
from pglast.parser import parse_sql_json

from gatewayd.sql.text import bulk, fingerprint
from gatewayd.sql.text.parse import parse, tokens_of
from gatewayd.sql.text.tokens import Token, scan

TEXTS = (
    "SELECT a, \"b c\", 'it''s', $$x 'y'$$, $t$ $$ $t$, E'a\\'b', U&'d\\0061t', X'1F', B'1', 1e10, .5, 0x1F FROM t AS u (x, y)",
    "SELECT 'two'\n  ' pieces', -5, - 5, a.b.c, a::int[], (x).y, f(VARIADIC z) FILTER (WHERE a) OVER (PARTITION BY b ORDER BY c)",
    "/* a /* nested */ comment */ SELECT 1 -- one\n, 2 /* two */ FROM t -- end",
    "WITH q AS MATERIALIZED (SELECT 1) INSERT INTO t (a, b) SELECT * FROM q ON CONFLICT (a) DO NOTHING RETURNING *",
    "SELECT * FROM a NATURAL JOIN b LEFT JOIN c USING (x) CROSS JOIN LATERAL (SELECT 1) l, ROWS FROM (f(1), g(2)) AS r",
    "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND s.b IS NULL THEN DELETE WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)",
    "SELECT é, 'ü', \"ß\" FROM ñ WHERE '日本' = x AND y BETWEEN 1 AND 2 OR z IN (1, 2) AND w NOT LIKE 'a%' ESCAPE '!'",
    "; ; SELECT 1 ;",
)


@pytest.mark.parametrize("sql", TEXTS)
@pytest.mark.parametrize("at_once", [1, 20])
def test_the_tokens_of_pieces_are_those_of_the_whole(sql: str, at_once: int) -> None:
    tree = parse(sql)
    whole = scan(tree.data[tree.start : tree.end])
    assert tokens_of(tree, at_once) == [Token(each.start + tree.start, each.end + tree.start, each.name) for each in whole]


@pytest.mark.parametrize("sql", TEXTS[:-1])
def test_fingerprints_and_trees_are_the_same_by_pieces(sql: str) -> None:
    json = parse(sql).json
    assert len(list(bulk.pieces(json, 1))) > 1
    assert fingerprint.of_tree(json, 1) == fingerprint.of_tree(json)
    assert bulk.without_positions(json, 1) == bulk.without_positions(json)


def test_a_chain_of_set_operations_is_taken_apart_too() -> None:
    json = parse_sql_json("SELECT 1" + " UNION SELECT 1" * 3_000)
    assert len(list(bulk.pieces(json))) >= 3
