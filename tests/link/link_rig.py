"""A linked gatewayd as a process of its own, before a real database and a control plane of the tests."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.cli.gatewayd_process import Running, serving
from tests.link.stand_in import Listener, StandIn

SHOP = """
CREATE TABLE orders (id integer PRIMARY KEY, status text);
CREATE TABLE payroll (id integer, amount integer);
INSERT INTO orders SELECT i, 'open' FROM generate_series(1, 20) i;
INSERT INTO payroll VALUES (1, 4711);
"""
POLICY = """
databases:
  - name: shop
    table_access: {default: read, tables: {payroll: deny}}
"""
WRITES = """
databases:
  - name: shop
    table_access: {default: read_write}
"""
PATIENCE_S = 180
PASSWORD = "canary-password-of-the-database"
INDEXER = "canary-indexer-token"


class Serving:
    """One running gateway and its agent."""

    def __init__(self, running: Running, port: int, folder: Path) -> None:
        self.running = running
        self.folder = folder
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S)
        self.session: dict[str, str] = {}
        self._n = 0

    def ready(self) -> tuple[int, str]:
        answer = self.http.get("/readyz")
        return answer.status_code, answer.text

    def post(self, method: str, params: dict[str, Any], **headers: str) -> httpx.Response:
        self._n += 1
        message = {"jsonrpc": "2.0", "id": self._n, "method": method, "params": params}
        accept = {"accept": "application/json, text/event-stream"}
        return self.http.post("/mcp", json=message, headers={**accept, **self.session, **headers})

    def initialize(self, **headers: str) -> httpx.Response:
        self.session = {}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}
        answer = self.post("initialize", params, **headers)
        if answer.status_code == 200:
            self.session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        return answer

    def query(self, sql: str, intent: str = "a test", **headers: str) -> dict[str, Any]:
        """What the tool answered; the session is opened at the first call."""
        if not self.session:
            assert self.initialize(**headers).status_code == 200
        answer = self.post("tools/call", {"name": "query", "arguments": {"sql": sql, "intent": intent}}, **headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = msgspec.json.decode(answer.json()["result"]["content"][0]["text"])
        return found

    def rows(self, event_type: str | None = None) -> list[dict[str, Any]]:
        with sqlite3.connect(f"file:{self.folder}/audit.db?mode=ro", uri=True) as connection:
            connection.row_factory = sqlite3.Row
            rows = [dict(row) for row in connection.execute("SELECT * FROM audit_events ORDER BY id")]
        connection.close()
        return [row | {"payload": msgspec.json.decode(row["payload"])} for row in rows if event_type in (None, row["event_type"])]


class Linked(Serving):
    """One that is linked to the stand-in."""

    def __init__(self, running: Running, port: int, folder: Path, control: StandIn) -> None:
        super().__init__(running, port, folder)
        self.control = control

    def wait_until_ready(self) -> None:
        self.control.wait_for(lambda status: status.state == "enforcing" and all(each.reachable for each in status.databases))


def variables(url: str, dsn: str, folder: Path, port: int, **more: str) -> dict[str, str]:
    """Of a gateway that is linked to the control plane at `url`."""
    return {
        "GATEWAY_CONTROL_URL": url,
        "DATABASE_URL": dsn,
        "DB_PATH": str(folder / "audit.db"),
        "GATEWAY_STATE_DIR": str(folder / "state"),
        "GATEWAY_TELEMETRY": "0",
        "GATEWAY_HOST": "127.0.0.1",
        "PORT": str(port),
        **more,
    }


@contextmanager
def linked(listener: Listener, dsn: str, folder: Path, port: int, **more: str) -> Iterator[Linked]:
    """A gateway that listens; a token is made for it where it has no identity yet."""
    if not (folder / "state" / "link.json").exists():
        more = {"GATEWAY_ENROL_TOKEN": listener.control.token(), **more}
    with serving([], variables(listener.url, dsn, folder, port, **{"INDEXER_TOKEN": INDEXER, **more})) as running:
        running.wait_for("gatewayd started")
        gateway = Linked(running, port, folder, listener.control)
        with gateway.http:
            yield gateway
