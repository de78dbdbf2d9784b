"""Generated JSON-RPC in both eras through a whole gatewayd: each has its one answer, in JSON-RPC's words, and nothing is left."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Postgres
from tests.faults.hostile import ACCEPT, INITIALIZE, Target, attacked, message
from tests.mcp.json_values import JSON, SCALARS
from tests.mcp.mcp_rig import META, STATELESS

ERAS = ("handshake", "stateless")
SQL = st.sampled_from(["SELECT 1", "SELEC", "SELECT * FROM secrets", "SELECT 1/0", "INSERT INTO written VALUES ('x')", "", "\0"])
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "sql": SQL | JSON,
        "intent": st.just("test") | JSON,
        "table": st.just("orders") | JSON,
        "database": SCALARS,
        "x": JSON,
    },
)
TOOLS = st.sampled_from(["query", "list_tables", "describe_table", "check_approval", "nope"])
METHODS = st.sampled_from(
    ["tools/call", "tools/call", "tools/list", "ping", "server/discover", "notifications/cancelled", "no/such"]
)
METAS = st.just(META) | st.fixed_dictionaries({}, optional={"progressToken": SCALARS, **dict.fromkeys(META, SCALARS)}) | JSON
PARAMS = st.fixed_dictionaries(
    {"_meta": METAS}, optional={"name": TOOLS | JSON, "arguments": ARGUMENTS | JSON, "requestId": SCALARS, "x": JSON}
)
IDS = st.integers() | st.text(max_size=3) | JSON
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | SCALARS},
    optional={"id": IDS, "method": METHODS | JSON, "params": PARAMS | JSON, "result": JSON, "error": JSON},
)
DAMAGE = st.none() | st.tuples(st.integers(0, 400), st.integers(0, 8), st.binary(max_size=4))
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from([STATELESS, "2025-06-18", "x"]),
        "mcp-method": METHODS,
        "mcp-name": TOOLS,
        "mcp-session-id": st.sampled_from(["nobody's", "\xff", ""]),
        "x-gateway-token-id": st.sampled_from(["01ARYZ6S41TSV4RRFFQ69G5FAV", "x"]),
    },
)


class Talker:
    """One connection and one session, renewed when they end."""

    def __init__(self, port: int) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        _, headers, _ = self.post({}, json.dumps(message("initialize", INITIALIZE)).encode())
        self.session = headers["mcp-session-id"]

    def post(self, headers: dict[str, str], body: bytes) -> tuple[int, Any, bytes]:
        self.http.request("POST", "/mcp", body, {"accept": ACCEPT, "content-type": "application/json", **headers})
        answer = self.http.getresponse()
        return answer.status, answer.headers, answer.read()


@contextmanager
def talking(port: int) -> Iterator[Talker]:
    talker = Talker(port)
    try:
        yield talker
    finally:
        talker.http.close()


def check(status: int, content: bytes, sent: dict[str, Any], whole: bool) -> None:
    assert status in (200, 202, 400, 404), (status, content)
    if status == 202:
        assert content == b""
        return
    if content.startswith(b"event:"):  # progress went ahead
        content = content.rsplit(b"data: ", 1)[1]
    answer = json.loads(content)
    assert answer["jsonrpc"] == "2.0"
    assert ("result" in answer) != ("error" in answer)
    assert answer.get("error", {}).get("code") != -32603, content
    if whole and answer["id"] is not None:
        assert answer["id"] == sent["id"]


def fuzz(target: Target, era: str, examples: int) -> None:
    with talking(target.port) as talker:

        @settings(max_examples=examples, database=None)
        @given(MESSAGES, HEADERS, DAMAGE)
        def one(sent: dict[str, Any], headers: dict[str, str], damage: tuple[int, int, bytes] | None) -> None:
            body = bytearray(json.dumps(sent).encode())
            if damage is not None:
                at, length, new = damage
                body[at : at + length] = new
            if era == "handshake":
                usual = {"mcp-session-id": talker.session}
            else:
                params = sent.get("params")
                name = params.get("name") if isinstance(params, dict) else None
                usual = {
                    "mcp-protocol-version": STATELESS,
                    "mcp-method": str(sent.get("method")).encode("ascii", "replace").decode(),
                }
                usual |= {"mcp-name": name} if name in ("query", "list_tables", "describe_table") else {}
            odd = headers if len(headers) < 2 else {}  # most go the whole way
            status, _, content = talker.post({**usual, **odd}, bytes(body))
            check(status, content, sent, whole=damage is None)

        one()
    trio.run(target.is_unharmed)


@pytest.mark.parametrize("era", ERAS)
def test_any_message(era: str, target: Target) -> None:
    fuzz(target, era, 300)


@pytest.mark.soak
@pytest.mark.parametrize("era", ERAS)
def test_ten_thousand_messages(era: str, postgres: Postgres, tmp_path: Path) -> None:
    with attacked(postgres, tmp_path) as target:
        fuzz(target, era, 10_000)
        print(f"10000 examples, {era}; {target.start} -> {target.now()}")
