"""A real gateway before a real control plane: `gatewayd serve` as a process, enrolled and steered over sockets alone.

What a person does goes through pages with a cookie, what CI does through the API with a key, what an agent does through /mcp.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import httpx
import msgspec
import trio

from gatewayd.control.people.rights import PEOPLE_ONLY, RIGHTS
from tests.cli.gatewayd_process import Running, serving
from tests.control.browser import TLS, Browser
from tests.link.link_rig import variables

SHOP = """
CREATE TABLE orders (id integer PRIMARY KEY, status text);
CREATE TABLE payroll (id integer, amount integer);
INSERT INTO orders SELECT i, 'open' FROM generate_series(1, 20) i;
INSERT INTO payroll VALUES (1, 4711);
"""
READS = "databases:\n  - name: shop\n    table_access: {default: read, tables: {payroll: deny}}\n"
WRITES = "databases:\n  - name: shop\n    table_access: {default: read_write, tables: {payroll: deny}}\n"
PATIENCE_S = 120
HELLO: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}


class Reached(Protocol):
    """A control plane or a gateway, by its address alone."""

    @property
    def url(self) -> str: ...


class At(msgspec.Struct, frozen=True):
    """One of which only the address is known."""

    url: str


class Project:
    """A project of the owner, with an API key that may all that keys can."""

    def __init__(self, owner: Browser, url: str, key: str) -> None:
        self.owner = owner
        self.url = url
        self.key = key
        self.id = ""

    async def api(self, method: str, path: str, body: object = None) -> httpx.Response:
        """`path` below /api/v1."""
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        content = msgspec.json.encode(body) if body is not None else b""
        async with httpx.AsyncClient(trust_env=False, timeout=60, verify=TLS) as client:
            return await client.request(method, f"{self.url}/api/v1{path}", content=content, headers=headers)

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a good answer; `path` below the project."""
        answer = await self.api(method, f"/projects/{self.id}{path}", body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    async def publish(self, policy: str) -> int:
        """Publishes as a person in CI does; the version of the bundle."""
        return int((await self.ask("POST", "/policies", {"policy": policy, "note": "a test"}))["bundle"])

    async def token(self, name: str = "claude") -> str:
        return str((await self.ask("POST", "/tokens", {"name": name}))["text"])

    async def gateways(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.ask("GET", "/gateways"))["gateways"]
        return found

    async def until_enforced(self, version: int, state: str = "enforcing") -> None:
        """The one gateway has told that it is in this state under this bundle, and that its database answers."""

        async def look() -> bool:
            for gateway in await self.gateways():
                databases = gateway["databases"]
                ready = bool(databases) and all(each["reachable"] for each in databases)
                if (gateway["bundle_version"], gateway["state"]) != (version, state) or (state == "enforcing" and not ready):
                    return False
                assert gateway["is_newest"]
                return True
            return False

        await until(look, f"bundle {version} {state}")

    async def audited(self, rows: int = 1, **filters: str) -> list[dict[str, Any]]:
        """The queries that the audit finds, once there are so many."""
        found: list[dict[str, Any]] = []

        async def look() -> bool:
            found[:] = (await self.ask("GET", "/audit?" + httpx.QueryParams(filters).__str__()))["queries"]
            return len(found) >= rows

        await until(look, f"{rows} queries in the audit")
        return found


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    with trio.move_on_after(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110  # it becomes true in other processes
            await trio.sleep(0.05)
        return
    raise AssertionError(f"waited in vain for: {what}")


async def new_project(owner: Browser, plane: Reached, *, name: str = "Shop") -> Project:
    """A project that the owner makes with an API key from the page of keys."""
    answer = await owner.post("/keys", {"name": "ci", "scopes": sorted(RIGHTS - PEOPLE_ONLY)})
    assert answer.status_code == 200, answer.text
    project = Project(owner, plane.url, answer.text.partition('class="once">')[2].partition("<")[0])
    made = await project.api("POST", "/projects", {"name": name, "databases": ("shop",)})
    assert made.status_code == 201, made.text
    project.id = str(made.json()["id"])
    return project


class Linked:
    """A gateway that runs, and what agents say to it."""

    def __init__(self, running: Running, port: int, folder: Path) -> None:
        self.running = running
        self.url = f"http://127.0.0.1:{port}"
        self.folder = folder

    async def told(self, words: str) -> str:
        """The first further line of its log that holds `words`."""
        return await trio.to_thread.run_sync(self.running.wait_for, words)

    async def ready(self) -> tuple[int, str]:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S, verify=TLS) as client:
            answer = await client.get(f"{self.url}/readyz")
        return answer.status_code, answer.text

    async def stop(self) -> int:
        return await trio.to_thread.run_sync(self.running.stop)


class Agent:
    """An agent with a token and a session: JSON-RPC in a few lines. Of any number of tasks at once."""

    def __init__(self, gateway: Reached, token: str) -> None:
        self._gateway = gateway
        self._headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {token}"}
        self._n = 0

    async def post(self, method: str, params: dict[str, Any]) -> httpx.Response:
        self._n += 1
        message = {"jsonrpc": "2.0", "id": self._n, "method": method, "params": params}
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S, verify=TLS) as client:
            return await client.post(f"{self._gateway.url}/mcp", json=message, headers=self._headers)

    async def begin(self) -> "Agent":
        answer = await self.post("initialize", HELLO)
        assert answer.status_code == 200, answer.text
        self._headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        return self

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What the tool answered."""
        answer = await self.post("tools/call", {"name": tool, "arguments": arguments})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = msgspec.json.decode(answer.json()["result"]["content"][0]["text"])
        return found

    async def query(self, sql: str, intent: str = "a test") -> dict[str, Any]:
        return await self.call("query", sql=sql, intent=intent)


@asynccontextmanager
async def linked(project: Project, dsn: str, folder: Path, port: int, **more: str) -> AsyncIterator[Linked]:
    """A gateway of the project, started with the token of the enrolment page; killed at the end if it still runs."""
    folder.mkdir(exist_ok=True)
    own = variables(project.url, dsn, folder, port, **more)
    if not (folder / "state" / "link.json").exists():
        own["GATEWAY_ENROL_TOKEN"] = (await project.ask("POST", "/gateways/tokens", {"name": "edge"}))["token"]
    serve = serving([], own)
    running = await trio.to_thread.run_sync(serve.__enter__)
    try:
        gateway = Linked(running, port, folder)
        await gateway.told("gatewayd started")
        yield gateway
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(partial(serve.__exit__, None, None, None))
