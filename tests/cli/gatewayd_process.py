"""gatewayd as a process of its own, as people and agents start it."""

import contextlib
import fcntl
import os
import pty
import queue
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

COMMAND = [sys.executable, "-m", "gatewayd"]
_PATIENCE_S = 180  # a command takes a second; on a machine that is busy with other things, many


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` and what any process needs, nothing that this process happens to be configured with."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
    return {**kept, **variables}


def run(words: Sequence[str], variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself."""
    return subprocess.run(
        [*COMMAND, *words],
        env=environment(variables or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )


def run_on_terminal(words: Sequence[str], variables: Mapping[str, str] | None = None, *, columns: int = 200) -> tuple[int, str]:
    """The same with stdin, stdout and stderr on a terminal of its own; the exit code and what stood there in the end, escapes
    included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    given = environment({"TERM": "xterm-256color", **(variables or {})})
    with subprocess.Popen(
        [*COMMAND, *words], env=given, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the last holder of the other end is gone
            while piece := os.read(ours, 65536):
                shown += piece
        os.close(ours)
        return process.wait(_PATIENCE_S), shown.decode().replace("\r\n", "\n")


class Running:
    """A gatewayd that serves. `lines` are read from stdout and stderr as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.text = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, words: str) -> str:
        """The first line that holds `words`; fails with everything printed when the process ends without it."""
        while words not in (line := self._next(words)):
            pass
        return line

    def wait_until(self, holds: Callable[[str], bool], what: str) -> None:
        """Reads on until this holds of all that was printed; fails with it when the process ends before."""
        while not holds(self.text):
            self._next(what)

    def _next(self, expected: str) -> str:
        line = self._lines.get(timeout=_PATIENCE_S)
        assert line is not None, f"ended without {expected!r}:\n{self.text}"
        self.text += line
        return line

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal and wait for the end; the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; the exit code."""
        code = self.process.wait(_PATIENCE_S)
        self._reader.join(_PATIENCE_S)
        while (line := self._lines.get(timeout=_PATIENCE_S)) is not None:
            self.text += line
        return code


@contextmanager
def serving(words: Sequence[str], variables: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Start a command that serves; killed at the end of the block if it still runs."""
    with subprocess.Popen(
        [*COMMAND, *words],
        env=environment(variables or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        running = Running(process)
        try:
            yield running
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(_PATIENCE_S)
            running._reader.join(_PATIENCE_S)
