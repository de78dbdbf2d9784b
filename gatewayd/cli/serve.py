"""`gatewayd serve`: configuration, then the daemon, then its exit code."""

import os
import sys

import click

from gatewayd.cli.load_settings import settings_or_exit


@click.command()
@click.option("--stdio", is_flag=True, help="Speak MCP over stdin and stdout, for an agent that starts gatewayd itself.")
def command(stdio: bool) -> None:
    """Stand between agents and databases until stopped.

    Over HTTP on GATEWAY_HOST and PORT, or over stdin and stdout with --stdio. SIGTERM or Ctrl-C lets the calls in flight finish;
    a second one cancels them.
    """
    settings = settings_or_exit({**os.environ, "GATEWAY_TRANSPORT": "stdio"} if stdio else os.environ)

    # Imported only now: a broken configuration is told before the daemon costs anything.
    import trio

    from gatewayd.daemon import serve

    sys.exit(trio.run(serve, settings))
