"""`gatewayd control user`: people, for somebody at the machine itself."""

import sys
from typing import TYPE_CHECKING

import click

from gatewayd.cli.control.configuration import run_with_console
from gatewayd.config.exit_codes import FAILURE

if TYPE_CHECKING:
    from gatewayd.control.console import Console


@click.group()
def command() -> None:
    """People of the control plane."""


@command.command(name="list")
def listing() -> None:
    """Everybody who has an account."""
    sys.exit(run_with_console(_list))


@command.command()
@click.argument("email")
def recover(email: str) -> None:
    """Print a link with which EMAIL sets a new password. It works once, for an hour; the account's sessions end."""

    async def work(console: "Console") -> int:
        from gatewayd.control.people.recovery import recovery_link

        link = await recovery_link(console, email)
        if link is None:
            click.echo(f"there is no account `{email}`; `gatewayd control user list` shows them", err=True)
            return FAILURE
        click.echo(link)
        return 0

    sys.exit(run_with_console(work))


async def _list(console: "Console") -> int:
    from gatewayd.control.people.recovery import everybody

    for person in await everybody(console):
        click.echo(f"{person.email}  {person.name}{'  (closed)' if person.disabled_ms is not None else ''}")
    return 0
