"""`gatewayd demo` on a terminal: Ctrl-C or its closing ends all of it, also under make and while PostgreSQL starts."""

import contextlib
import fcntl
import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from gatewayd.cli.demo.self_host import WAITS
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.cli.gatewayd_process import COMMAND, environment

CHECKOUT = Path(__file__).parents[2]
PATIENCE_S = 180
LAST = WAITS[0]


@pytest.fixture(scope="module")
def state(short_folder: Callable[[], Path]) -> Iterator[Path]:
    """One for the whole file: its PostgreSQL is made once."""
    state = short_folder()
    try:
        yield state
    finally:
        EmbeddedPostgres(state / "postgres").stop("immediate")


class Terminal:
    """A terminal with one command in its foreground."""

    def __init__(self, words: Sequence[str]) -> None:
        self._ours, theirs = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            words,
            env=environment({"PYTHONPATH": str(CHECKOUT), "TERM": "dumb"}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=CHECKOUT,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)

    def wait_for(self, words: str) -> None:
        while words not in self.shown:
            piece = os.read(self._ours, 65536)  # raises EIO when everybody there has ended
            self.shown += piece.decode()

    def end(self, by: str) -> None:
        if by == "Ctrl-C":
            os.write(self._ours, b"\x03")
        else:
            self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._ours)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(words: Sequence[str]) -> Iterator[Terminal]:
    there = Terminal(words)
    try:
        yield there
    finally:
        there.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(there.process.pid, signal.SIGKILL)
        there.process.wait(PATIENCE_S)


def working_on(state: Path) -> list[str]:
    """The command lines of all processes that name this folder."""
    found = []
    for each in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if each.name.isdigit() and os.fsencode(state) in (line := (each / "cmdline").read_bytes()):
                found.append(line.decode().replace("\0", " "))
    return found


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def make_demo(folder: Path, state: Path) -> str:
    """`make demo`, in whose environment `gatewayd` is this checkout's and keeps its data in `state`."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(sys.executable)
    (programs / "gatewayd").write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@" --state {state}\n', encoding="utf-8")
    (programs / "gatewayd").chmod(0o755)
    (folder / ".run").touch()
    return f"make VENV={folder} demo"


def test_it_ends_when_its_terminal_is_closed(state: Path) -> None:
    with terminal([*COMMAND, "demo", "--state", str(state)]) as there:
        there.wait_for(LAST)
        assert working_on(state)
        there.end("closing")
        assert there.process.wait(PATIENCE_S) == 0
        assert not working_on(state)
    assert not list((state / "postgres").glob(".s.PGSQL.*"))


@pytest.mark.parametrize("ended_by", ["closing", "Ctrl-C"])
def test_by_make_it_ends_with_its_terminal(state: Path, tmp_path: Path, ended_by: str) -> None:
    """The terminal belongs to a shell. When that ends the kernel tells those in the foreground; make tells nobody."""
    with terminal(["sh", "-c", f"{make_demo(tmp_path, state)}; true"]) as there:
        there.wait_for(LAST)
        assert working_on(state)
        there.end(ended_by)
        wait_until(lambda: not working_on(state), "something still runs")
        assert "Traceback" not in there.shown
    assert not list((state / "postgres").glob(".s.PGSQL.*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_it_ends_while_postgres_starts(state: Path, number: signal.Signals) -> None:
    log = state / "postgres" / "postgres.log"
    log.unlink(missing_ok=True)
    with terminal([*COMMAND, "demo", "--state", str(state)]) as there:
        wait_until(log.exists, "pg_ctl was not begun")  # the server's first sign of life is its last sign before the signal
        os.kill(there.process.pid, number)
        os.kill(there.process.pid, number)  # a shell tells its jobs of what the kernel tells them too
        assert there.process.wait(PATIENCE_S) == 0
        assert not working_on(state)
    assert not (state / "postgres" / "data" / "postmaster.pid").exists()


def test_a_hangup_that_is_ignored_does_not_end_it(state: Path) -> None:
    """As nohup starts it, but that one would take the output elsewhere."""
    with terminal(["sh", "-c", f"trap '' HUP; exec {' '.join(COMMAND)} demo --state {state}"]) as there:
        wait_until(lambda: any("postgres" in line for line in working_on(state)), "PostgreSQL was not started")
        os.kill(there.process.pid, signal.SIGHUP)
        there.wait_for(LAST)
        os.kill(there.process.pid, signal.SIGHUP)
        os.kill(there.process.pid, signal.SIGTERM)
        assert there.process.wait(PATIENCE_S) == 0
    assert not working_on(state)
