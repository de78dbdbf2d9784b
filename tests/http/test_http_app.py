"""One application: /mcp to the protocol layer, the rest to quart, over the gateway's own server."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
import trio
from quart import Blueprint, Response, request

from gatewayd.http.exchange import Exchange
from gatewayd.http.server import HttpServer
from gatewayd.operators.app import create_app

operators = Blueprint("operators", __name__)


@operators.post("/sum")
async def add() -> Response:
    return Response(str(len(await request.get_data())))


@operators.get("/boom")
async def boom() -> Response:
    raise KeyError("hunter2")


async def mcp(exchange: Exchange) -> None:
    await exchange.answer(299, b"mcp")


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def serve(task_status: trio.TaskStatus[int]) -> None:
            await HttpServer(create_app(mcp, [operators]), grace_s=1).serve("127.0.0.1", 0, stop=stop, task_status=task_status)

        port = await nursery.start(serve)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            yield client
        stop.set()


async def test_health(http: httpx.AsyncClient) -> None:
    answer = await http.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert answer.headers["content-type"] == "application/json"
    assert (await http.post("/health")).status_code == 405


async def test_mcp_has_one_path(http: httpx.AsyncClient) -> None:
    assert (await http.get("/mcp?x=1")).status_code == 299
    for path in ("/mcp/", "/mcpx", "/MCP"):
        assert (await http.get(path)).status_code == 404


async def test_mcp_written_otherwise_is_not_mcp(http: httpx.AsyncClient) -> None:
    for path in (b"/%6dcp", b"/mcp%2F", b"/%2fmcp", b"//mcp"):
        request = http.build_request("POST", "/mcp", content=b"{}")
        request.url = request.url.copy_with(raw_path=path)
        assert (await http.send(request)).status_code == 404, path


async def test_unknown_paths_are_alike(http: httpx.AsyncClient) -> None:
    answers = [await http.request(method, path) for method in ("GET", "POST") for path in ("/", "/nope", "/audit/sinc/0", "/%ff")]
    for answer in answers:
        del answer.headers["date"]  # they may be of two seconds
        assert (answer.status_code, answer.content, answer.headers) == (404, b'{"error":"not found"}', answers[0].headers)


async def test_blueprints(http: httpx.AsyncClient) -> None:
    assert (await http.post("/sum", content=b"x" * 300_000)).text == "300000"
    assert (await http.post("/sum", content=b"x" * (8 * 1024 * 1024 + 1))).status_code == 413


async def test_a_failing_route_is_a_500_without_its_words(http: httpx.AsyncClient, capfd: pytest.CaptureFixture[str]) -> None:
    answer = await http.get("/boom")
    assert (answer.status_code, answer.content) == (500, b'{"error":"internal error"}')
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line)["error_class"] == "KeyError"
    assert "hunter2" not in line


async def test_one_connection_serves_all(http: httpx.AsyncClient) -> None:
    for _ in range(20):
        for path in ("/health", "/mcp", "/nope"):
            await http.get(path)
