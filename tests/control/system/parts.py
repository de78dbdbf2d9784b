"""The programs of a system as processes that end in every way, and are started again."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import trio

from tests.cli.gatewayd_process import COMMAND, environment

SERVES: Final = b"gatewayd control serves"
UNEXPECTED: Final = '"msg":"unexpected failure"'


class Part:
    """One program. What it prints goes into `log`, through all of its lives."""

    def __init__(self, name: str, words: Sequence[str], variables: Mapping[str, str], log: Path) -> None:
        self.name: Final = name
        self.log: Final = log
        self._words: Final = words
        self._variables: Final = dict(variables)
        self._process: subprocess.Popen[bytes] | None = None
        self._begins = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self._begins = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*COMMAND, *self._words],
                env=environment(self._variables),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: signal.Signals) -> None:
        if self.is_running:
            assert self._process is not None
            self._process.send_signal(number)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.ended()

    def kill_now(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def children(self) -> list[int]:
        """The processes that it has started."""
        if not self.is_running:
            return []
        threads = Path(f"/proc/{self.pid}/task")
        try:
            return [int(pid) for thread in threads.iterdir() for pid in (thread / "children").read_text().split()]
        except OSError:  # it ends now
            return []

    @staticmethod
    def kill_pid(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    async def stop(self) -> int:
        """In order; the exit code."""
        self.signal(signal.SIGTERM)
        return await self.ended()

    async def ended(self) -> int:
        assert self._process is not None
        return await trio.to_thread.run_sync(self._process.wait)

    async def told(self, words: str) -> str:
        """The first line of its log, from its first life on, that holds `words`."""
        while self.is_running:
            for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
                if words in line and line.endswith("\n"):
                    return line
            await trio.sleep(0.05)
        raise AssertionError(f"{self.name} ended without {words!r}: {self.log.read_text(encoding='utf-8')[-3000:]}")

    async def until_served(self) -> None:
        """Until this life of a control plane serves, or has ended."""
        while self.is_running and SERVES not in self.log.read_bytes()[self._begins :]:  # noqa: ASYNC110  # of another process
            await trio.sleep(0.05)

    def unexpected(self) -> list[str]:
        """The lines that say that something of ours failed."""
        if not self.log.exists():
            return []
        return [line for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if UNEXPECTED in line]
