"""What reaches a terminal: text without control, JSON that means the same, signs of life only where somebody looks."""

import os
import pty
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.cli import progress
from gatewayd.cli.options import duration_s
from gatewayd.cli.output import cell, json_line, visible

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(texts)
def test_visible_text_drives_nothing(text: str) -> None:
    assert visible(text).isprintable()
    assert all(character.isprintable() or character == "\n" for character in visible(text, lines=True))
    assert cell(text).isprintable()


@given(texts)
def test_plain_text_stays_as_it_is(text: str) -> None:
    plain = "".join(filter(str.isprintable, text))
    assert visible(plain) == plain


@given(st.dictionaries(texts, texts))
def test_json_lines_mean_the_same_and_drive_nothing(value: dict[str, str]) -> None:
    line = json_line(value)
    assert msgspec.json.decode(line) == value
    assert not any(character < " " or "\x7f" <= character <= "\x9f" or "\u202a" <= character <= "\u202e" for character in line)
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "yes"),
        (7, "7"),
        (["a", "b\x1b"], "a, b\\x1b"),
        ({"t": "partial", "keepEnd": 4}, "{t: partial, keepEnd: 4}"),
        ("two\nlines", "two lines"),
    ],
)
def test_cells(value: object, shown: str) -> None:
    assert cell(value) == shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("12h", 43200), ("7d", 604800), ("2w", 1209600), ("1d12h", 129600), ("0d", 0)],
)
def test_durations(text: str, seconds: int) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "7 d", "7D", "-7d", "1.5h", "7dd", "٧d", "9999999d"])
def test_no_durations(text: str) -> None:
    assert duration_s(text) is None


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bytes]]:
    """In the block stderr is a terminal; gives what stands there so far. No fixture: between those and
    their test pytest puts its own stderr in place."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    with open(theirs, "w", encoding="utf-8") as stderr, monkeypatch.context() as patched:
        patched.setenv("TERM", "xterm")
        patched.setattr(sys, "stderr", stderr)
        yield lambda: b"".join(_pieces(ours))
    os.close(ours)


def _pieces(terminal: int) -> Iterator[bytes]:
    with suppress(BlockingIOError):
        while piece := os.read(terminal, 4096):
            yield piece


def test_long_work_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as shows:
        with progress.progress("deciding", 3, after_s=0) as shown:
            shown.advance()
        assert b"deciding" in shows()


async def test_a_long_wait_shows_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as shows:
        async with progress.waiting("reading the catalog", after_s=0):
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert b"reading the catalog" in shows()


def test_in_a_pipe_nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.progress("deciding", 3, after_s=0) as shown:
        shown.advance()
    assert capfd.readouterr() == ("", "")
