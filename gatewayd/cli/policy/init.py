"""`gatewayd policy init`: a first policy from what a database contains."""

import click

from gatewayd.cli.output import remark
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.policy.file.model import Policy
from gatewayd.policy.tools.draft import draft_policy


@click.command()
@click.option(
    "--default",
    type=click.Choice(["deny", "read"]),
    default="deny",
    show_default=True,
    help="deny: every table is listed as readable, one made later stays hidden until it is listed. read: all is readable.",
)
@click.option(
    "--url-from", metavar="VARIABLE", default="DATABASE_URL", show_default=True, help="The variable with the connection string."
)
def command(default: str, url_from: str) -> None:
    """Write a first policy from a live catalog: nothing can be written.

    Reads names and types, no data, and prints YAML with comments to standard output:

    \b
      gatewayd policy init > policy.yaml
    """
    from gatewayd.cli.catalogs import database_url, inspect

    name = "the database"
    inspected = inspect((DatabaseEntry(name, Policy(), database_url(url_from)),))[name]
    click.echo(draft_policy(inspected.catalog, "deny" if default == "deny" else "read"), nl=False)
    remark("next: gatewayd policy lint --connect policy.yaml")
