"""`gatewayd audit …` on the file of a gatewayd that runs: what is found, what a person sees, and that nothing is written."""

import json
import re
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.audit import format_1
from tests.cli.conftest import STATEMENTS, Served, leaves_no_trace
from tests.cli.gatewayd_process import run, run_on_terminal, serving

COLOUR = re.compile("\x1b\\[[0-9;]*3[0-9]")


def found(served: Served, *words: str) -> list[dict[str, Any]]:
    shown = run(["audit", *words], served.variables)
    assert shown.returncode == 0, shown.stderr
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_since_the_beginning_is_everything_as_the_file_has_it(served: Served) -> None:
    rows = found(served, "since", "0")
    with sqlite3.connect(f"file:{served.folder / 'audit.db'}?mode=ro", uri=True) as file:
        stored = file.execute("SELECT id, query_id, event_type, payload FROM audit_events ORDER BY id").fetchall()
    file.close()
    assert [(each["id"], each["query_id"], each["event_type"], each["payload"]) for each in rows] == [
        (id_, query_id, event_type, json.loads(payload)) for id_, query_id, event_type, payload in stored
    ]
    assert [each["payload"]["sql_raw"] for each in rows if each["event_type"] == "ATTEMPTED"][: len(STATEMENTS)] == list(
        STATEMENTS
    )


def test_rows_say_where_they_stand_in_the_tree(served: Served) -> None:
    whole = found(served, "since", "0")
    assert [each["seq"] for each in whole] == list(range(1, len(whole) + 1))
    assert len({each["instance"] for each in whole}) == 1
    assert found(served, "tail", "-n", "1")[0]["seq"] == len(whole)
    last = whole[-1]
    for words in (["tail"], ["since", "0"], ["show", last["id"]]):
        assert f"seq {last['seq']}  {last['id']}" in run_on_terminal(["audit", *words], served.variables)[1]


def test_a_file_of_format_1_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    format_1.write(path, 3)
    shown = run(["audit", "since", "0"], {"DB_PATH": str(path)})
    assert [(row["seq"], row["instance"]) for row in map(json.loads, shown.stdout.splitlines())] == [(None, None)] * 3
    assert "no seq" in run_on_terminal(["audit", "tail"], {"DB_PATH": str(path)})[1]


def test_a_cursor_goes_on_where_the_last_page_ended(served: Served) -> None:
    whole = found(served, "since", "0")
    pages: list[dict[str, Any]] = []
    while page := found(served, "since", pages[-1]["id"] if pages else "0", "--limit", "5"):
        pages += page
    assert pages == whole
    assert found(served, "since", whole[3]["id"].lower()) == whole[4:]


def test_durations(served: Served) -> None:
    whole = found(served, "since", "0")
    assert found(served, "since", "1d12h") == whole
    assert found(served, "since", "2w") == whole


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        (["--type", "failed"], {"event_type": "FAILED"}),
        (["--rule", "table_access"], {"event_type": "DECIDED"}),
        (["--agent", "gatewayd query", "--type", "EXECUTED"], {"event_type": "EXECUTED", "agent_name": "gatewayd query"}),
        (["--database", "__default__"], {"database": "__default__"}),
    ],
)
def test_filters(served: Served, options: list[str], holds: dict[str, str]) -> None:
    rows = found(served, "since", "0", *options)
    assert rows
    assert all({key: row[key] for key in holds} == holds for row in rows)
    assert rows == found(served, "tail", "--limit", "1000", *options)


@pytest.mark.parametrize("options", [["--database", "other"], ["--agent", "nobody"], ["--rule", "multi_statement"]])
def test_filters_that_match_nothing(served: Served, options: list[str]) -> None:
    assert found(served, "since", "0", *options) == found(served, "tail", *options) == []


def test_tail_shows_the_latest_in_order(served: Served) -> None:
    whole = found(served, "since", "0")
    assert found(served, "tail", "-n", "4") == whole[-4:]


def test_tail_follows(served: Served) -> None:
    with serving(["audit", "tail", "-f", "-n", "1"], served.variables) as following:
        following.wait_for('"id"')
        run(["query", "SELECT 'follow me'"], served.variables)
        following.wait_for("follow me")
        following.wait_for("EXECUTED")
        assert following.stop(signal.SIGINT) == 0
    assert "Traceback" not in following.text


def test_denies_have_statement_and_reason(served: Served) -> None:
    denials = found(served, "denies")
    assert [(each["policy_rule"], each["sql_raw"]) for each in denials] == [
        ("table_access", "SELECT * FROM secrets"),
        ("parse_error", "SELEC 1"),
    ]
    assert "level deny" in denials[0]["reason"]
    assert denials[0]["agent_intent"] == "fill the audit"
    assert [each["policy_rule"] for each in found(served, "denies", "--rule", "parse_error")] == ["parse_error"]
    assert [each["policy_rule"] for each in found(served, "denies", "-n", "1")] == ["parse_error"]


def test_show_takes_any_id_of_the_call(served: Served) -> None:
    failed = found(served, "since", "0", "--type", "FAILED")[0]
    chain = found(served, "show", failed["id"])
    assert [each["event_type"] for each in chain] == ["ATTEMPTED", "DECIDED", "FAILED"]
    for id_ in (failed["query_id"], chain[0]["id"], chain[1]["id"].lower()):
        assert found(served, "show", id_) == chain


def test_show_of_what_is_not_there(served: Served) -> None:
    shown = run(["audit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"], served.variables)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "nothing is recorded" in shown.stderr
    wrong = run(["audit", "show", "xyz"], served.variables)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "26 characters" in wrong.stderr


def test_stats_agree_with_the_file(served: Served) -> None:
    whole = found(served, "since", "0")
    stats = found(served, "stats")
    (calls,) = [each for each in stats if each["kind"] == "calls"]
    decided = [each["payload"]["decision"] for each in whole if each["event_type"] == "DECIDED"]
    assert (calls["calls"], calls["allowed"], calls["denied"]) == (
        sum(each["event_type"] == "ATTEMPTED" for each in whole),
        decided.count("ALLOW"),
        decided.count("DENY"),
    )
    assert calls["failed"] == 1
    assert calls["rows_affected"] == 2
    assert {each["policy_rule"]: each["count"] for each in stats if each["kind"] == "policy_rule"} == {
        "table_access": 1,
        "parse_error": 1,
    }
    assert [each["error_class"] for each in stats if each["kind"] == "error_class"] == ["22012"]


@pytest.mark.parametrize("words", [["tail"], ["since", "0"], ["denies"], ["show", "…"], ["stats"]], ids=lambda words: words[0])
def test_a_person_sees_text_that_cannot_drive_the_terminal(served: Served, words: list[str]) -> None:
    attack = next(each for each in found(served, "since", "0", "--type", "ATTEMPTED") if "owned" in each["payload"]["sql_raw"])
    words = [word if word != "…" else attack["id"] for word in words]
    code, shown = run_on_terminal(["audit", *words], {**served.variables, "NO_COLOR": "1"})
    assert code == 0
    assert not set("\x07\x9b\u202e") & set(shown)
    assert "\x1b]" not in shown
    assert '{"' not in shown
    if words[0] in ("since", "show"):
        assert "\\x1b]0;owned\\x07" in shown


@pytest.mark.parametrize("words", [["since", "0"], ["show", "…"]], ids=lambda words: words[0])
def test_neither_do_lines_in_a_pipe(served: Served, words: list[str]) -> None:
    attack = next(each for each in found(served, "since", "0", "--type", "ATTEMPTED") if "owned" in each["payload"]["sql_raw"])
    shown = run(["audit", *(word if word != "…" else attack["id"] for word in words)], served.variables).stdout
    assert not set("\x07\x1b\x9b\u202e") & set(shown)


def test_colours_unless_unwanted(served: Served) -> None:
    assert COLOUR.search(run_on_terminal(["audit", "tail"], served.variables)[1])
    assert not COLOUR.search(run_on_terminal(["audit", "tail"], {**served.variables, "NO_COLOR": "1"})[1])


@pytest.mark.parametrize("words", [["tail"], ["since", "7d"], ["denies"], ["stats"]], ids=lambda words: words[0])
def test_reading_leaves_the_file_as_it_is(served: Served, words: list[str]) -> None:
    assert leaves_no_trace(served, lambda: found(served, *words))


@pytest.mark.parametrize("words", [["tail"], ["since", "1h"], ["denies"], ["stats"], ["show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]])
def test_no_file_or_no_audit_file(words: list[str], tmp_path: Path) -> None:
    missing = run(["audit", *words], {"DB_PATH": str(tmp_path / "none.db")})
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "there is no such file; name one with --file or DB_PATH" in missing.stderr
    (tmp_path / "text").write_text("this is no SQLite file", encoding="utf-8")
    other = run(["audit", *words, "--file", str(tmp_path / "text")])
    assert (other.returncode, other.stdout) == (1, "")
    assert "Traceback" not in other.stderr


@pytest.mark.parametrize("start", ["7", "7days", "-1d", "0d", "yesterday", "01ARZ3"])
def test_wrong_starts_are_told(served: Served, start: str) -> None:
    shown = run(["audit", "since", start], served.variables)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "30m, 12h" in shown.stderr or "--help" in shown.stderr
