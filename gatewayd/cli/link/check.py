"""`gatewayd link check`: what the link needs. It sends no poll: one of this command would look like a copied identity."""

import os
import sys

import click
import trio

from gatewayd.cli.link.kept_link import here, read_link
from gatewayd.config.exit_codes import CONFIGURATION, UNAVAILABLE
from gatewayd.config.settings import LinkSettings
from gatewayd.keys.identity import IdentityRefused, load_identity


@click.command()
def command() -> None:
    """Check the link: state folder, identity, trust, bundle, and whether the control plane can be reached.

    Exits with 0 when all is well, 78 when something here is wrong, 69 when the control plane does not answer.
    """
    kept, link = read_link(here())
    click.echo(f"state folder: gateway {link.enrolled.gateway} of project {link.enrolled.project}, trust {link.trust.version}")
    try:
        identity = load_identity(str(kept.folder), os.environ.get("CREDENTIALS_DIRECTORY"))
    except IdentityRefused as refused:
        click.echo(f"identity: {refused}", err=True)
        sys.exit(CONFIGURATION)
    if identity is None or identity.key_id != link.enrolled.identity:
        found = "there is none" if identity is None else "it is another one than was enrolled"
        click.echo(f"identity: {found}; restore identity.json, or `gatewayd link leave` and enrol again", err=True)
        sys.exit(CONFIGURATION)
    click.echo(f"identity: {identity.key_id}")
    if link.bundle is None:
        click.echo(f"bundle: none to start with ({link.problem})")
    else:
        click.echo(f"bundle: version {link.bundle.version}, {link.bundle.state}")
    ca_file = os.environ.get("GATEWAY_CONTROL_CA") or None
    wrong = trio.run(_reach, LinkSettings(link.enrolled.control_url, ca_file=ca_file))
    if wrong is not None:
        click.echo(f"control plane: {wrong}", err=True)
        sys.exit(UNAVAILABLE)
    click.echo("control plane: answers")


async def _reach(link: LinkSettings) -> str | None:
    """What keeps the control plane from being reached."""
    from gatewayd.link.client import reach

    return await reach(link)
