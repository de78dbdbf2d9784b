"""What the tests of this folder share: a dispatch with small tools, the gateway's own HTTP server around it, a plain client."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import trio

from gatewayd.audit.events import Agent
from gatewayd.config.bounds import MCP_BOUNDS, HttpBounds, McpBounds
from gatewayd.config.settings import LOOPBACK_HOSTS
from gatewayd.fairness.admission import CallLimits
from gatewayd.http.exchange import Header, HttpHead
from gatewayd.http.server import HttpServer
from gatewayd.mcp.dispatch import Dispatch, Tool, ToolCall, ToolResult
from gatewayd.mcp.door import OPEN, Door
from gatewayd.mcp.eras.sessions import Sessions
from gatewayd.mcp.header_rules import Callers
from gatewayd.mcp.http import McpHttp
from gatewayd.operators.app import AGENTS_REQUESTS, create_app

ACCEPT = "application/json, text/event-stream"
HEADERS = {"content-type": "application/json", "accept": ACCEPT}
STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "rig", "version": "9"},
}
PATIENCE_S = 120  # far more than anything here takes, on a machine that is busy with other things too
SCHEMA: dict[str, Any] = {"type": "object", "additionalProperties": False}


class Rig:
    """Tools that tests can see into, unless `tools` are given: `started` and `cancelled` count the calls of `hang`."""

    def __init__(
        self,
        *,
        limits: CallLimits | None = None,
        sessions: Sessions | None = None,
        bounds: McpBounds = MCP_BOUNDS,
        tools: Sequence[Tool] = (),
        door: Door = OPEN,
        **callers: Any,
    ) -> None:
        self.agents: list[Agent] = []
        self.arguments: list[bytes] = []
        self.started = 0
        self.cancelled = 0
        self.finished = 0
        self.changed = trio.Event()
        self.release = trio.Event()
        table = (
            tool("echo", self.echo),
            tool("hang", self.hang),
            tool("wait", self.wait),
            tool("boom", self.boom),
            tool("steps", self.steps),
        )
        self.dispatch = Dispatch("rig", "1.2.3", lambda: tools or table, "be kind", limits=limits)
        hosts = callers.get("hosts", LOOPBACK_HOSTS)
        self.sessions = sessions or Sessions(most=bounds.sessions, idle_s=bounds.session_idle_s)
        known = Callers(hosts, callers.get("origins"))
        self.mcp = McpHttp(self.dispatch, known, sessions=self.sessions, bounds=bounds, door=door)
        self.stop = trio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def echo(self, call: ToolCall) -> ToolResult:
        self.agents.append(call.agent)
        self.arguments.append(bytes(call.arguments))
        return ToolResult(bytes(call.arguments).decode())

    async def hang(self, call: ToolCall) -> ToolResult:
        self.started += 1
        self._tell()
        try:
            await trio.sleep_forever()
        finally:
            self.cancelled += 1
            self._tell()
        raise AssertionError("sleep_forever returned")

    async def wait(self, call: ToolCall) -> ToolResult:
        self.started += 1
        self._tell()
        await self.release.wait()
        self.finished += 1
        self._tell()
        return ToolResult("released")

    async def boom(self, call: ToolCall) -> ToolResult:
        raise KeyError("hunter2")

    async def steps(self, call: ToolCall) -> ToolResult:
        for step in range(3):
            if call.progress is not None:
                await call.progress(step, 3, None)
        return ToolResult("done")

    async def until(self, **expected: int) -> None:
        """Waits until each named counter is what is expected."""
        with trio.fail_after(PATIENCE_S):
            while any(getattr(self, name) != value for name, value in expected.items()):
                await self.changed.wait()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = trio.Event()


def tool(name: str, call: Any) -> Tool:
    return Tool(name, name.title(), f"{name} for tests", SCHEMA, {"readOnlyHint": True}, call)


class MemoryExchange:
    """A request that no connection brought; what was answered to it is in `status`, `headers` and `sent`."""

    client = "memory"

    def __init__(self, method: str, headers: Sequence[Header], body: bytes = b"") -> None:
        self.head = HttpHead(method, b"/mcp", "1.1", headers)
        self.left = trio.Event()
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.sent: list[bytes] = []
        self.ended = False
        self._body = body

    async def body(self, at_most: int, within_s: float, grows: Callable[[int], bool] = lambda size: True) -> bytes:
        return self._body

    async def gone(self) -> None:
        await self.left.wait()

    def watch(self, call: trio.CancelScope | None) -> None:
        pass

    async def answer(self, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
        await self.start(status, [(b"content-type", b"application/json"), *headers] if body else headers)
        await self.end(body)

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        assert not self.status
        self.status, self.headers = status, dict(headers)

    async def write(self, data: bytes) -> None:
        assert self.status
        assert not self.ended
        self.sent.append(data)

    async def end(self, data: bytes = b"") -> None:
        await self.write(data)
        self.ended = True


@asynccontextmanager
async def serving(rig: Rig, *, grace_s: float = 5, max_connections: int = 100) -> AsyncIterator[Rig]:
    """The rig behind the gateway's own HTTP server on a free port of 127.0.0.1."""
    bounds = HttpBounds(connections=max_connections)
    server = HttpServer(create_app(rig.mcp), grace_s=grace_s, in_turns=AGENTS_REQUESTS, bounds=bounds)
    async with trio.open_nursery() as nursery:

        async def serve(task_status: trio.TaskStatus[int]) -> None:
            await server.serve("127.0.0.1", 0, stop=rig.stop, task_status=task_status)

        rig.port = await nursery.start(serve)
        yield rig
        rig.mcp.drain()
        rig.stop.set()
        nursery.cancel_scope.deadline = trio.current_time() + grace_s + 5


class Client:
    """Plain HTTP, one JSON-RPC message a call. Ids count up."""

    def __init__(self, rig: Rig, http: httpx.AsyncClient) -> None:
        self.rig = rig
        self.http = http
        self.id = 0
        self.session: str | None = None

    async def post(self, message: object, headers: Mapping[str, str] | None = None, **options: Any) -> httpx.Response:
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        sent = {**HEADERS, **({"mcp-session-id": self.session} if self.session else {}), **(headers or {})}
        return await self.http.post(self.rig.url, content=content, headers=sent, **options)

    def request(self, method: str, params: object = None) -> dict[str, Any]:
        self.id += 1
        return {"jsonrpc": "2.0", "id": self.id, "method": method, **({} if params is None else {"params": params})}

    async def initialize(self, headers: Mapping[str, str] | None = None, **params: Any) -> httpx.Response:
        given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "rig", "version": "9"}, **params}
        answer = await self.post(self.request("initialize", given), headers)
        self.session = answer.headers.get("mcp-session-id", self.session)
        return answer

    async def call(self, name: str, arguments: object = None, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return await self.post(self.request("tools/call", {"name": name, "arguments": arguments or {}}), headers)

    async def stateless(
        self, method: str, params: Mapping[str, Any] | None = None, headers: Mapping[str, str | None] | None = None
    ) -> httpx.Response:
        """A request of the stateless era with its mirrored headers; a header given as None is left out."""
        whole = {"_meta": META, **(params or {})}
        mirrored: dict[str, str | None] = {"mcp-protocol-version": STATELESS, "mcp-method": method}
        if "name" in whole:
            mirrored["mcp-name"] = str(whole["name"])
        sent = {**mirrored, **(headers or {})}
        return await self.post(self.request(method, whole), {k: v for k, v in sent.items() if v is not None})


@asynccontextmanager
async def client_of(rig: Rig) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as http:
        yield Client(rig, http)


def text_of(answer: httpx.Response | dict[str, Any]) -> str:
    message = answer if isinstance(answer, dict) else answer.json()
    (block,) = message["result"]["content"]
    assert block["type"] == "text"
    return str(block["text"])


def body_of(answer: httpx.Response) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(answer.content)
    return decoded
