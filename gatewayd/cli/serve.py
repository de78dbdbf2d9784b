"""`gatewayd serve`: configuration, then the daemon, then its exit code."""

import os
import sys

import click

from gatewayd.cli.load_settings import settings_or_exit


@click.command()
@click.option("--stdio", is_flag=True, help="Speak MCP over stdin and stdout, for an agent that starts gatewayd itself.")
@click.option(
    "--stop-at-eof",
    is_flag=True,
    help="Over HTTP: stop when standard input ends, as when the program that holds it is gone.",
)
def command(stdio: bool, stop_at_eof: bool) -> None:
    """Stand between agents and databases until stopped.

    Over HTTP on GATEWAY_HOST and PORT, or over stdin and stdout with --stdio. SIGTERM or Ctrl-C lets the calls in flight finish;
    a second one cancels them.
    """
    settings = settings_or_exit({**os.environ, "GATEWAY_TRANSPORT": "stdio"} if stdio else os.environ)
    if stop_at_eof and settings.transport == "stdio":
        raise click.UsageError("--stop-at-eof is for HTTP: over stdio the end of standard input stops gatewayd anyway")

    # Imported only now: a broken configuration is told before the daemon costs anything.
    import trio

    from gatewayd.daemon import serve

    async def run() -> int:
        return await serve(settings, stop_at_eof=stop_at_eof)

    sys.exit(trio.run(run))
