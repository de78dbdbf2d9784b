"""Whatever a client sends to /mcp, in either era: one whole answer, and no exception."""

import json
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayd.mcp.eras.handshake import Peer
from tests.mcp.json_values import JSON, SCALARS
from tests.mcp.mcp_rig import HEADERS, META, PATIENCE_S, STATELESS, MemoryExchange, Rig

NAMES = st.sampled_from(["echo", "boom", "steps", "nope", ""])
METAS = st.just(META) | st.fixed_dictionaries({}, optional={"progressToken": SCALARS, **dict.fromkeys(META, SCALARS)})
PARAMS = st.fixed_dictionaries(
    {}, optional={"name": NAMES | JSON, "arguments": JSON, "_meta": METAS | JSON, "requestId": SCALARS}
)
METHODS = st.sampled_from(
    ["tools/call", "tools/list", "initialize", "ping", "server/discover", "notifications/cancelled", "no/such"]
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={"id": st.integers() | st.text(max_size=3) | JSON, "method": METHODS | JSON, "params": PARAMS | JSON},
)
HEADER = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from([STATELESS, "2025-06-18", "x", ""]),
        "mcp-method": METHODS,
        "mcp-name": NAMES,
        "mcp-session-id": st.sampled_from(["SESSION", "other", "\xff"]),
        "accept": st.sampled_from(["*/*", "application/json", ""]),
        "content-type": st.sampled_from(["text/plain", "application/json"]),
        "origin": st.sampled_from(["http://localhost", "https://evil.example"]),
    },
)


async def answered(method: str, headers: dict[str, str], body: bytes) -> None:
    rig = Rig()
    session = rig.sessions.open(Peer(), 0)
    assert session is not None
    named = {**HEADERS, "host": "localhost", **headers}
    raw = [(k.encode(), v.replace("SESSION", session.id).encode("latin-1")) for k, v in named.items()]
    exchange = MemoryExchange(method, raw, body)
    if method == "GET":
        exchange.left.set()  # or its stream would not end
    with trio.fail_after(PATIENCE_S):
        await rig.mcp(exchange)
    assert 200 <= exchange.status < 500
    content = b"".join(exchange.sent)
    kind = exchange.headers.get(b"content-type")
    assert exchange.ended or (method, kind) == ("GET", b"text/event-stream")
    if kind == b"application/json":
        assert json.loads(content)["jsonrpc"] == "2.0"
    elif kind is None:
        assert content == b""
    assert not rig.dispatch.statistics().calls.running


@settings(max_examples=300, deadline=None)
@given(MESSAGES, HEADER)
def test_any_message(message: dict[str, Any], headers: dict[str, str]) -> None:
    trio.run(answered, "POST", headers, json.dumps(message).encode())


@settings(max_examples=100, deadline=None)
@given(st.binary(), HEADER, st.sampled_from(["POST", "GET", "DELETE", "PUT"]))
def test_any_body(body: bytes, headers: dict[str, str], method: str) -> None:
    trio.run(answered, method, headers, body)
