"""`gatewayd audit verify | prove | verify-proof | identity | erase | report` as programs, on hostile records too."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gatewayd.audit.events import Agent, Attempted, Decided, Event, Query, QueryId
from gatewayd.audit.rows import row_of
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import ensure_identity, verifier_of
from tests.audit.recorded import NOW_MS, Recorder, change

HOSTILE = "\x1b]0;owned\x07\x1b[2J</td><script>alert(1)</script>\u202e\u0000'\"&"
QUERY = QueryId("01JXT21Q00AAAAAAAAAAAAAAAA")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    key = ensure_identity(str(tmp_path))
    recording = Recorder(tmp_path / "audit.db", key=key)
    recording.calls(12)
    query = Query(QUERY, HOSTILE.replace("\0", ""), Agent(HOSTILE, "1"), HOSTILE)
    payloads = (Attempted(HOSTILE, "f" * 16), Decided("DENY", "SELECT", (HOSTILE,), HOSTILE, HOSTILE, policy="ab" * 32))
    for payload in payloads:
        recording.file.insert([(recording.ids.next(NOW_MS), row_of(Event(query, NOW_MS, payload)))])
    recording.close()
    return tmp_path


def run(folder: Path, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": os.environ["PATH"], "DB_PATH": str(folder / "audit.db"), "PYTHONWARNINGS": "error", **environ}
    return subprocess.run(
        [sys.executable, "-m", "gatewayd", "audit", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=variables,
        timeout=60,
    )


def is_tame(text: str) -> bool:
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_verify_ends_in_one_sentence_and_tells_by_its_exit(folder: Path) -> None:
    whole = run(folder, "verify")
    *findings, verdict = map(json.loads, whole.stdout.splitlines())
    assert (whole.returncode, verdict["intact"], whole.stderr) == (0, True, "")
    assert verdict["sentence"].startswith("intact: ")
    assert {finding["kind"] for finding in findings} <= {"note"}
    change(
        folder / "audit.db", "UPDATE audit_events SET payload = replace(payload, 'owned', 'own3d') WHERE event_type = 'DECIDED'"
    )
    broken = run(folder, "verify")
    *findings, verdict = map(json.loads, broken.stdout.splitlines())
    assert (broken.returncode, verdict["intact"]) == (1, False)
    assert any(finding["kind"] == "fault" and finding["seq"] and finding["ts"] for finding in findings)
    assert is_tame(broken.stdout)


def test_verify_takes_heads_kept_elsewhere(folder: Path, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "audit.db")) as connection:
        (note,) = connection.execute("SELECT note FROM checkpoints ORDER BY size DESC").fetchone()
    (tmp_path / "note").write_text(note, encoding="utf-8")
    line = json.dumps({"time": "2026", "level": "info", "msg": "audit checkpoint", "note": note}, separators=(",", ":"))
    assert run(folder, "verify", "--checkpoint", str(tmp_path / "note")).returncode == 0
    assert run(folder, "verify", "--journal", stdin=f"noise\nNov 01 host gatewayd[1]: {line}\n").returncode == 0
    assert "found no `audit checkpoint` line" in run(folder, "verify", "--journal", stdin="noise\n").stderr
    assert run(folder, "verify", "--checkpoint", "/nowhere").returncode == 2
    change(folder / "audit.db", "DELETE FROM audit_events WHERE seq > 5", "DELETE FROM checkpoints")
    assert "only 5 are here" in run(folder, "verify", "--journal", stdin=line).stdout


def test_verify_with_another_key_trusts_nothing(folder: Path) -> None:
    other = str(verifier_of(SigningKey.generate()))
    found = run(folder, "verify", "--key", other)
    assert found.returncode == 1
    assert "not one of those given" in found.stdout
    assert run(folder, "verify", "--key", "nonsense").returncode == 2


def test_a_file_that_is_none_is_said_in_one_line(folder: Path) -> None:
    for path, said in (("/nowhere/x", "no such file"), (str(folder / "identity.json"), "not a database")):
        found = run(folder, "verify", path)
        assert found.returncode == 1
        assert said in found.stderr + found.stdout
        assert "Traceback" not in found.stderr


def test_a_proof_goes_to_another_machine(folder: Path, tmp_path: Path) -> None:
    key = run(folder, "identity").stdout.strip()
    proof = run(folder, "prove", QUERY)
    assert (proof.returncode, proof.stderr) == (0, "")
    (tmp_path / "elsewhere").mkdir()
    checked = run(tmp_path / "elsewhere", "verify-proof", "-", "--key", key, stdin=proof.stdout)
    rows = [json.loads(line) for line in checked.stdout.splitlines()]
    assert [row["event_type"] for row in rows] == ["ATTEMPTED", "DECIDED"]
    assert json.loads(rows[0]["payload"])["sql_raw"] == HOSTILE
    assert checked.stderr.startswith("proved: 2 rows of query ")
    assert is_tame(checked.stdout + checked.stderr + proof.stdout)
    assert run(tmp_path / "elsewhere", "verify-proof", "-", stdin=proof.stdout).returncode == 2  # no key: nobody is trusted
    elsewhere = re.sub(r"^index (\d+)$", lambda found: f"index {int(found[1]) ^ 1}", proof.stdout, flags=re.MULTILINE)
    false = run(folder, "verify-proof", "-", stdin=elsewhere)
    assert (false.returncode, false.stdout) == (1, "")
    assert false.stderr.startswith("NOT PROVED: ")
    assert run(folder, "prove", "01ARZ3NDEKTSV4RRFFQ69G5FAV").returncode == 1
    assert run(folder, "prove", "x").returncode == 2


def test_there_is_no_identity_before_the_first_start(tmp_path: Path) -> None:
    found = run(tmp_path, "identity")
    assert found.returncode == 1
    assert "GATEWAY_STATE_DIR" in found.stderr


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_the_report_in_its_three_forms(folder: Path, tmp_path: Path) -> None:
    period = ("--from", "2025-06-01", "--to", "2025-06-30")
    found = json.loads(run(folder, "report", *period).stdout)
    assert found["verdict"].startswith("intact")
    assert found["gaps"] == []
    assert found["calls"] >= 9
    assert found["policies"] == ["ab" * 32]
    assert sum(each["denied"] for each in found["agents"]) == found["denied"]
    assert run(folder, "report", "--html", str(tmp_path / "report.html"), *period).returncode == 0
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.tags
    assert {"svg", "table"} <= tags.tags
    assert not {name for name in tags.attributes if name.startswith("on") or name in ("src", "href")}
    assert "&lt;script&gt;" in html
    assert is_tame(html)
    empty = json.loads(run(folder, "report", "--from", "2020-01-01", "--to", "2020-01-02").stdout)
    assert empty["rows"] == 0
    assert run(folder, "report", "--from", "2020-01-02", "--to", "2020-01-01").returncode == 2
    assert run(folder, "report", "--from", "yesterday").returncode == 2


def test_a_report_over_a_gap_says_so(folder: Path) -> None:
    change(folder / "audit.db", "DELETE FROM audit_events WHERE seq IN (4, 5)")
    found = run(folder, "report", "--from", "2025-06-01", "--to", "2025-06-30")
    assert found.returncode == 1
    assert json.loads(found.stdout)["gaps"] == [[4, 5]]


def test_erasing_is_refused_unless_it_is_switched_on(folder: Path) -> None:
    options = ("erase", "--query-id", QUERY, "--reason", "asked for by the person")
    assert "GATEWAY_AUDIT_ERASABLE=1" in run(folder, *options).stderr
    assert b"owned" in (folder / "audit.db").read_bytes()
    erased = run(folder, *options, GATEWAY_AUDIT_ERASABLE="1")
    assert (erased.returncode, "erased the details of 2 rows" in erased.stderr) == (0, True)
    assert run(folder, "verify").returncode == 0
    proof = run(folder, "prove", QUERY)
    assert run(folder, "verify-proof", "-", stdin=proof.stdout).returncode == 0
    assert run(folder, "erase", "--reason", "x", GATEWAY_AUDIT_ERASABLE="1").returncode == 2
