"""`gatewayd link accept-version N`: lets version N in although higher ones were seen, as after a stolen working key."""

import click

from gatewayd.cli.link.kept_link import here, read_link
from gatewayd.link.kept import ACCEPT_VERSION, AcceptVersion


@click.command()
@click.argument("version", type=click.IntRange(1))
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(version: int, yes: bool) -> None:
    """Let bundle VERSION in, although this gateway has seen a higher one.

    For a control plane that had to go back: after a working key was stolen and new trust was signed, say. The gateway takes it
    within half a minute, or when it starts, and records it in its audit.
    """
    kept, link = read_link(here())
    if version > link.seen.version:
        raise click.UsageError(f"version {version} needs no leave: the highest seen is {link.seen.version}")
    if not yes:
        click.confirm(f"Version {link.seen.version} was seen. Let version {version} in?", abort=True)
    kept.keep(ACCEPT_VERSION, AcceptVersion(version))
    click.echo(f"version {version} will be taken; look for `bundle version accepted by hand` in the log")
