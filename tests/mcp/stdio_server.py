"""A process for the stdio tests: the product's `serve_stdio` around tools that print, hang, and report the modules loaded."""

import os
import signal
import subprocess
import sys

import msgspec
import trio

from gatewayd.mcp.dispatch import Dispatch, Tool, ToolCall, ToolResult
from gatewayd.mcp.stdio import serve_stdio


async def echo(call: ToolCall) -> ToolResult:
    return ToolResult(bytes(call.arguments).decode())


async def noisy(_call: ToolCall) -> ToolResult:
    print("printed by a library", flush=True)
    os.write(1, b"written to descriptor 1\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child', input.__name__)"], check=True)
    return ToolResult(sys.stdin.read())


async def hang(_call: ToolCall) -> ToolResult:
    sys.stderr.write("hanging\n")
    sys.stderr.flush()
    try:
        await trio.sleep_forever()
    finally:
        sys.stderr.write("cancelled\n")
        sys.stderr.flush()
    raise AssertionError


async def large(_call: ToolCall) -> ToolResult:
    return ToolResult("x" * 1_000_000)


async def loaded(_call: ToolCall) -> ToolResult:
    return ToolResult(msgspec.json.encode(sorted(sys.modules)).decode())


def tools() -> tuple[Tool, ...]:
    return TOOLS


TOOLS = tuple(Tool(call.__name__, call.__name__, "", {"type": "object"}, {}, call) for call in (echo, noisy, hang, large, loaded))


async def main() -> None:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    stop.set()
                    return

        nursery.start_soon(watch)
        await serve_stdio(Dispatch("stdio-rig", "1", tools), stop=stop, grace_s=float(sys.argv[1]))
        nursery.cancel_scope.cancel()


trio.run(main)
