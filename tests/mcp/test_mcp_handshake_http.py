"""The handshake era over HTTP, rule by rule (docs/mcp.md, HTTP and Handshake era)."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
import trio

from gatewayd.audit.events import Agent
from gatewayd.config.bounds import McpBounds
from gatewayd.mcp import messages
from gatewayd.mcp.eras.sessions import Sessions
from tests.mcp.mcp_rig import ACCEPT, HEADERS, PATIENCE_S, Client, Rig, body_of, client_of, serving, text_of

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def code_of(answer: httpx.Response) -> int:
    return int(body_of(answer)["error"]["code"])


@pytest.mark.parametrize("version", messages.HANDSHAKE_VERSIONS)
async def test_initialize_echoes_a_version_we_speak(client: Client, version: str) -> None:
    answer = await client.initialize(protocolVersion=version)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    result = body_of(answer)["result"]
    assert result == {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "rig", "version": "1.2.3"},
        "instructions": "be kind",
    }


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01", ""])
async def test_initialize_answers_the_newest_for_an_unknown_version(client: Client, version: str) -> None:
    assert body_of(await client.initialize(protocolVersion=version))["result"]["protocolVersion"] == "2025-11-25"


async def test_a_session_from_start_to_end(client: Client) -> None:
    await client.initialize()
    assert (await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202
    assert body_of(await client.post(client.request("ping")))["result"] == {}
    tools = body_of(await client.post(client.request("tools/list")))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["echo", "hang", "wait", "boom", "steps"]
    assert tools[0] == {
        "name": "echo",
        "title": "Echo",
        "description": "echo for tests",
        "inputSchema": {"type": "object", "additionalProperties": False},
        "annotations": {"readOnlyHint": True},
    }
    answer = await client.call("echo", {"a": [1, "é\n"]})
    assert json.loads(text_of(answer)) == {"a": [1, "é\n"]}
    assert "isError" not in body_of(answer)["result"]
    assert (await client.http.delete(client.rig.url, headers={"mcp-session-id": client.session or ""})).status_code == 200
    assert (await client.call("echo")).status_code == 404
    assert (await client.http.delete(client.rig.url, headers={"mcp-session-id": client.session or ""})).status_code == 404


async def test_calls_need_not_wait_for_initialized(client: Client) -> None:
    await client.initialize()
    assert text_of(await client.call("echo")) == "{}"


async def test_a_call_without_a_session(client: Client) -> None:
    missing = await client.call("echo")
    assert (missing.status_code, code_of(missing), body_of(missing)["id"]) == (400, messages.SESSION_MISSING, 1)
    unknown = await client.call("echo", headers={"mcp-session-id": "nobody"})
    assert (unknown.status_code, code_of(unknown)) == (404, messages.SESSION_UNKNOWN)
    assert client.rig.agents == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_need_a_session(client: Client, method: str) -> None:
    headers = {"accept": "text/event-stream"}
    assert (await client.http.request(method, client.rig.url, headers=headers)).status_code == 400
    headers["mcp-session-id"] = "nobody"
    assert (await client.http.request(method, client.rig.url, headers=headers)).status_code == 404


async def test_who_calls_is_settled_at_initialize(client: Client) -> None:
    """Traps 22 and 6: later changes are ignored, long names are cut."""
    await client.initialize({"x-gateway-token-id": ULID}, clientInfo={"name": "n" * 500, "version": "v" * 500, "title": "t"})
    first = client.session
    await client.initialize({"x-gateway-token-id": ULID[::-1]}, clientInfo={"name": "other", "version": "2"})
    assert client.session == first
    await client.call("echo", headers={"x-gateway-token-id": ULID[:-1] + "W"})
    assert client.rig.agents == [Agent("n" * 128, "v" * 64, ULID)]


@pytest.mark.parametrize("token", ["", "x", ULID.lower(), ULID + "1"])
async def test_a_malformed_token_id_is_none(client: Client, token: str) -> None:
    await client.initialize({"x-gateway-token-id": token})
    await client.call("echo")
    assert client.rig.agents == [Agent("rig", "9", None)]


async def test_client_info_may_be_missing(client: Client) -> None:
    answer = await client.post(client.request("initialize", {"protocolVersion": "2025-03-26"}))
    client.session = answer.headers["mcp-session-id"]
    await client.call("echo")
    assert client.rig.agents == [Agent(None, None, None)]


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 1}, {"protocolVersion": "2025-06-18", "clientInfo": {"name": 3}}])
async def test_initialize_with_bad_params(client: Client, params: object) -> None:
    answer = await client.post(client.request("initialize", params))
    assert (answer.status_code, code_of(answer)) == (200, messages.INVALID_PARAMS)
    assert "mcp-session-id" not in answer.headers


async def test_errors_of_calls_travel_with_200(client: Client) -> None:
    await client.initialize()
    for request, code in (
        (client.request("no/such"), messages.METHOD_NOT_FOUND),
        (client.request("server/tell"), messages.METHOD_NOT_FOUND),
        (client.request("tools/call", {"name": "nope"}), messages.INVALID_PARAMS),
        (client.request("tools/call", {"name": "echo", "arguments": []}), messages.INVALID_PARAMS),
        (client.request("tools/call", {"name": "echo", "arguments": None}), messages.INVALID_PARAMS),
        (client.request("tools/call"), messages.INVALID_PARAMS),
    ):
        answer = await client.post(request)
        assert (answer.status_code, code_of(answer), body_of(answer)["id"]) == (200, code, request["id"])


async def test_a_bug_in_a_tool_is_an_internal_error_without_its_words(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    await client.initialize()
    answer = await client.call("boom")
    assert (answer.status_code, code_of(answer)) == (200, messages.INTERNAL_ERROR)
    logged = capfd.readouterr().err
    assert "KeyError" in logged
    assert "hunter2" not in logged + answer.text
    assert client.rig.dispatch.statistics().failed == 1
    assert text_of(await client.call("echo")) == "{}"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b"[" * 100_000, -32700),
    ],
)
async def test_bad_messages(client: Client, body: bytes, code: int) -> None:
    await client.initialize()
    answer = await client.post(body)
    assert (answer.status_code, code_of(answer), body_of(answer)["id"]) == (400, code, None)


@pytest.mark.parametrize("message", [{"method": "notifications/cancelled"}, {"method": "no/such"}, {"id": 1, "result": {}}])
async def test_notifications_and_responses_get_202_and_nothing(client: Client, message: dict[str, object]) -> None:
    await client.initialize()
    answer = await client.post({"jsonrpc": "2.0", **message})
    assert (answer.status_code, answer.content) == (202, b"")


async def test_content_type_and_accept(client: Client) -> None:
    await client.initialize()
    ping = client.request("ping")
    assert (await client.post(ping, {"content-type": "text/plain"})).status_code == 415
    assert (await client.post(ping, {"accept": "application/json"})).status_code == 406
    assert (await client.post(ping, {"accept": "text/event-stream"})).status_code == 406
    assert (await client.post(ping, {"accept": ACCEPT + ";q=0"})).status_code == 406
    assert (await client.post(ping, {"accept": "*/*"})).status_code == 200
    assert (await client.post(ping, {"accept": "application/*, text/*"})).status_code == 200
    assert (await client.post(ping, {"content-type": "application/json; charset=utf-8"})).status_code == 200


async def test_version_header(client: Client) -> None:
    await client.initialize(protocolVersion="2025-06-18")
    for version in messages.HANDSHAKE_VERSIONS:  # any that we speak, also another than negotiated
        assert (await client.post(client.request("ping"), {"mcp-protocol-version": version})).status_code == 200
    assert (await client.post(client.request("ping"), {"mcp-protocol-version": "2025-06-19"})).status_code == 400
    assert (await client.post(client.request("ping"), {"mcp-protocol-version": ""})).status_code == 400


async def test_other_methods(client: Client) -> None:
    for method in ("PUT", "PATCH", "OPTIONS", "HEAD", "BREW"):
        answer = await client.http.request(method, client.rig.url)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST, DELETE")


async def test_host_and_origin(client: Client) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}):
        answer = await client.initialize(headers)
        assert (answer.status_code, client.session) == (403, None)
        assert (await client.http.get(client.rig.url, headers=headers)).status_code == 403
        assert (await client.http.delete(client.rig.url, headers=headers)).status_code == 403
    assert (
        await client.initialize({"origin": "http://localhost:3000", "host": f"localhost:{client.rig.port}"})
    ).status_code == 200


async def test_a_body_of_eight_mebibytes_and_one_more(client: Client) -> None:
    await client.initialize()
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":"'
    tail = b'"}}}'
    body = head + b"x" * (messages.MESSAGE_BYTES - len(head) - len(tail)) + tail
    answer = await client.post(body)
    assert answer.status_code == 200
    assert len(text_of(answer)) > messages.MESSAGE_BYTES - 200
    answer = await client.post(body + b" ")
    assert (answer.status_code, code_of(answer)) == (413, messages.INVALID_REQUEST)
    assert text_of(await client.call("echo")) == "{}"


async def test_a_chunked_body_that_grows_too_large(client: Client) -> None:
    await client.initialize()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(9):
            yield b" " * (1024 * 1024)

    headers = {**HEADERS, "mcp-session-id": client.session or ""}
    answer = await client.http.post(client.rig.url, content=pieces(), headers=headers)
    assert answer.status_code == 413


async def test_a_slow_body() -> None:
    async with serving(Rig(bounds=McpBounds(body_s=0.05))) as rig, client_of(rig) as client:
        await client.initialize()
        await send_half_a_body(client)
        assert text_of(await client.call("echo")) == "{}"


async def send_half_a_body(client: Client) -> None:

    headers = {**HEADERS, "mcp-session-id": client.session or ""}
    stream = await trio.open_tcp_stream("127.0.0.1", client.rig.port)
    async with stream:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        await stream.send_all(f"POST /mcp HTTP/1.1\r\nhost: localhost\r\n{lines}content-length: 100\r\n\r\n{{".encode())
        with trio.fail_after(PATIENCE_S):
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 408 ")


async def test_a_full_session_table_says_when_to_return() -> None:
    async with serving(Rig(sessions=Sessions(most=2))) as rig, client_of(rig) as client:
        for _ in range(2):
            assert (await client.initialize()).status_code == 200
            client.session = None
        answer = await client.initialize()
        assert (answer.status_code, answer.headers["retry-after"], code_of(answer)) == (503, "1", messages.TOO_BUSY)
        assert rig.mcp.statistics().sessions.refused == 1


async def test_each_client_is_logged_once(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    for name, version in (("a", "1"), ("a", "1"), ("a", "2")):
        client.session = None
        await client.initialize(clientInfo={"name": name, "version": version})
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    noted = [(line["client"], line["version"], line["protocol_version"]) for line in lines if line["msg"] == "mcp client"]
    assert noted == [("a", "1", "2025-06-18"), ("a", "2", "2025-06-18")]
