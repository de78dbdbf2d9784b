"""sql_fingerprint (decision 3.9): which texts are one intent."""

import re

import pytest

from tests.sql.sql_facts import statement, unparsed

SAME = [
    ("SELECT * FROM t WHERE a = 1;", "select *\nfrom T where a=100 -- x"),
    ("SELECT 'a', 1, 1.5, true, NULL, B'1'", "SELECT '\"}{', 2, 22.5, false, 'x', 0"),
    ("SELECT * FROM t WHERE a IN (1)", "SELECT * FROM t WHERE a IN (1, 2, 3, NULL)"),
    ("SELECT * FROM t WHERE a IN ('2020-01-01'::date)", "SELECT * FROM t WHERE a IN ('2020-01-01'::date, '2021-01-01'::date)"),
    ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'b'), (3, 'c'), (4, 'd')"),
    ("SELECT * FROM (VALUES (1), (2)) v", "SELECT * FROM (VALUES (1)) v"),
    (
        "SELECT 1 WHERE a IN (SELECT b FROM t WHERE c IN (1, 2)) LIMIT 1",
        "SELECT 2 WHERE a IN (SELECT b FROM t WHERE c IN (3)) LIMIT 9",
    ),
    ("SELECT ARRAY[1, 2]", "SELECT   ARRAY[3,\n4]"),
    ("SELECT a::varchar(1)", "SELECT a::varchar(99)"),
]
DIFFERENT = [
    ("SELECT a FROM t", "SELECT b FROM t"),
    ("SELECT a FROM t", "SELECT a FROM u"),
    ("SELECT f(1)", "SELECT f(1, 2)"),
    ("SELECT a WHERE b IN (1)", "SELECT a WHERE b NOT IN (1)"),
    ("SELECT a WHERE b = 1", "SELECT a WHERE b > 1"),
    ("SELECT 1 AS a", "SELECT 1 AS b"),
    ("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (f())"),
    ("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1, 2)"),
    ("DELETE FROM t", "DELETE FROM ONLY t"),
    ("SELECT 'location'", 'SELECT "location"'),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=[case[0] for case in SAME])
def test_one_intent(one: str, other: str) -> None:
    assert statement(one).fingerprint == statement(other).fingerprint


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=[case[0] for case in DIFFERENT])
def test_two_intents(one: str, other: str) -> None:
    assert statement(one).fingerprint != statement(other).fingerprint


def test_it_is_16_hex_digits_and_stable() -> None:
    assert re.fullmatch("[0-9a-f]{16}", statement("SELECT 1").fingerprint)
    assert statement("SELECT a FROM t WHERE b = 1").fingerprint == "072b8c11a8d5dd63"


def test_a_text_that_does_not_parse_has_the_one_of_its_text() -> None:
    assert unparsed("SELEC 1").fingerprint != unparsed("SELEC 2").fingerprint
    assert re.fullmatch("[0-9a-f]{16}", unparsed("\ud800").fingerprint)
