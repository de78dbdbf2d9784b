"""`gatewayd control serve`."""

import sys

import click

from gatewayd.cli.control.configuration import control_settings_or_exit


@click.command()
def command() -> None:
    """Run the control plane until stopped.

    SIGTERM or Ctrl-C lets the requests in progress finish; a second one cancels them.
    """
    settings = control_settings_or_exit()

    import trio

    from gatewayd.control.daemon import serve

    def tell(address: str, link: str | None) -> None:
        click.echo(f"gatewayd control serves {address}")
        if link is not None:
            click.echo(f"The first person to open this link becomes the owner; it works once:\n  {link}")

    async def run() -> int:
        return await serve(settings, on_ready=tell)

    sys.exit(trio.run(run))
