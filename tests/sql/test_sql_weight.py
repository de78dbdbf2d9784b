"""What the parser will take for a text is told before it parses, and never told too small by much."""

import pytest
from pglast.parser import parse_sql_json

from gatewayd.sql.text.parse import MAX_BYTES
from gatewayd.sql.text.weight import is_too_heavy, weight
from tests.sql.sql_facts import statement, unparsed

DENSE = {
    "constants": "SELECT " + ",".join(["1"] * 4_000),
    "names": "SELECT " + ",".join(["a"] * 4_000),
    "operators": "SELECT " + ",".join(["a+a"] * 2_000),
    "list": "SELECT 1 WHERE a IN (" + ",".join(["1"] * 4_000) + ")",
    "strings": "SELECT 1 WHERE a IN (" + ",".join(["''"] * 4_000) + ")",
    "rows": "VALUES " + ",".join(["(1)"] * 4_000),
    "casts": "SELECT " + ",".join(["1::a"] * 4_000),
    "selections": "SELECT " + ",".join(["a.b"] * 4_000),
    "calls": "SELECT " + ",".join(["f()"] * 4_000),
    "tables": "SELECT 1 FROM " + ",".join(["a"] * 1_500),
    "functions in FROM": "SELECT 1 FROM " + ",".join(["f()"] * 1_500),
    "stars": "SELECT " + ",".join(["*"] * 4_000),
    "subscripts": "SELECT " + ",".join(["a[1]"] * 4_000),
    "rows of names": "SELECT " + ",".join(["(a,a)"] * 4_000),
    "queries": "SELECT " + ",".join(["(SELECT)"] * 1_500),
    "sums": "SELECT " + ", ".join(["1" + " + 1" * 60] * 100),
    "definitions": "CREATE TABLE t (" + ",".join(["a a"] * 4_000) + ")",
}


@pytest.mark.parametrize("shape", DENSE)
def test_the_weight_of_a_text_is_not_below_what_its_tree_takes(shape: str) -> None:
    text = DENSE[shape]
    assert weight(text.encode()) >= 3 * len(parse_sql_json(text)), "a parse takes four to five times the JSON at its peak"


@pytest.mark.parametrize("piece", ["a+a,", "a,", "1,", "f(),", "a::a,", "*,", '"a",', "é,"])
def test_a_text_of_1_mib_that_is_all_parts_is_not_parsed(piece: str) -> None:
    sql = "SELECT " + piece * ((MAX_BYTES - 20) // len(piece.encode())) + "1"
    assert "too many parts" in unparsed(sql).reason


@pytest.mark.parametrize("hidden", ["/*'*/", '"\'"', "-- '\n", "/* /* */ ' */", "a$b$", "e'\\''", "'\\'"])
def test_what_looks_like_the_start_of_a_string_hides_no_parts(hidden: str) -> None:
    sql = f"SELECT {hidden} 1" + ",a+a" * 250_000 + f" {hidden}"
    assert is_too_heavy(sql.encode())


def test_honest_large_texts_are_read() -> None:
    statement("INSERT INTO t VALUES " + "(123, 'some text here', '2024-01-01', 2.5)," * 24_000 + "(1, '', '', 2)")
    words = "the quick brown fox, (it's said) jumps over 12 lazy dogs; ".replace("'", "''") * 15_000
    statement(f"INSERT INTO notes VALUES (1, '{words}')")
    statement(f"INSERT INTO notes VALUES (1, $text${words}$text$)")
    statement(f"INSERT INTO notes VALUES (1, E'{words}\\n')")
    statement(f"SELECT 1 /* {words.replace('*', '')} */")
    statement("SELECT 1 WHERE a IN (" + "123456," * 140_000 + "1)")
