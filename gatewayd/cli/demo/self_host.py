"""The demo with all of it: the control plane in self-host mode, and an engine that it runs in front of the shop."""

import json
import os
import sys
from typing import Final

import click

from gatewayd.cli.demo.output import STATEMENTS, first_lines, over_http, to_ask
from gatewayd.config.exit_codes import CONFIGURATION
from gatewayd.demo.shop import ADDRESS, Demo

WAITS: Final = ("UPDATE orders SET status = 'shipped' WHERE id = 17", "waits until you approve it in the console")


def environment(demo: Demo, port: int) -> dict[str, str]:
    """What the demo's control plane is configured with; the user's own settings of these names do not apply here."""
    return {
        "GATEWAY_SELF_HOST": "1",
        "CONTROL_DATABASE_URL": demo.control_database_url,
        "CONTROL_HOST": ADDRESS,
        "CONTROL_PORT": str(port),
        "CONTROL_STATE_DIR": str(demo.folder / "control"),
        "CONTROL_LOG_LEVEL": os.environ.get("CONTROL_LOG_LEVEL") or "warning",
    }


def introduction(demo: Demo, console: str, link: str | None, agent: str) -> str:
    """What a person reads when the demo is ready. `link` is the first sign-in, None once there is an owner."""
    first = "the first person to open it becomes the owner; it works once" if link is not None else "sign in with your account"
    desktop = {"mcpServers": {"shop": {"command": "npx", "args": ["-y", "mcp-remote", agent]}}}
    lines = [
        *first_lines(demo),
        f"  Console  {link or console}",
        f"           {first}",
        f"  Agent    {agent}",
        "           the address holds a token: whoever has it is the agent",
        "",
        *over_http("Connect an agent", agent),
        "  Claude Desktop, in claude_desktop_config.json (with Node.js):",
        f"    {json.dumps(desktop)}",
        *to_ask([*STATEMENTS, WAITS]),
    ]
    return "\n".join([*lines, ""])


def serve_control_plane(demo: Demo, port: int, hangup_stops: bool) -> int:
    """Serves the demo's database by a control plane and its engine; returns the exit code."""
    try:
        from gatewayd.cli.demo.sample import Sample
        from gatewayd.config.settings import SettingsErrors
        from gatewayd.control.daemon import serve
        from gatewayd.control.settings import load_control_settings, with_secrets
    except ModuleNotFoundError as missing:
        needed = "pip install 'gatewayd[demo,control]', or gatewayd demo --engine-only"
        click.echo(f"gatewayd demo needs more packages ({missing.name}): {needed}", err=True)
        return CONFIGURATION
    try:
        settings = with_secrets(load_control_settings(environment(demo, port)))
    except SettingsErrors as errors:
        for problem in errors.problems:
            click.echo(problem, err=True)
        return CONFIGURATION

    import trio

    sample = Sample(demo.folder / "agent-token", demo.database_url)

    def tell(address: str, _link: str | None) -> None:
        link = f"{address}{sample.owner_link}" if sample.owner_link is not None else None
        click.echo(introduction(demo, address, link, f"{address}/mcp/{sample.token}"))
        sys.stdout.flush()

    async def run() -> int:
        return await serve(settings, on_ready=tell, prepare=sample.prepare, hangup_stops=hangup_stops)

    return trio.run(run)
