"""The demo without the control plane: one gatewayd in front of the shop, and what to type into an agent."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayd.cli.demo.output import STATEMENTS, first_lines, over_http, title, to_ask
from gatewayd.cli.load_settings import settings_or_exit
from gatewayd.demo.shop import ADDRESS, Demo

if TYPE_CHECKING:
    from gatewayd.config.settings import Settings


def environment(demo: Demo, port: int) -> dict[str, str]:
    """What the demo's gatewayd is configured with; the user's own settings of these names do not apply here."""
    return {
        "DATABASE_URL": demo.database_url,
        "GATEWAY_POLICY_FILE": str(demo.policy_path),
        "GATEWAY_MASK_SALT_FILE": str(demo.salt_path),
        "DB_PATH": str(demo.audit_path),
        "GATEWAY_HOST": ADDRESS,
        "PORT": str(port),
        "GATEWAY_LOG_LEVEL": os.environ.get("GATEWAY_LOG_LEVEL") or "warning",
        "GATEWAY_TELEMETRY": "0",
    }


def introduction(demo: Demo, url: str) -> str:
    """What a person reads when the demo is ready. `url` is where it is served."""
    program = Path(sys.executable).with_name("gatewayd")
    words = [str(program)] if program.exists() else [sys.executable, "-m", "gatewayd"]
    stdio = [*words, "serve", "--stdio"]
    variables = {
        "DATABASE_URL": demo.database_url,
        "GATEWAY_POLICY_FILE": str(demo.policy_path),
        "GATEWAY_MASK_SALT_FILE": str(demo.salt_path),
        "DB_PATH": str(demo.folder / "audit-stdio.db"),  # an audit file has one writer, so each gatewayd has its own
    }
    desktop = {"mcpServers": {"shop": {"command": stdio[0], "args": stdio[1:], "env": variables}}}
    given = " ".join(shlex.quote(f"--env={name}={value}") for name, value in variables.items())
    lines = [
        *first_lines(demo),
        f"  URL     {url}",
        f"  Policy  {demo.policy_path}",
        f"  Audit   {demo.audit_path}",
        "",
        *over_http("Connect over HTTP", url),
        "",
        title("Connect over stdio (while this runs, because the database does)"),
        "  Claude Desktop, in claude_desktop_config.json; Cursor, in ~/.cursor/mcp.json:",
        f"    {json.dumps(desktop)}",
        "  Claude Code, in a shell:",
        f"    claude mcp add --transport stdio shop-stdio {given} -- {shlex.join(stdio)}",
        *to_ask(STATEMENTS),
    ]
    return "\n".join([*lines, ""])


def serve_engine(demo: Demo, port: int, hangup_stops: bool) -> int:
    """Serves the demo's database by an engine alone; returns the exit code."""
    settings: Settings = settings_or_exit(environment(demo, port))

    import trio

    from gatewayd.daemon import serve

    async def run() -> int:
        return await serve(settings, on_ready=lambda url: click.echo(introduction(demo, url)), hangup_stops=hangup_stops)

    return trio.run(run)
