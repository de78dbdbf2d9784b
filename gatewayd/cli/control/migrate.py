"""`gatewayd control migrate`: what a start does, too, for those who want it to be a step of its own."""

import sys
from typing import TYPE_CHECKING

import click

from gatewayd.cli.control.configuration import run_with_console

if TYPE_CHECKING:
    from gatewayd.control.console import Console


@click.command()
def command() -> None:
    """Bring the store to this version. Running control planes of the former version go on meanwhile."""
    sys.exit(run_with_console(_migrate))


async def _migrate(console: "Console") -> int:
    from gatewayd.control.store.migrate import migrate

    done = await migrate(console.store, console.replica, console.now_ms())
    for migration in done:
        click.echo(f"applied {migration.name}")
    click.echo("the store is of this version")
    return 0
