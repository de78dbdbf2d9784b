"""`gatewayd control restore`."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatewayd.cli.control.configuration import control_settings_or_exit, told_or_exit

if TYPE_CHECKING:
    from gatewayd.control.backup.restore import Restored


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def command(file: Path) -> None:
    """Put the backup FILE into an empty store and an empty state folder. The control plane does not run yet."""
    settings = control_settings_or_exit(secrets=False)

    async def work() -> "Restored":
        from gatewayd.control.backup.restore import restore

        return await restore(settings, file)

    restored = told_or_exit(work)
    made = datetime.fromtimestamp(restored.made_ms // 1000, UTC)
    click.echo(f"restored what gatewayd {restored.gatewayd} backed up at {made:%Y-%m-%d %H:%M:%S} UTC")
    click.echo("What was revoked, closed or cut after that time holds again: look through tokens, keys, people and gateways.")
    click.echo("Everybody signs in again; invitations, links and enrolment tokens are made anew; open approvals have ended.")
    sys.exit(0)
