"""`gatewayd query` against a running gatewayd: rows in a pipe, a table on a terminal, reasons and exit codes."""

import json
import re

import pytest

from tests.cli.conftest import Served
from tests.cli.gatewayd_process import run, run_on_terminal


def test_rows_are_lines(served: Served) -> None:
    shown = run(["query", "SELECT id, name FROM customers ORDER BY id LIMIT 2"], served.variables)
    assert shown.returncode == 0
    assert shown.stdout == '{"id":1,"name":"name 1"}\n{"id":2,"name":"name 2"}\n'
    assert shown.stderr.startswith("2 rows; audit id ")


def test_every_digit_is_kept(served: Served) -> None:
    sql = "SELECT 12345678901234567890.12345678901234567890::numeric AS n, 9223372036854775807 AS i, NULL AS x"
    assert run(["query", sql], served.variables).stdout == (
        '{"n":12345678901234567890.12345678901234567890,"i":9223372036854775807,"x":null}\n'
    )
    code, shown = run_on_terminal(["query", sql], served.variables)
    assert code == 0
    assert "12345678901234567890.12345678901234567890  9223372036854775807" in shown


def test_a_table_on_a_terminal_and_lines_with_json(served: Served) -> None:
    words = ["query", "SELECT id, name FROM customers ORDER BY id LIMIT 1"]
    _, table = run_on_terminal(words, {**served.variables, "NO_COLOR": "1"})
    plain = re.sub("\x1b\\[[012]m", "", table)  # bold and dim are no colours
    assert [line.split() for line in plain.splitlines()[:2]] == [["id", "name"], ["1", "name", "1"]]
    assert "\x1b" not in plain
    _, lines = run_on_terminal([*words, "--json"], served.variables)
    assert json.loads(lines.splitlines()[0]) == {"id": 1, "name": "name 1"}


@pytest.mark.parametrize("on_terminal", [True, False])
def test_values_cannot_drive_the_terminal(served: Served, on_terminal: bool) -> None:
    sql = "SELECT E'\\x1b]0;owned\\x07' || chr(155) || chr(8238) AS \"a\x1b[31m\""
    if on_terminal:
        _, shown = run_on_terminal(["query", sql], {**served.variables, "NO_COLOR": "1"})
        assert "\\x1b]0;owned\\x07\\x9b\\u202e" in shown
        assert "\x1b[31m" not in shown
    else:
        shown = run(["query", sql], served.variables).stdout
        (value,) = json.loads(shown).values()
        assert value == "\x1b]0;owned\x07\x9b\u202e"
        assert "\x1b" not in shown
    assert not set("\x07\x9b\u202e") & set(shown)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT * FROM secrets", "table_access: table secrets has level deny"),
        ("DELETE FROM written", "dangerous_statement: "),
        ("SELECT 1/0", "failed (22012): division by zero"),
        ("SELEC 1", "parse_error: "),
        ("", "parse_error: "),
    ],
)
def test_what_is_refused_or_fails(served: Served, sql: str, told: str) -> None:
    shown = run(["query", sql], served.variables)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith(told)
    assert "gatewayd audit show " in shown.stderr


def test_a_blank_intent_is_refused(served: Served) -> None:
    shown = run(["query", "SELECT 1", "--intent", " "], served.variables)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith("invalid_arguments: ")


def test_an_unknown_database_is_told(served: Served) -> None:
    shown = run(["query", "SELECT 1", "--database", "nowhere"], served.variables)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "database" in shown.stderr


def test_nobody_answers(free_port: int) -> None:
    shown = run(["query", "SELECT 1"], {"PORT": str(free_port), "GATEWAY_HOST": "127.0.0.1"})
    assert (shown.returncode, shown.stdout) == (1, "")
    assert f"nothing answers at http://127.0.0.1:{free_port}/mcp" in shown.stderr
    assert "--url" in shown.stderr


def test_something_else_answers(served: Served) -> None:
    other = f"http://127.0.0.1:{served.variables['PORT']}/health"
    shown = run(["query", "SELECT 1", "--url", other])
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "405" in shown.stderr
    for wrong in ("ftp://somewhere/mcp", "nonsense", "http://[::1"):
        shown = run(["query", "SELECT 1", "--url", wrong])
        assert (shown.returncode, shown.stdout) == (1, "")
        assert "Traceback" not in shown.stderr


def test_the_call_is_recorded_as_an_agents(served: Served) -> None:
    shown = run(["query", "SELECT 2 AS two", "--intent", "see the record"], served.variables)
    audit_id = shown.stderr.split()[-1]
    chain = [json.loads(line) for line in run(["audit", "show", audit_id], served.variables).stdout.splitlines()]
    assert [each["event_type"] for each in chain] == ["ATTEMPTED", "DECIDED", "EXECUTED"]
    assert {(each["agent_name"], each["agent_intent"]) for each in chain} == {("gatewayd query", "see the record")}
