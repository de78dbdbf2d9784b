"""A whole gatewayd in the environment that its unit gives it: notifications, watchdog, credentials, state, journal."""

import json
import re
import signal
import socket
import time
from pathlib import Path

import httpx

from tests.conftest import Postgres
from tests.daemon.daemon_rig import POLICY, SHOP
from tests.systemd.unit import PATIENCE_S, TOKEN, unit


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
