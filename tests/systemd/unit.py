"""gatewayd as its unit starts it: credentials, state directory, watchdog and journal."""

import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.cli.gatewayd_process import COMMAND, environment
from tests.daemon.daemon_rig import POLICY

TOKEN = "token-of-the-unit"
PATIENCE_S = 180


class Unit:
    """What systemd sees of the service.

    Messages are taken from their socket as they come, as systemd does: the kernel may hold ten, and a watchdog fed five times a
    second would soon leave no room for the others.
    """

    def __init__(self, process: subprocess.Popen[bytes], notify: socket.socket, journal: socket.socket) -> None:
        self.process = process
        self.journal = journal
        self.seen: list[list[str]] = []
        self.text = b""
        self.fed_at: list[float] = []
        """When the watchdog was fed, on the monotonic clock."""
        journal.settimeout(PATIENCE_S)
        self._notify = notify
        self._messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while message := self._notify.recv(4096):
            if message == b"WATCHDOG=1":
                self.fed_at.append(time.monotonic())
            self._messages.put(message)

    def until(self, first: str) -> list[str]:
        """The next message that begins with this assignment, as its lines."""
        while True:
            lines = self._messages.get(timeout=PATIENCE_S).decode().split("\n")
            self.seen.append(lines)
            if lines[0] == first:
                return lines

    def ended(self) -> list[bytes]:
        """After the end of the process: the messages that nobody asked for."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._notify.getsockname())
        self._reader.join(PATIENCE_S)
        return [self._messages.get() for _ in range(self._messages.qsize())]

    def stop(self) -> tuple[int, list[str]]:
        """Exit code and the lines of the journal."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE_S)
        self.logged("")
        return code, self.text.decode().splitlines()

    def logged(self, words: str) -> None:
        """Reads the journal until these words are in it, to its end for none."""
        while not words or words not in self.text.decode():
            part = self.journal.recv(65536)
            self.text += part
            if not part:
                assert not words, f"ended without {words!r}:\n{self.text.decode()}"
                return


@contextmanager
def unit(folder: Path, dsn: str, port: int, **more: str) -> Iterator[Unit]:
    """gatewayd as gatewayd.service starts it: secrets in files, state in a directory, stderr a socket of the journal."""
    credentials = folder / "credentials"
    credentials.mkdir()
    (credentials / "database-url").write_text(dsn + "\n", encoding="utf-8")
    (credentials / "indexer-token").write_text(TOKEN + "\n", encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    ours, journal = socket.socketpair()
    status = os.fstat(journal.fileno())
    given = {
        "NOTIFY_SOCKET": f"@gatewayd-tests-{port}",  # abstract: the path of a test's folder may be too long for a socket
        "WATCHDOG_USEC": "400000",
        "CREDENTIALS_DIRECTORY": str(credentials),
        "STATE_DIRECTORY": str(folder / "state"),
        "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}",
        "GATEWAY_POLICY_FILE": str(folder / "policy.yaml"),
        "GATEWAY_HOST": "127.0.0.1",
        "PORT": str(port),
        "GATEWAY_TELEMETRY": "0",
        **more,
    }
    (folder / "state").mkdir()
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as notify, closing(ours):
        notify.bind(given["NOTIFY_SOCKET"].replace("@", "\0", 1))
        command = [*COMMAND, "serve"]
        with subprocess.Popen(command, env=environment(given), stdin=subprocess.DEVNULL, stderr=journal.fileno()) as process:
            journal.close()
            service = Unit(process, notify, ours)
            try:
                yield service
            finally:
                process.kill()
                process.wait(PATIENCE_S)
                service.ended()
