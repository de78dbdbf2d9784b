"""`gatewayd demo`: the sample shop's PostgreSQL, gatewayd in front of it, and what to type into an agent."""

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from gatewayd import __version__
from gatewayd.cli.load_settings import settings_or_exit
from gatewayd.config.exit_codes import UNAVAILABLE
from gatewayd.demo.shop import Demo, default_folder
from gatewayd.postgres.embedded import EmbeddedUnavailable

if TYPE_CHECKING:
    from gatewayd.config.settings import Settings

# statement, what comes of it
STATEMENTS = (
    ("SELECT status, count(*) FROM orders GROUP BY status", "allowed: reading is"),
    ("SELECT name, email, tax_id FROM customers LIMIT 5", "allowed, with email and tax_id masked"),
    ("SELECT * FROM secrets", "refused: the policy denies the table"),
    ("DELETE FROM orders", "refused by a guardrail: orders may be written, but not all rows at once"),
)

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--state",
    type=click.Path(file_okay=False, resolve_path=True, path_type=Path),
    help=f"Folder that keeps the demo's data. Default: {default_folder()}",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port to serve on. Default: that of the last time, else a free one.")
def command(state: Path | None, port: int | None) -> None:
    """Serve a sample shop from an embedded PostgreSQL.

    Prints how to connect an agent and what to try. Ctrl-C, or closing the terminal, stops all of it; the data stays for the next
    time.
    """
    ending = _ending()
    for number in ending:
        signal.signal(number, _leave)
    demo = Demo(state or default_folder())
    try:
        with demo.running():
            try:
                code = _serve(demo, port or demo.port(), hangup_stops=signal.SIGHUP in ending)
            finally:  # PostgreSQL stops within a second; that must not be interrupted
                _heed_no_more()
    except EmbeddedUnavailable as unavailable:
        click.echo(f"gatewayd demo: {unavailable}", err=True)
        for note in getattr(unavailable, "__notes__", ()):
            click.echo(note, err=True)
        sys.exit(UNAVAILABLE)
    sys.exit(code)


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
        _title("Connect over HTTP"),
        "  Claude Code, in a shell:",
        f"    claude mcp add --transport http shop {url}",
        "  Cursor, in ~/.cursor/mcp.json:",
        f"    {json.dumps(cursor)}",
        "",
        _title("Connect over stdio (while this runs, because the database does)"),
        "  Claude Desktop, in claude_desktop_config.json; Cursor, in ~/.cursor/mcp.json:",
        f"    {json.dumps(desktop)}",
        "  Claude Code, in a shell:",
        f"    claude mcp add --transport stdio shop-stdio {given} -- {shlex.join(stdio)}",
        "",
        _title("Ask the agent to run"),
    ]
    width = max(len(statement) for statement, _ in STATEMENTS)
    lines += [f"  {statement:<{width}}   {outcome}" for statement, outcome in STATEMENTS]
    return "\n".join([*lines, ""])


def _serve(demo: Demo, port: int, *, hangup_stops: bool) -> int:
    settings: Settings = settings_or_exit(environment(demo, port))

    import trio

    from gatewayd.daemon import serve

    async def run() -> int:
        return await serve(settings, on_ready=lambda url: click.echo(introduction(demo, url)), hangup_stops=hangup_stops)

    return trio.run(run)


def _title(text: str) -> str:
    return click.style(text, bold=True)


def _ending() -> list[signal.Signals]:
    """The signals that end the demo. SIGHUP comes when its terminal is closed; nohup ignores it, and so does its demo."""
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]


def _heed_no_more() -> None:
    for number in _ending():
        signal.signal(number, signal.SIG_IGN)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """A signal while PostgreSQL starts: leave through the blocks that stop it. While serving, the daemon takes the signal."""
    _heed_no_more()  # a closed terminal is told by its shell and by the kernel
    sys.exit(0)
