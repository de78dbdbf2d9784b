"""A server for the official conformance suite: the product's protocol layer with the tools that the scenarios call by name.

python tests/conformance/server.py --port 18400        # serves http://127.0.0.1:18400/mcp until SIGTERM
python tests/conformance/server.py --stdio             # the same tools on stdin and stdout
"""

import argparse
import signal
from typing import Any

import trio

from gatewayd.mcp.dispatch import Dispatch, Tool, ToolCall, ToolResult
from gatewayd.mcp.stdio import serve_stdio

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "additionalProperties": False}
JSON_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def blocks(*content: dict[str, Any]) -> ToolResult:
    return ToolResult("", content=list(content))


async def simple_text(_call: ToolCall) -> ToolResult:
    return ToolResult("This is a simple text response for testing.")


async def image(_call: ToolCall) -> ToolResult:
    return blocks({"type": "image", "data": PIXEL, "mimeType": "image/png"})


async def audio(_call: ToolCall) -> ToolResult:
    return blocks({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"})


async def embedded_resource(_call: ToolCall) -> ToolResult:
    resource = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}
    return blocks({"type": "resource", "resource": resource})


async def multiple_content_types(_call: ToolCall) -> ToolResult:
    resource = {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":"data","value":123}'}
    return blocks(
        {"type": "text", "text": "Multiple content types test:"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "resource", "resource": resource},
    )


async def error_handling(_call: ToolCall) -> ToolResult:
    return ToolResult("This tool intentionally returns an error for testing", is_error=True)


async def with_progress(call: ToolCall) -> ToolResult:
    for step in (0, 50, 100):
        if call.progress is not None:
            await call.progress(step, 100, f"Completed step {step} of 100")
        await trio.sleep(0.05)
    return ToolResult("progress was reported")


def tool(name: str, call: Any, schema: dict[str, Any] = NO_ARGUMENTS) -> Tool:
    return Tool(name, name.replace("_", " "), f"{name}, for the conformance suite", schema, {"readOnlyHint": True}, call)


TOOLS = (
    tool("test_simple_text", simple_text),
    tool("test_image_content", image),
    tool("test_audio_content", audio),
    tool("test_embedded_resource", embedded_resource),
    tool("test_multiple_content_types", multiple_content_types),
    tool("test_error_handling", error_handling),
    tool("test_tool_with_progress", with_progress),
    tool("json_schema_2020_12_tool", simple_text, JSON_SCHEMA_2020_12),
)


async def serve(port: int | None) -> None:
    dispatch = Dispatch("gatewayd-conformance", "1", lambda: TOOLS)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop_at_signal, stop)
        if port is None:
            await serve_stdio(dispatch, stop=stop, grace_s=1)
        else:
            await serve_on(dispatch, port, stop)
        nursery.cancel_scope.cancel()


async def serve_on(dispatch: Dispatch, port: int, stop: trio.Event) -> None:
    from gatewayd.config.settings import LOOPBACK_HOSTS
    from gatewayd.http.server import HttpServer
    from gatewayd.mcp.header_rules import Callers
    from gatewayd.mcp.http import McpHttp
    from gatewayd.operators.app import create_app

    mcp = McpHttp(dispatch, Callers(LOOPBACK_HOSTS, None))
    await HttpServer(create_app(mcp), grace_s=1).serve("127.0.0.1", port, stop=stop)


async def stop_at_signal(stop: trio.Event) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stop.set()
            return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int)
    parser.add_argument("--stdio", action="store_true")
    options = parser.parse_args()
    trio.run(serve, None if options.stdio else options.port)
