"""`gatewayd policy replay` over the file of a gatewayd that runs, and over a file with what a running one seldom has."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gatewayd.audit.events import SQL_RAW_BYTES
from tests.cli.conftest import STATEMENTS, Served, leaves_no_trace
from tests.cli.gatewayd_process import run, run_on_terminal

CLOSED = "table_access: {default: deny, tables: {secrets: read, written: read}}\n"


@pytest.fixture
def closed(tmp_path: Path) -> str:
    path = tmp_path / "new.yaml"
    path.write_text(CLOSED, encoding="utf-8")
    return str(path)


def lines(text: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in map(json.loads, text.splitlines()) if each["kind"] == kind]


@pytest.mark.parametrize("words", [[], ["--no-connect"]], ids=["connected", "by names"])
def test_what_would_flip(served: Served, closed: str, words: list[str]) -> None:
    shown = run(["policy", "replay", closed, "--since", "1h", *words], served.variables)
    assert shown.returncode == 0, shown.stderr
    flips = {each["sql"]: (each["change"], each["rule"], each["agents"]) for each in lines(shown.stdout, "statement")}
    one = {"gatewayd query": 1}
    assert flips == {
        STATEMENTS[0]: ("now denied", "table_access", one),
        STATEMENTS[1]: ("now allowed", "table_access", one),
        STATEMENTS[2]: ("now denied", "table_access", one),
    }
    (summary,) = lines(shown.stdout, "summary")
    assert (summary["statements"], summary["same"], summary["now_denied"], summary["now_allowed"]) == (6, 3, 2, 1)
    assert {(each["change"], each["table"]) for each in lines(shown.stdout, "table")} == {
        ("now denied", "public.customers"),
        ("now allowed", "public.secrets"),
        ("now denied", "public.written"),
    }
    assert ("by names alone" in shown.stderr) == bool(words)


def test_the_policy_in_force_flips_nothing(served: Served) -> None:
    shown = run(["policy", "replay", "--check"], served.variables)
    assert shown.returncode == 0
    assert [each["kind"] for each in map(json.loads, shown.stdout.splitlines())] == ["summary"]


def test_check_is_for_ci(served: Served, closed: str) -> None:
    assert run(["policy", "replay", closed, "--check"], served.variables).returncode == 1


def test_nothing_is_written_and_nothing_runs(served: Served, closed: str) -> None:
    assert leaves_no_trace(served, lambda: run(["policy", "replay", closed], served.variables))


def test_a_person_sees_tables(served: Served, closed: str) -> None:
    code, shown = run_on_terminal(["policy", "replay", closed, "--limit", "1"], {**served.variables, "NO_COLOR": "1"})
    assert code == 0
    assert "now denied" in shown
    assert "public.customers" in shown
    assert "gatewayd query (1)" in shown
    assert "and 2 more kinds of statements" in shown
    assert "6 statements since 7d decided again" in shown


def test_what_cannot_be_decided_again_is_counted_apart(served: Served, closed: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with sqlite3.connect(served.folder / "audit.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        columns = "tenant_id, database, agent_name, agent_version, agent_intent, mcp_token_id, ts, event_type"

        def add(id_: str, query_id: str, event_type: str, database: str, payload: object) -> None:
            target.execute(
                f"INSERT INTO audit_events (id, query_id, {columns}, payload, schema_version) "
                "SELECT ?, ?, tenant_id, ?, NULL, NULL, NULL, NULL, ts, ?, ?, 3 FROM audit_events LIMIT 1",
                (id_, query_id, database, event_type, json.dumps(payload)),
            )

        long = {"sql_raw": f"SELECT '{'x' * (SQL_RAW_BYTES - 8)}", "sql_fingerprint": "0" * 16}
        assert len(long["sql_raw"]) == SQL_RAW_BYTES
        short = {"sql_raw": "SELECT 1", "sql_fingerprint": "1" * 16}
        add("7ZZZZZZZZZZZZZZZZZZZZZZZZ1", "A" * 26, "ATTEMPTED", "__default__", long)
        add("7ZZZZZZZZZZZZZZZZZZZZZZZZ2", "A" * 26, "DECIDED", "__default__", {"decision": "DENY", "policy_rule": "parse_error"})
        add("7ZZZZZZZZZZZZZZZZZZZZZZZZ3", "B" * 26, "ATTEMPTED", "__default__", short)
        add("7ZZZZZZZZZZZZZZZZZZZZZZZZ4", "C" * 26, "ATTEMPTED", "gone", short)
        add("7ZZZZZZZZZZZZZZZZZZZZZZZZ5", "C" * 26, "DECIDED", "gone", {"decision": "ALLOW"})
    source.close()
    target.close()
    shown = run(["policy", "replay", closed, "--since", "0", "--audit", str(copy), "--no-connect"])
    assert shown.returncode == 0, shown.stderr
    (summary,) = lines(shown.stdout, "summary")
    assert (summary["statements"], summary["cut"], summary["undecided"], summary["other_database"]) == (6, 1, 1, 1)
    assert "1 recorded up to 1 MiB only" in shown.stderr


def test_without_addresses_it_says_what_to_type(served: Served, closed: str) -> None:
    given = {name: value for name, value in served.variables.items() if name != "DATABASE_URL"}
    shown = run(["policy", "replay", closed], given)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "DATABASE_URL is unset" in shown.stderr
