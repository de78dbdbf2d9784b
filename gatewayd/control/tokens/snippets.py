"""What is pasted into a client so that its agent reaches a gateway: for each client its own form, filled in. Pure."""

import json
import re
import shlex
from typing import Any, Final

import msgspec

PLACEHOLDER: Final = "YOUR_TOKEN"
_NAME: Final = 32


class Snippet(msgspec.Struct, frozen=True):
    """`where`: the file or place that it belongs into."""

    key: str
    client: str
    where: str
    text: str


def server_name(project: str) -> str:
    """What a client calls the server: of the project's name what every client takes."""
    slug = re.sub(r"[^a-z0-9]+", "-", project.casefold()).strip("-")[:_NAME].strip("-")
    return f"gatewayd-{slug}" if slug else "gatewayd"


def snippets(name: str, url: str, token: str) -> tuple[Snippet, ...]:
    """`name` as `server_name` gives it, `url` the address of /mcp, `token` its text or PLACEHOLDER."""
    header = f"Bearer {token}"
    remote = {"url": url, "headers": {"Authorization": header}}
    # A space inside of an argument is lost by some versions of the bridge's Windows launcher: the header's value is a variable.
    bridge = {
        "command": "npx",
        "args": ["-y", "mcp-remote", url, "--header", "Authorization:${AUTHORIZATION}"],
        "env": {"AUTHORIZATION": header},
    }
    claude_code = ["claude", "mcp", "add", "--transport", "http", name, url, "--header", f"Authorization: {header}"]
    codex = f"[mcp_servers.{name}]\nurl = {json.dumps(url)}\nhttp_headers = {{ Authorization = {json.dumps(header)} }}"
    return (
        Snippet("claude-code", "Claude Code", "in a terminal", shlex.join(claude_code)),
        Snippet(
            "claude-desktop", "Claude Desktop", "claude_desktop_config.json; needs Node.js", _json({"mcpServers": {name: bridge}})
        ),
        Snippet("cursor", "Cursor", "~/.cursor/mcp.json", _json({"mcpServers": {name: remote}})),
        Snippet("vs-code", "VS Code", ".vscode/mcp.json", _json({"servers": {name: {"type": "http", **remote}}})),
        Snippet("codex", "Codex", "~/.codex/config.toml", codex),
        Snippet("python", "Python", "the official SDK: pip install mcp", _PYTHON % (header, url)),
        Snippet("curl", "curl", "one call, to see that it works", _curl(url, header)),
    )


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


_PYTHON: Final = """\
import asyncio

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    async with httpx2.AsyncClient(headers={"Authorization": "%s"}) as http:
        async with Client(streamable_http_client("%s", http_client=http)) as client:
            answer = await client.call_tool("query", {"sql": "SELECT 1", "intent": "to see that it works"})
            print(answer.content[0].text)


asyncio.run(main())"""

_VERSION: Final = "2026-07-28"
_MESSAGE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "query",
        "arguments": {"sql": "SELECT 1", "intent": "to see that it works"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": _VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "8"},
        },
    },
}


def _curl(url: str, header: str) -> str:
    """A call of the stateless protocol: one request is all."""
    headers = (
        f"Authorization: {header}", "Content-Type: application/json", "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {_VERSION}", "Mcp-Method: tools/call", "Mcp-Name: query",
    )  # fmt: skip
    lines = [f"curl -sS {shlex.quote(url)}", *(f"-H {shlex.quote(each)}" for each in headers)]
    return " \\\n  ".join([*lines, f"-d {shlex.quote(json.dumps(_MESSAGE))}"])
