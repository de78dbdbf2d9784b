"""The stateless era over HTTP, rule by rule (docs/mcp.md, Stateless era)."""

import base64
from typing import Any

import httpx
import pytest

from gatewayd.audit.events import Agent
from gatewayd.mcp import messages
from tests.mcp.mcp_rig import META, STATELESS, Client, body_of, text_of

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
SERVER = {"io.modelcontextprotocol/serverInfo": {"name": "rig", "version": "1.2.3"}}


def refusal(answer: httpx.Response) -> tuple[int, int]:
    return answer.status_code, int(body_of(answer)["error"]["code"])


def meta_without(key: str) -> dict[str, Any]:
    return {"_meta": {name: value for name, value in META.items() if not name.endswith(key)}}


async def test_discover(client: Client) -> None:
    answer = await client.stateless("server/discover")
    assert answer.status_code == 200
    assert body_of(answer)["result"] == {
        "resultType": "complete",
        "_meta": SERVER,
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "supportedVersions": [STATELESS],
        "capabilities": {"tools": {}},
        "instructions": "be kind",
    }
    assert "mcp-session-id" not in answer.headers


async def test_list_is_the_same_for_everyone(client: Client) -> None:
    first = body_of(await client.stateless("tools/list"))["result"]
    second = body_of(await client.stateless("tools/list", headers={"mcp-session-id": "x", "last-event-id": "1"}))["result"]
    assert first == second
    assert (first["resultType"], first["ttlMs"], first["cacheScope"], first["_meta"]) == ("complete", 60_000, "public", SERVER)
    assert [tool["name"] for tool in first["tools"]] == ["echo", "hang", "wait", "boom", "steps"]


async def test_call(client: Client) -> None:
    answer = await client.stateless("tools/call", {"name": "echo", "arguments": {"a": 1}}, {"x-gateway-token-id": ULID})
    result = body_of(answer)["result"]
    assert (result["resultType"], result["_meta"], text_of(answer)) == ("complete", SERVER, '{"a": 1}')
    other = {**META, "io.modelcontextprotocol/clientInfo": {"name": "m" * 200, "version": "1"}}
    await client.stateless("tools/call", {"name": "echo", "_meta": other})
    await client.stateless("tools/call", {"name": "echo", **meta_without("clientInfo")})
    assert client.rig.agents == [Agent("rig", "9", ULID), Agent("m" * 128, "1", None), Agent(None, None, None)]


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-protocol-version": None},
        {"mcp-protocol-version": "2025-11-25"},
        {"mcp-protocol-version": "2027-01-01"},
        {"mcp-method": None},
        {"mcp-method": "tools/list"},
        {"mcp-method": "TOOLS/CALL"},
        {"mcp-name": None},
        {"mcp-name": "Echo"},
        {"mcp-name": "=?base64?!!?="},
        {"mcp-name": "=?base64?ZWNob?="},
    ],
)
async def test_headers_mirror_the_body(client: Client, headers: dict[str, str | None]) -> None:
    answer = await client.stateless("tools/call", {"name": "echo"}, headers)
    assert refusal(answer) == (400, messages.HEADER_MISMATCH)
    assert body_of(answer)["id"] == client.id
    assert client.rig.agents == []


async def test_repeated_header(client: Client) -> None:
    request = client.request("tools/call", {"name": "echo", "_meta": META})
    headers = [*client.http.headers.multi_items(), ("mcp-protocol-version", STATELESS), ("mcp-method", "tools/call")]
    headers += [("mcp-name", "echo"), ("mcp-name", "echo"), ("content-type", "application/json"), ("accept", "*/*")]
    answer = await client.http.post(client.rig.url, json=request, headers=headers)
    assert refusal(answer) == (400, messages.HEADER_MISMATCH)


async def test_mirrored_header_may_be_encoded(client: Client) -> None:
    encoded = f"=?base64?{base64.b64encode(b'echo').decode()}?="
    answer = await client.stateless("tools/call", {"name": "echo"}, {"mcp-name": encoded})
    assert answer.status_code == 200


@pytest.mark.parametrize("key", ["protocolVersion", "clientCapabilities"])
async def test_meta_lacks_a_key(client: Client, key: str) -> None:
    for method, params in (("tools/list", {}), ("tools/call", {"name": "echo"})):
        assert refusal(await client.stateless(method, {**params, **meta_without(key)})) == (400, messages.INVALID_PARAMS)


@pytest.mark.parametrize("meta", [None, 3, [], {"io.modelcontextprotocol/protocolVersion": 1}])
async def test_meta_of_another_shape(client: Client, meta: object) -> None:
    assert refusal(await client.stateless("tools/list", {"_meta": meta})) == (400, messages.INVALID_PARAMS)


async def test_unserved_version(client: Client) -> None:
    version = "2027-01-01"
    params = {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": version}}
    answer = await client.stateless("tools/list", params, {"mcp-protocol-version": version})
    assert refusal(answer) == (400, messages.UNSUPPORTED_VERSION)
    assert body_of(answer)["error"]["data"] == {"supported": [STATELESS], "requested": version}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "subscriptions/listen", "no/such"])
async def test_unknown_methods_are_not_found(client: Client, method: str) -> None:
    assert refusal(await client.stateless(method)) == (404, messages.METHOD_NOT_FOUND)


async def test_other_refusals(client: Client) -> None:
    assert refusal(await client.stateless("tools/call", {"name": "nope"})) == (400, messages.INVALID_PARAMS)
    assert refusal(await client.stateless("tools/call", {"name": "echo", "arguments": 3})) == (400, messages.INVALID_PARAMS)
    headers = {"mcp-protocol-version": STATELESS}
    assert refusal(await client.post(b"{", headers)) == (400, messages.PARSE_ERROR)
    assert refusal(await client.post(b"[]", headers)) == (400, messages.INVALID_REQUEST)


async def test_discover_without_the_version_header_is_a_mismatch(client: Client) -> None:
    answer = await client.stateless("server/discover", headers={"mcp-protocol-version": None})
    assert refusal(answer) == (400, messages.HEADER_MISMATCH)


async def test_get_and_delete_are_not_there(client: Client) -> None:
    for method in ("GET", "DELETE"):
        headers = {"mcp-protocol-version": STATELESS, "accept": "text/event-stream"}
        answer = await client.http.request(method, client.rig.url, headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_notifications_are_dropped(client: Client) -> None:
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": "notifications/cancelled"}
    answer = await client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, headers)
    assert (answer.status_code, answer.content) == (202, b"")


async def test_both_eras_live_on_one_path(client: Client) -> None:
    await client.initialize()
    assert text_of(await client.stateless("tools/call", {"name": "echo"})) == "{}"
    assert text_of(await client.call("echo")) == "{}"
