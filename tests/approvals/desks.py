"""The real gate of `gatewayd approve`, in this process: on a real socket, over a real SQLite file."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from gatewayd.approvals.desk.requests import DeskRequest, Requests
from gatewayd.approvals.desk.service import PATH, GateService, now_ms
from gatewayd.approvals.http_gate import HttpGate
from gatewayd.approvals.messages import GateAnswer, GateAsk, Wait
from gatewayd.config.credentials import Secret
from gatewayd.http.server import HttpServer

TOKEN: Final = "gate-token-canary"
_IDS = (f"A{number:025}" for number in itertools.count(1))


def an_ask(query_id: str = "Q1", sql: str = "DELETE FROM t", intent: str = "because", token_id: str | None = None) -> GateAsk:
    return GateAsk(
        query_id=query_id, database="d", sql=sql, intent=intent, statement_type="DELETE", tables_touched=("public.t",),
        tenant_id="__self_host__", agent_name="a", agent_version="1", mcp_token_id=token_id, fingerprint="0" * 16,
        write_class="row_changes", policy_hash="0" * 16,
    )  # fmt: skip


def opened(path: Path, **more: int) -> Requests:
    return Requests(str(path), lambda _: next(_IDS), **more)


class WatchedRequests(Requests):
    waited_for: frozenset[str] = frozenset()
    """Approvals that a gateway has waited for, or waits for now."""

    def wait(self, wait: Wait, now_ms: int) -> GateAnswer:
        self.waited_for |= {wait.approval_id}
        return super().wait(wait, now_ms)


class OpenDesk:
    def __init__(self, requests: WatchedRequests) -> None:
        self.requests = requests
        self.service = GateService(requests, TOKEN, self.now_ms)
        self.url = ""
        self.ahead_ms = 0
        """Of the clock: what expires in that time has expired."""

    def now_ms(self) -> int:
        return now_ms() + self.ahead_ms

    async def open_request(self) -> DeskRequest:
        """The oldest request that waits; waited for."""
        with trio.fail_after(60):
            while not self.requests.open_requests(self.now_ms()):
                await self.service.asked.wait()
                self.service.asked = trio.Event()
        return self.requests.open_requests(self.now_ms())[0]

    def decide(self, approval_id: str, decision: str = "approved", **more: object) -> bool:
        done = self.requests.decide(approval_id, decision, self.now_ms(), by="ann", **more)  # type: ignore[arg-type]
        self.service.changed()
        return done


@asynccontextmanager
async def desk(path: Path, *, port: int = 0, requests_type: type[WatchedRequests] = WatchedRequests) -> AsyncIterator[OpenDesk]:
    requests = requests_type(str(path), lambda _: next(_IDS))
    open_desk = OpenDesk(requests)
    stop = trio.Event()
    try:
        async with trio.open_nursery() as nursery:
            server = HttpServer(open_desk.service, grace_s=0)

            async def serve(*, task_status: trio.TaskStatus[int]) -> None:
                await server.serve("127.0.0.1", port, stop=stop, task_status=task_status)

            open_desk.url = f"http://127.0.0.1:{await nursery.start(serve)}{PATH}"
            yield open_desk
            stop.set()
    finally:
        requests.close()


@asynccontextmanager
async def gate(url: str, token: str = TOKEN) -> AsyncIterator[HttpGate]:
    async with HttpGate(Secret(url), Secret(token), "test") as opened_gate:
        yield opened_gate
