"""`gatewayd control backup`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayd.cli.control.configuration import control_settings_or_exit, told_or_exit

if TYPE_CHECKING:
    from gatewayd.control.backup.backup import Made


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--with-secrets", is_flag=True, help="Also the secrets of the state folder, and the engines' identities.")
def command(file: Path, *, with_secrets: bool) -> None:
    """Write store and engines' folders into FILE, which is not there yet; the control plane may run meanwhile."""
    settings = control_settings_or_exit(secrets=False)

    async def work() -> "Made":
        from gatewayd.control.backup.backup import back_up
        from gatewayd.control.console import now_ms

        return await back_up(settings, file, now_ms(), with_secrets=with_secrets)

    made = told_or_exit(work)
    click.echo(f"wrote {file}: {made.tables} tables, {made.size} bytes")
    if with_secrets:
        click.echo("it holds secrets: who reads it can sign in as anybody and open every database address")
    for name in made.elsewhere:
        click.echo(f"not in it, and needed to restore it: {name}")
    sys.exit(0)
