"""The official Python SDK as client, in both eras, over HTTP and stdio; and its models on everything we send."""

import gc
import sys
from pathlib import Path
from typing import Any

import mcp_types
import pytest
import trio
from mcp import Client as SdkClient
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import _v2025_11_25 as handshake_types
from mcp_types import _v2026_07_28 as stateless_types
from pydantic import TypeAdapter

from tests.mcp.mcp_rig import PATIENCE_S, Client, Rig

SERVER = str(Path(__file__).parents[1] / "conformance" / "server.py")


async def exercise(client: SdkClient, era: str) -> None:
    with trio.fail_after(PATIENCE_S):
        async with client:
            assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[era]
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names[0] == "test_simple_text"
            result = await client.call_tool("test_simple_text", {})
            assert isinstance(result.content[0], mcp_types.TextContent)
            assert result.content[0].text == "This is a simple text response for testing."
            assert (await client.call_tool("test_error_handling", {})).is_error
            assert len((await client.call_tool("test_multiple_content_types", {})).content) == 3
            seen: list[float] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                seen.append(progress)

            await client.call_tool("test_tool_with_progress", {}, progress_callback=note)
            assert seen == [0, 50, 100]
            with pytest.raises(Exception, match="unknown tool"):
                await client.call_tool("no_such_tool", {})


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_sdk_over_stdio(era: str) -> None:
    server = stdio_client(StdioServerParameters(command=sys.executable, args=[SERVER, "--stdio"]))
    await exercise(SdkClient(server, mode=era), era)


# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_sdk_over_http(era: str) -> None:
    sys.path.insert(0, str(Path(SERVER).parent))
    try:
        from server import TOOLS  # type: ignore[import-not-found]  # a script beside the tests, not a package
    finally:
        sys.path.pop(0)
    from tests.mcp.mcp_rig import serving

    rig = Rig(tools=TOOLS)
    async with serving(rig):
        await exercise(SdkClient(streamable_http_client(rig.url), mode=era), era)
    gc.collect()  # inside the filters above, not in somebody else's test


def valid(answer: Any, envelope: type, result: type) -> None:
    message = answer.json()
    TypeAdapter(envelope).validate_python(message)
    if "result" in message:
        TypeAdapter(result).validate_python(message["result"])


async def test_handshake_messages_fit_the_models(client: Client) -> None:
    types = handshake_types
    valid(await client.initialize(), types.JSONRPCResultResponse, types.InitializeResult)
    valid(await client.post(client.request("ping")), types.JSONRPCResultResponse, types.EmptyResult)
    valid(await client.post(client.request("tools/list")), types.JSONRPCResultResponse, types.ListToolsResult)
    valid(await client.call("echo", {"a": 1}), types.JSONRPCResultResponse, types.CallToolResult)
    valid(await client.call("nope"), types.JSONRPCErrorResponse, types.CallToolResult)
    valid(await client.post(b"{"), types.JSONRPCErrorResponse, types.CallToolResult)


async def test_stateless_messages_fit_the_models(client: Client) -> None:
    types = stateless_types
    valid(await client.stateless("server/discover"), types.JSONRPCResultResponse, types.DiscoverResult)
    valid(await client.stateless("tools/list"), types.JSONRPCResultResponse, types.ListToolsResult)
    valid(await client.stateless("tools/call", {"name": "echo"}), types.JSONRPCResultResponse, types.CallToolResult)
    valid(await client.stateless("no/such"), types.JSONRPCErrorResponse, types.CallToolResult)
    valid(await client.stateless("tools/list", {"_meta": {}}), types.JSONRPCErrorResponse, types.CallToolResult)
