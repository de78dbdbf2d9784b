"""`gatewayd control check`: would it start?"""

import sys
from typing import TYPE_CHECKING

import click

from gatewayd.cli.control.configuration import control_settings_or_exit, run_with_console
from gatewayd.config.exit_codes import UNAVAILABLE

if TYPE_CHECKING:
    from gatewayd.control.console import Console


@click.command()
@click.option("--connect", is_flag=True, help="Also ask the store which migrations it has.")
def command(connect: bool) -> None:
    """Check the configuration without serving.

    Exits with 0 when it would start, 78 when the configuration is wrong, 69 when the store does not answer, is of a newer
    version or lacks migrations.
    """
    settings = control_settings_or_exit(secrets=False)
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    store = "the embedded PostgreSQL" if settings.database_url is None else "CONTROL_DATABASE_URL"
    mode = "self-host" if settings.self_host else "hosted"
    click.echo(f"configuration is valid; {mode}; {settings.public_url}; store: {store}; state: {settings.state}")
    if connect:
        sys.exit(run_with_console(_migrations))


async def _migrations(console: "Console") -> int:
    from gatewayd.control.store.migrate import state

    found = await state(console.store)
    click.echo(f"store: answers; {len(found.applied)} migrations applied, {len(found.missing)} missing")
    for migration in found.missing:
        click.echo(f"missing: {migration.name}; `gatewayd control migrate` applies it, and so does the next start")
    return UNAVAILABLE if found.missing else 0
