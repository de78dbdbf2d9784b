"""A whole gatewayd in the environment that its unit gives it: notifications, watchdog, credentials, state, journal."""

import json
import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx

from tests.cli.gatewayd_process import COMMAND, environment
from tests.conftest import Postgres
from tests.daemon.daemon_rig import POLICY, SHOP

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


def test_a_life_under_systemd(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(SHOP)
    with unit(tmp_path, dsn, free_port, GATEWAY_SHUTDOWN_GRACE_S="120") as service:
        ready = service.until("READY=1")
        assert re.fullmatch(r"STATUS=serving, [01]/1 databases answer", ready[1])
        assert {lines[0] for lines in service.seen[:-1]} <= {"WATCHDOG=1"}  # nothing else came before
        # Ready means: the file is there, the policy holds, the listener answers.
        assert (tmp_path / "state" / "audit.db").stat().st_mode & 0o777 == 0o600
        url = f"http://127.0.0.1:{free_port}"
        bearer = {"authorization": f"Bearer {TOKEN}"}
        request = {"database": "__default__", "probes": [{"table": "secrets", "action": "select"}]}
        verdict = httpx.post(f"{url}/admin/dry-run", json=request, headers=bearer, timeout=PATIENCE_S).json()["verdicts"][0]
        assert verdict["matched_rule"] in ("table:public.secrets→deny", "table_access")  # the second while the catalog is unread

        for _ in range(3):
            service.until("WATCHDOG=1")

        for policy, words in ((POLICY, "STATUS=serving"), ("table_access: {default: none}", "STATUS=policy file refused")):
            (tmp_path / "policy.yaml").write_text(policy, encoding="utf-8")
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            service.process.send_signal(signal.SIGHUP)
            _, stamp = service.until("RELOADING=1")
            assert int(stamp.removeprefix("MONOTONIC_USEC=")) >= before
            assert service.until("READY=1")[1].startswith(words)

        code, journal = service.stop()
        assert service.until("STOPPING=1")[1:] == ["EXTEND_TIMEOUT_USEC=165000000"]
        assert code == 0
    assert journal
    levels = {"info": "<6>", "error": "<3>", "warning": "<4>"}
    for line in journal:
        assert line.startswith(levels[json.loads(line[3:])["level"]])
    assert TOKEN not in "".join(journal)
    assert dsn not in "".join(journal)


def test_the_status_line_follows_the_databases(own_postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    with unit(tmp_path, own_postgres.dsn(), free_port) as service:
        service.until("READY=1")
        if service.seen[-1][1] != "STATUS=serving, 1/1 databases answer":
            service.until("STATUS=serving, 1/1 databases answer")
        own_postgres.stop()
        # A call that loses its connection makes the gateway look; nothing else does before the next regular read.
        ask(free_port)
        service.until("STATUS=serving, 0/1 databases answer")
        own_postgres.start()
        service.until("STATUS=serving, 1/1 databases answer")
        assert service.stop()[0] == 0


def ask(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as http:
        headers = {"accept": "application/json, text/event-stream"}
        params: dict[str, object] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        opened = http.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        params = {"name": "query", "arguments": {"sql": "SELECT 1", "intent": "t"}}
        http.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})


def test_what_cannot_serve_is_never_ready(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(SHOP)
    with socket.create_server(("127.0.0.1", free_port)), unit(tmp_path, dsn, free_port) as service:
        assert service.process.wait(PATIENCE_S) == 69
        assert not [message for message in service.ended() if message.startswith(b"READY=1")]


def test_without_a_manager_nothing_is_told(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    with unit(tmp_path, postgres.create_database(SHOP), free_port, NOTIFY_SOCKET="") as service:
        service.logged("gatewayd started")
        assert service.stop()[0] == 0
        assert service.ended() == []
