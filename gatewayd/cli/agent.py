"""One tool call to a running gatewayd over HTTP, as an agent makes it (MCP, stateless era; docs/mcp.md).

One request and no session. Answers are what the tool said; what kept it from answering is NoToolAnswer.
"""

from typing import Any, Final

import httpx
import msgspec

from gatewayd import __version__

PROTOCOL: Final = "2026-07-28"
CALL_S: Final = 3600.0
"""The policy bounds the statement itself; this only ends a wait for a server that has stopped answering."""


class NoToolAnswer(Exception):
    """No answer of the tool came; the text says why and what to look at."""


class ToolAnswer(msgspec.Struct, frozen=True):
    """What the tool said; `text` is the JSON object as it came, in which numbers have all their digits."""

    is_error: bool
    text: str


async def call_tool(url: str, agent: str, tool: str, arguments: dict[str, str]) -> ToolAnswer:
    """Call the tool as the agent called `agent`. Raises NoToolAnswer."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": PROTOCOL,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": agent, "version": __version__},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta, "name": tool, "arguments": arguments}}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": PROTOCOL,
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    try:
        async with httpx.AsyncClient(timeout=httpx.Timeout(CALL_S, connect=10), trust_env=False) as client:
            response = await client.post(url, json=message, headers=headers)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise NoToolAnswer(f"`{url}` is no http:// or https:// address ({error})") from None
    except httpx.ConnectError:
        raise NoToolAnswer(
            f"nothing answers at {url}; start it with `gatewayd serve`, or name another place with --url"
        ) from None
    except httpx.HTTPError as error:
        raise NoToolAnswer(f"the connection to {url} broke ({type(error).__name__})") from None
    return _answer(url, response)


def _answer(url: str, response: httpx.Response) -> ToolAnswer:
    try:
        body: dict[str, Any] = msgspec.json.decode(response.content, type=dict[str, Any])
        error = body.get("error")
        if error is not None:
            said = error["message"] if isinstance(error, dict) else error
            raise NoToolAnswer(f"gatewayd at {url} refused the call: {said} (HTTP {response.status_code})")
        (block,) = body["result"]["content"]
        return ToolAnswer(bool(body["result"].get("isError", False)), str(block["text"]))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        raise NoToolAnswer(f"what answers at {url} is no gatewayd (HTTP {response.status_code})") from None
