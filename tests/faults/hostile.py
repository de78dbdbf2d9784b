"""A gatewayd that hostile clients are let loose on, and what must hold when they are gone: it serves and holds no more."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import POLICY, SHOP, Agent, until
from tests.daemon.operators_rig import Operator, operated
from tests.faults.resources import resources

ACCEPT = "application/json, text/event-stream"
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hostile", "version": "1"}}
GROWTH_KIB = 20 * 1024
PATIENCE_S = 100
_POOL = 10  # connections to the database that may have been opened meanwhile
_WARM_CALLS = 50


class Held(NamedTuple):
    """What the process holds."""

    resident_kib: int
    descriptors: int


class Target:
    """One gatewayd. `start` is what it held once it had answered some calls; nothing that comes later may add much to it."""

    def __init__(self, operator: Operator, postgres: Postgres, dsn: str) -> None:
        self.operator = operator
        self.postgres = postgres
        self.dsn = dsn
        self.start = self.now()

    @property
    def port(self) -> int:
        return self.operator.port

    @property
    def folder(self) -> Path:
        return self.operator.folder

    def now(self) -> Held:
        return Held(*resources(self.operator.running.process.pid))

    def metric(self, name: str) -> float:
        return self.operator.metrics()[name, ()]

    def written(self) -> list[str]:
        """What agents wrote: a smuggled statement would stand here."""
        return [row["tag"] for row in self.postgres.query("SELECT tag FROM written", self.dsn)]

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def serves(self) -> None:
        async with Agent(self.port) as agent:
            assert (await agent.query("SELECT 1 AS one"))["rows"] == [{"one": 1}]

    async def is_unharmed(self) -> Held:
        """It serves, no connection and no call is left over, and memory and descriptors are, or shortly come, where they were."""
        with trio.fail_after(PATIENCE_S):
            while True:  # the connections of a crowd that has left are still being closed for a moment
                try:
                    await self.serves()
                    break
                except httpx.HTTPError:
                    await trio.sleep(0.1)
        with trio.move_on_after(PATIENCE_S):
            await until(lambda: self.metric("gatewayd_http_connections") == 1 and not self.metric("gatewayd_mcp_calls_running"))
            await until(self._holds_no_more)
        assert self._holds_no_more(), (self.start, self.now())
        return self.now()

    def _holds_no_more(self) -> bool:
        now = self.now()
        is_small = now.resident_kib - self.start.resident_kib < GROWTH_KIB
        return is_small and now.descriptors <= self.start.descriptors + _POOL


@contextmanager
def attacked(postgres: Postgres, folder: Path, policy: str = POLICY, **more: str) -> Iterator[Target]:
    """A warm gatewayd to attack. In the end it stops cleanly, and has told of no failure of its own."""
    dsn = postgres.create_database(SHOP)
    with operated(dsn, folder, policy, **more) as operator:
        _warm(operator)
        yield Target(operator, postgres, dsn)
        assert operator.running.stop() == 0
    for failure in ("unexpected failure", "connection failed", "Traceback"):
        assert failure not in operator.running.text, operator.running.text


@asynccontextmanager
async def unharmed(target: Target) -> AsyncIterator[Target]:
    """Around whatever is done to it."""
    yield target
    await target.is_unharmed()


def message(method: str, params: object = None, id_: object = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {} if params is None else params}


def _warm(operator: Operator) -> None:
    headers = {"accept": ACCEPT}
    answer = operator.http.post("/mcp", json=message("initialize", INITIALIZE), headers=headers)
    headers["mcp-session-id"] = answer.headers["mcp-session-id"]
    call = {"name": "query", "arguments": {"sql": "SELECT * FROM orders", "intent": "test"}}
    for _ in range(_WARM_CALLS):
        assert operator.http.post("/mcp", json=message("tools/call", call), headers=headers).status_code == 200
    operator.metrics()
