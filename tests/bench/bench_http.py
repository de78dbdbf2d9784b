"""What HTTP and the protocol layer cost a call: the gateway's own server, both eras, a tool that answers at once.

    .venv/bin/python -m tests.bench.bench_http

Processor time of this process alone: the clients are another one, so that a busy machine changes little. Each of them sends its
call, and the next when it has the answer; body and head vary as with a real client (ids, lengths).
"""

import json
import os
import socket
import sys
from collections.abc import Iterator
from statistics import median
from time import process_time_ns

import trio

from gatewayd.config.settings import LOOPBACK_HOSTS
from gatewayd.http.server import HttpServer
from gatewayd.mcp.dispatch import Dispatch, Tool, ToolCall, ToolResult
from gatewayd.mcp.header_rules import Callers
from gatewayd.mcp.http import McpHttp
from gatewayd.operators.app import AGENTS_REQUESTS, create_app

CLIENTS = 8
CALLS = 200  # of each client in a round
ROUNDS = 5
ANSWER = ToolResult(json.dumps({"allowed": True, "rows": [{"id": 1, "name": "user1", "email": "user1@example.com"}]}))
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
ERAS = {
    "handshake": ("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n", {}),
    "stateless": ("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: query\r\n", {"_meta": META}),
}


async def answered(_call: ToolCall) -> ToolResult:
    return ANSWER


def request(session: str, era: str, message: dict[str, object]) -> bytes:
    headers, _ = ERAS[era]
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nhost: localhost:1\r\naccept: application/json, text/event-stream\r\naccept-encoding: gzip\r\n"
        f"user-agent: bench/1\r\ncontent-type: application/json\r\n{headers.format(session=session)}"
    )
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def calls(session: str, era: str) -> Iterator[bytes]:
    for number in range(CALLS):
        sql = f"SELECT id, name, email FROM users WHERE id = {number * 250}"
        params = {"name": "query", "arguments": {"sql": sql, "intent": "bench"}, **ERAS[era][1]}
        yield request(session, era, {"id": number, "method": "tools/call", "params": params})


def clients(port: int, era: str) -> None:
    """What the other process runs."""
    opened = []
    for _ in range(CLIENTS):
        peer = socket.create_connection(("127.0.0.1", port))
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        peer.sendall(
            request("", "handshake", {"id": 0, "method": "initialize", "params": params}).replace(b"mcp-session-id: \r\n", b"")
        )
        head = read(peer)
        opened.append((peer, head.partition(b"mcp-session-id: ")[2].partition(b"\r\n")[0].decode()))
    sent = [list(calls(session, era)) for _, session in opened]
    for turn in range(CALLS):
        for (peer, _), mine in zip(opened, sent, strict=True):
            peer.sendall(mine[turn])
        for peer, _ in opened:
            answer = read(peer)
            assert b"user1@example.com" in answer, answer


def read(peer: socket.socket) -> bytes:
    answer = b""
    while True:
        head, blank, body = answer.partition(b"\r\n\r\n")
        if blank and len(body) >= int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return answer
        more = peer.recv(65536)
        assert more, answer
        answer += more


async def round_us(era: str) -> float:
    """Processor time of one call, in µs."""
    tools = (Tool("query", "Query", "query", {"type": "object"}, {}, answered),)
    mcp = McpHttp(Dispatch("bench", "1", lambda: tools), Callers(LOOPBACK_HOSTS, None))
    server = HttpServer(create_app(mcp), grace_s=1, in_turns=AGENTS_REQUESTS)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def serve(task_status: trio.TaskStatus[int]) -> None:
            await server.serve("127.0.0.1", 0, stop=stop, task_status=task_status)

        port = await nursery.start(serve)
        code = f"from tests.bench.bench_http import clients; clients({port}, {era!r})"
        began = process_time_ns()
        await trio.run_process([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        took = process_time_ns() - began
        stop.set()
    return took / (CLIENTS * CALLS) / 1000


def main() -> None:
    for era in ERAS:
        rounds = [trio.run(round_us, era) for _ in range(ROUNDS)]
        print(f"{era:<12}{median(rounds):6.0f} µs a call   (least {min(rounds):.0f}, most {max(rounds):.0f})")


if __name__ == "__main__":
    main()
