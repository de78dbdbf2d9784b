"""`gatewayd approve`: what the operator sees, what the lines mean, and a life of it over a restart."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import trio

from gatewayd.approvals.desk.requests import DeskRequest
from gatewayd.approvals.messages import Approved, GateAsk, Pending, Preview
from gatewayd.cli.approve.shown import LITERAL, lines, marked
from gatewayd.cli.approve.terminal import Line, read_line
from tests.approvals.desks import an_ask, gate
from tests.cli.gatewayd_process import COMMAND, environment


@pytest.mark.parametrize(
    ("text", "with_id", "meant"),
    [
        ("a\n", False, Line("approved")),
        ("a looks right\n", False, Line("approved", note="looks right")),
        ("a <=12 looks right", False, Line("approved", rows_at_most=12, note="looks right")),
        ("a <= 0", False, Line("approved", rows_at_most=0)),
        ("a <=x", False, None),
        ("a <=12rows", False, None),
        ("a <=-1", False, None),
        *((f"a {bound}", False, None) for bound in ("<12", "< 12", "=<12", "≤12", "12", "12 rows", "> 3", "== 3", "<=١٢")),
        ("a ok <=12", False, Line("approved", note="ok <=12")),
        ("d not now\n", False, Line("denied", note="not now")),
        ("d <=3", False, Line("denied", note="<=3")),
        ("s", False, Line("next")),
        ("", False, None),
        ("approve", False, None),
        ("A", False, None),
        ("a A01 <=3 ok", True, Line("approved", "A01", 3, "ok")),
        ("d A01", True, Line("denied", "A01")),
        ("a", True, None),
        ("a <=3", True, Line("approved", "<=3")),
    ],
)
def test_what_a_line_means(text: str, with_id: bool, meant: Line | None) -> None:
    assert read_line(text, with_id=with_id) == meant


def shown(ask: GateAsk) -> str:
    return "\n".join("".join(text for text, _ in line) for line in lines(DeskRequest("A01", ask, 0, 600_000), 0))


def test_a_request_is_shown_with_all_that_matters() -> None:
    ask = msgspec.structs.replace(
        an_ask(sql="UPDATE t\nSET a = 'x''y', b = 3.5\nWHERE id = 7", intent="month end", token_id="T1"),
        preview=Preview(12, ("Update on t", "  ->  Seq Scan on t"), 3),
    )
    text = shown(ask)
    for words in (
        "A01", "expires in 10 min", "public.t", "rows    12", "a 1 (as it calls itself)", "T1",
        "month end (the agent's own words)", "Seq Scan on t", "a change of rows", "WHERE id = 7",
    ):  # fmt: skip
        assert words in text
    assert [text for text, style in marked(ask.sql) if style == LITERAL] == ["'x''y'", "3.5", "7"]
    assert "".join(text for text, _ in marked(ask.sql)) == ask.sql


@pytest.mark.parametrize(
    ("preview", "said"),
    [
        (None, "not counted"),
        (Preview(None, why="too many"), "not known: too many"),
        (Preview(10_001), "more than 10000"),
        (Preview(3, why="at most so many"), "3 (at most so many)"),
    ],
)
def test_rows_are_said_as_far_as_they_are_known(preview: Preview | None, said: str) -> None:
    assert said in shown(msgspec.structs.replace(an_ask(), preview=preview))


def test_nothing_in_a_request_drives_the_terminal() -> None:
    bad = "\x1b[2J\x07\u202e\r\x9b31m"
    ask = msgspec.structs.replace(
        an_ask(sql=f"DELETE FROM t -- {bad}\n WHERE a = '{bad}'", intent=bad, token_id=bad),
        agent_name=bad, agent_version=bad, database=bad, statement_type=bad, tables_touched=(bad,),
        preview=Preview(None, (bad,), why=bad),
    )  # fmt: skip
    assert not set(shown(ask)) & set("\x1b\x07\u202e\r\x9b")


PRETENCES = (
    "  rows    1",
    "  kind    a change of nothing",
    "UPDATE on __default__   A02   expires in 29 min",
    "approve? a [<=rows] [note] approves, d [note] denies, s shows the next one first",
)


@pytest.mark.parametrize("width", [20, 80, 100])
@pytest.mark.parametrize("pretence", PRETENCES)
def test_a_statement_cannot_pretend_to_be_the_frame_around_it(pretence: str, width: int) -> None:
    """Neither with line ends nor with blanks up to where a terminal would fold the line."""
    folds = "".join(f"{' ' * blanks}{pretence}" for blanks in range(max(width, 40) + 1))
    sql = f"DELETE FROM t -- x\n{pretence}\n{pretence}{folds}\nWHERE true"
    ask = msgspec.structs.replace(an_ask(sql=sql, intent=folds), agent_name=folds, preview=Preview(7, (folds,)))
    rows = ["".join(text for text, _ in line) for line in lines(DeskRequest("A01", ask, 0, 600_000), 0, width)]
    assert not [row for row in rows if row.startswith(pretence)]
    assert all(len(row) <= max(width, 40) for row in rows)
    assert [row.split()[0] for row in rows if row.startswith("  ") and row[2] != " "] == [
        "intent", "agent", "token", "kind", "tables", "rows",
    ]  # fmt: skip
    assert rows[-1] == "  rows    7"


def test_what_decides_stands_next_to_the_question_however_long_the_statement() -> None:
    ask = msgspec.structs.replace(
        an_ask(sql="DELETE FROM t" + "\n" * 9000 + "WHERE a IN (" + ",\n".join(map(str, range(900))) + ")", intent="i" * 9000),
        tables_touched=tuple(f"public.t{number}" for number in range(500)),
        preview=Preview(3, tuple(f"line {number}" for number in range(900))),
    )
    rows = shown(ask).split("\n")
    assert len(rows) < 1000
    assert "(8997 more empty lines)" in "\n".join(rows)
    last = "\n".join(rows[-20:])
    for words in ("(9000 characters)", "and 480 more", "a change of rows"):
        assert words in last
    assert rows[-1] == "  rows    3"


@contextmanager
def started(file: Path, **more: object) -> Iterator[subprocess.Popen[str]]:
    """With its input and output in pipes, its id and decisions in text; port and token are in `file`'s neighbours."""
    words = [*COMMAND, "approve", "--port", "0", "--file", str(file), "--by", "ann"]
    with subprocess.Popen(
        words,
        env=environment({"GATEWAY_APPROVAL_TOKEN": "the-token"}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if "GATEWAY_APPROVAL_URL=" in line:
            return line.split("=", 1)[1].strip()
    raise AssertionError("ended without its address")


async def test_a_life_with_a_kill_in_it(tmp_path: Path) -> None:
    file = tmp_path / "requests.db"
    with started(file) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        async with gate(url_of(process), "the-token") as client:
            asked = await client.ask(an_ask("Q1"), 10)
            assert isinstance(asked, Pending)
        told = json.loads(process.stdout.readline())
        assert (told["approval_id"], told["sql"]) == (asked.approval_id, "DELETE FROM t")
        process.kill()
    with started(file) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        url = url_of(process)
        assert json.loads(process.stdout.readline())["approval_id"] == asked.approval_id
        process.stdin.write(f"a nosuch\na {asked.approval_id} <=5 fine\nd {asked.approval_id} too late\n")
        process.stdin.flush()
        async with gate(url, "the-token") as client:
            with trio.fail_after(60):
                while isinstance(answer := await client.ask(an_ask("Q2"), 10), Pending):
                    pass
            assert answer == Approved(by="ann", note="fine", rows_at_most=5, approval_id=asked.approval_id, query_id="Q2")
        process.stdin.close()
        said = process.stderr.read()
        assert process.wait(60) == 0
    assert "nosuch is not open any more" in said
    assert f"approved, 5 rows at most: {asked.approval_id}" in said
    assert f"{asked.approval_id} is not open any more" in said
    assert "the-token" not in said


async def test_on_a_terminal_a_line_typed_before_the_request_decides_nothing(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = [*COMMAND, "approve", "--port", "0", "--file", str(tmp_path / "r.db"), "--by", "ann"]
    given = environment({"GATEWAY_APPROVAL_TOKEN": "the-token", "TERM": "xterm"})
    with subprocess.Popen(words, env=given, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        screen = b""

        def read_until(*wanted: bytes) -> None:
            nonlocal screen
            while not all(word in screen for word in wanted):
                screen += os.read(ours, 65536)

        read_until(b"Ctrl-D ends")
        url = next(line for line in screen.decode().splitlines() if "APPROVAL_URL" in line).split("=", 1)[1].strip()
        os.write(ours, b"a typed too soon\n")
        async with gate(url, "the-token") as client:
            asked = await client.ask(an_ask("Q1"), 10)
            assert isinstance(asked, Pending)
            await trio.to_thread.run_sync(read_until, b"approve?")
            assert (await client.ask(an_ask("Q1"), 10)) == asked
            os.write(ours, b"a meant\n")
            await trio.to_thread.run_sync(read_until, b"approved: ")
            answer = await client.ask(an_ask("Q1"), 10)
            assert isinstance(answer, Approved)
            assert (answer.by, answer.note) == ("ann", "meant")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130, -signal.SIGINT)
        os.close(ours)
