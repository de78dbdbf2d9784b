"""The demo without the control plane: one gatewayd in front of the shop, and what to type into an agent."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayd import __version__
from gatewayd.cli.load_settings import settings_or_exit
from gatewayd.demo.shop import Demo

if TYPE_CHECKING:
    from gatewayd.config.settings import Settings

# statement, what comes of it
STATEMENTS = (
    ("SELECT status, count(*) FROM orders GROUP BY status", "allowed: reading is"),
    ("SELECT name, email, tax_id FROM customers LIMIT 5", "allowed, with email and tax_id masked"),
    ("SELECT * FROM secrets", "refused: the policy denies the table"),
    ("DELETE FROM orders", "refused by a guardrail: orders may be written, but not all rows at once"),
)


def environment(demo: Demo, port: int) -> dict[str, str]:
    """What the demo's gatewayd is configured with; the user's own settings of these names do not apply here."""
    return {
        "DATABASE_URL": demo.database_url,
        "GATEWAY_POLICY_FILE": str(demo.policy_path),
        "GATEWAY_MASK_SALT_FILE": str(demo.salt_path),
        "DB_PATH": str(demo.audit_path),
        "GATEWAY_HOST": "127.0.0.1",
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
    cursor = {"mcpServers": {"shop": {"url": url}}}
    given = " ".join(shlex.quote(f"--env={name}={value}") for name, value in variables.items())
    lines = [
        f"gatewayd {__version__} serves a sample shop. Ctrl-C stops it; the data stays in {demo.folder}",
        "",
        f"  URL     {url}",
        f"  Policy  {demo.policy_path}",
        f"  Audit   {demo.audit_path}",
        "",
        title("Connect over HTTP"),
        "  Claude Code, in a shell:",
        f"    claude mcp add --transport http shop {url}",
        "  Cursor, in ~/.cursor/mcp.json:",
        f"    {json.dumps(cursor)}",
        "",
        title("Connect over stdio (while this runs, because the database does)"),
        "  Claude Desktop, in claude_desktop_config.json; Cursor, in ~/.cursor/mcp.json:",
        f"    {json.dumps(desktop)}",
        "  Claude Code, in a shell:",
        f"    claude mcp add --transport stdio shop-stdio {given} -- {shlex.join(stdio)}",
        "",
        title("Ask the agent to run"),
    ]
    width = max(len(statement) for statement, _ in STATEMENTS)
    lines += [f"  {statement:<{width}}   {outcome}" for statement, outcome in STATEMENTS]
    return "\n".join([*lines, ""])


def serve_engine(demo: Demo, port: int, hangup_stops: bool) -> int:
    settings: Settings = settings_or_exit(environment(demo, port))

    import trio

    from gatewayd.daemon import serve

    async def run() -> int:
        return await serve(settings, on_ready=lambda url: click.echo(introduction(demo, url)), hangup_stops=hangup_stops)

    return trio.run(run)


def title(text: str) -> str:
    """A heading among what is printed."""
    return click.style(text, bold=True)
