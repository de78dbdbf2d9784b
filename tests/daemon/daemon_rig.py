"""A whole gatewayd over a real database, and plain agents that call it: what the tests of this folder share."""

import itertools
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import trio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent

from tests.cli.gatewayd_process import Running, serving
from tests.conftest import Postgres
from tests.corpus.wire import Wire

SHOP = """
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL DEFAULT 'nobody', email varchar(80));
CREATE TABLE orders (id integer PRIMARY KEY, customer integer REFERENCES customers, amount numeric(12,2), tags text[]);
CREATE TABLE secrets (id integer, word text);
CREATE VIEW big_orders AS SELECT * FROM orders WHERE amount > 100;
CREATE TABLE written (tag text);
INSERT INTO customers SELECT i, 'name ' || i, 'c' || i || '@example.com' FROM generate_series(1, 20) i;
INSERT INTO orders SELECT i, 1 + i % 20, i * 1.5 FROM generate_series(1, 200) i;
INSERT INTO secrets VALUES (1, 'the word');
"""
POLICY = """
table_access:
  default: read
  tables: {secrets: deny, written: read_write}
"""


PATIENCE_S = 300
"""Far more than anything here takes, on a machine that is busy with other things too."""


@contextmanager
def gatewayd(dsn: str, folder: Path, port: int, policy: str = POLICY, **more: str) -> Iterator[Running]:
    """gatewayd over HTTP on 127.0.0.1: ready, and it has read the catalog of each database or found that it cannot.

    Ready is sooner, and a call waits no longer than 3 s for a catalog. Its audit file is `folder`/audit.db.
    """
    databases = policy.count("{name: ") if "databases:" in policy else 1
    with just_started(dsn, folder, port, policy, **more) as running:
        running.wait_until(
            lambda text: text.count('"catalog loaded"') + text.count('"database unreachable"') >= databases, "catalog loaded"
        )
        yield running


@contextmanager
def just_started(dsn: str, folder: Path, port: int, policy: str = POLICY, **more: str) -> Iterator[Running]:
    """The same, which has perhaps looked at no database yet."""
    with serving([], {**variables(dsn, folder, policy), "GATEWAY_HOST": "127.0.0.1", "PORT": str(port), **more}) as running:
        running.wait_for("gatewayd started")
        yield running


def variables(dsn: str, folder: Path, policy: str = POLICY) -> dict[str, str]:
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    return {
        "DATABASE_URL": dsn,
        "DB_PATH": str(folder / "audit.db"),
        "GATEWAY_POLICY_FILE": str(folder / "policy.yaml"),
        "GATEWAY_TELEMETRY": "0",
    }


def stdio_agent(given: Mapping[str, str], era: str) -> Client:
    server = StdioServerParameters(command=sys.executable, args=["-m", "gatewayd", "serve", "--stdio"], env=dict(given))
    return Client(stdio_client(server), mode=era)


class Agent:
    """One session of the handshake era on a connection of its own, without the SDK: for many calls at once."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.http = httpx.AsyncClient(timeout=PATIENCE_S)
        self.headers = {"accept": "application/json, text/event-stream"}
        self._ids = itertools.count(1)
        self._last_id = 0

    async def __aenter__(self) -> "Agent":
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "plain agent", "version": "1"}}
        answer = await self.post("initialize", params)
        self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def query(self, sql: str, **arguments: str) -> dict[str, Any]:
        return await self.call("query", sql=sql, intent="test", **arguments)

    async def call(self, tool: str, **arguments: str) -> dict[str, Any]:
        """The JSON object that the tool answered with."""
        answer = await self.post("tools/call", {"name": tool, "arguments": arguments})
        body = answer.json()
        content: dict[str, Any] = json.loads(body["result"]["content"][0]["text"])
        assert body["result"].get("isError", False) == (not content.get("allowed", True) or "error" in content)
        return content

    async def cancel_last(self) -> None:
        """Take back the call that waits for its answer: in this era a client that only goes away does not."""
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": self._last_id}}
        (await self.http.post(self.url, json=message, headers=self.headers)).raise_for_status()

    async def post(self, method: str, params: object) -> httpx.Response:
        self._last_id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        answer = await self.http.post(self.url, json=message, headers=self.headers)
        answer.raise_for_status()
        return answer


def chains(folder: Path) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The events of each query in their order. The file is checked whole first."""
    with sqlite3.connect(f"file:{folder / 'audit.db'}?mode=ro", uri=True) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for query_id, event_type, payload in file.execute("SELECT query_id, event_type, payload FROM audit_events ORDER BY id"):
            found.setdefault(query_id, []).append((event_type, json.loads(payload)))
    file.close()
    return found


HOLDABLE = SHOP + "CREATE TABLE held AS SELECT FROM generate_series(1, 7);"
HELD = "SELECT count(*) FROM held"
"""Runs for as long as the test wants, while `holding`: a statement that is slow by its own may end before anybody looks."""
PATIENT = f"limits: {{statement_timeout_ms: {PATIENCE_S * 1000}, lock_timeout_ms: {PATIENCE_S * 1000}}}\n"


@contextmanager
def holding(postgres: Postgres, dsn: str) -> Iterator[None]:
    """HELD waits in this database, which is HOLDABLE, until the block ends; the policy must be PATIENT."""
    with Wire(postgres.server, database_of(dsn)) as session:
        assert not session.ask("BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE").error
        yield


def database_of(dsn: str) -> str:
    return dsn.split("@", 1)[1].split("/", 1)[1].split("?", 1)[0]


def running_there(postgres: Postgres, statement: str) -> int:
    """How many sessions of PostgreSQL work on a statement that holds these words."""
    found = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND position('{}' in query) > 0"
    return len(postgres.query(found.format(statement.replace("'", "''"))))


async def until(holds: Callable[[], bool]) -> None:
    """Waits for a state outside of this process, which sends no event; the caller bounds the time."""
    while not holds():  # noqa: ASYNC110 - as said above
        await trio.sleep(0.01)


def kinds(chain: list[tuple[str, dict[str, Any]]]) -> str:
    """`ATTEMPTED ALLOW EXECUTED` and the like."""
    return " ".join(payload.get("decision", event_type) for event_type, payload in chain)


async def ask(client: Client, tool: str, **arguments: str) -> tuple[dict[str, Any], bool]:
    result = await client.call_tool(tool, arguments)
    (block,) = result.content
    assert isinstance(block, TextContent)
    content: dict[str, Any] = json.loads(block.text)
    return content, bool(result.is_error)
