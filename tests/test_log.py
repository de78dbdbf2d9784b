"""Log lines on real descriptors: one JSON object each, whatever stands in a field, and never a wait (decision 13)."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence

import pytest

READ_BYTES = 1 << 20


def written(code: str, **environ: str) -> list[str]:
    """The lines that a process of its own writes to stderr with `code`, in which `log` is imported."""
    found = subprocess.run(
        [sys.executable, "-c", f"import os, sys\nfrom gatewayd import log\n{code}"],
        capture_output=True,
        env={**os.environ, **environ},
        timeout=60,
        check=True,
    )
    assert found.stdout == b""
    return found.stderr.decode().splitlines()


def test_a_line_has_time_level_msg_and_then_its_fields() -> None:
    (line,) = written("log.debug(log.STARTED); log.info(log.STARTED, databases=2, note=None, names=['a'])")
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert list(found.items()) == [
        ("level", "info"),
        ("msg", "gatewayd started"),
        ("databases", 2),
        ("note", None),
        ("names", ["a"]),
    ]


@pytest.mark.parametrize(
    "value", ["'a\\nb\\x1b[0m\\x00'", "'\\ud800'", "'x' * 1_000_000", "['y' * 4000] * 100", "chr(10) * 9000"]
)
def test_any_field_makes_one_line_of_json_below_32_kib(value: str) -> None:
    (line,) = written(f"log.error(log.STARTED, field={value})")
    assert len(line.encode()) < 32 * 1024
    assert json.loads(line)["msg"] == "gatewayd started"


def test_the_priority_stands_first_only_where_stderr_is_the_journal() -> None:
    lines = "log.set_level('debug'); log.debug('d'); log.info('i'); log.warning('w'); log.error('e')"
    assert [line[:1] for line in written(lines)] == ["{"] * 4
    assert [line[:1] for line in written(lines, JOURNAL_STREAM="1:2")] == ["{"] * 4
    own = "s = os.fstat(2); os.environ['JOURNAL_STREAM'] = f'{s.st_dev}:{s.st_ino}'; "
    assert [line[:4] for line in written(own + lines)] == ["<7>{", "<6>{", "<4>{", "<3>{"]


def messages(text: bytes) -> Sequence[str]:
    """The msg of each whole line; the pieces of a line cut short have none."""
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line)["msg"])
        except ValueError:
            found.append("cut")
    return found


def test_a_pipe_that_nobody_reads_stops_nobody() -> None:
    """A client of stdio that never reads stderr: the lines that do not fit are dropped, and told of once there is room."""
    code = """
from gatewayd import log
for number in range(200):
    log.error("filler", text="x" * 4000)
print("went on", flush=True)
input()
log.error("after")
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert select.select([process.stdout], [], [], 60)[0], "the process waits for a reader"
        assert process.stdout.readline() == b"went on\n"
        text = os.read(process.stderr.fileno(), READ_BYTES)
        process.stdin.write(b"\n")
        process.stdin.close()
        text += process.stderr.read()
        assert process.wait(60) == 0
    found = messages(text)
    assert found[-2:] == ["log lines dropped", "after"]
    dropped = json.loads(text.splitlines()[-2])["count"]
    assert found.count("filler") + dropped == 200
    assert dropped > 0
