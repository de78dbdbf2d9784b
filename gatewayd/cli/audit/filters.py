"""The options by which the audit commands choose rows, with one wording each."""

from collections.abc import Callable
from typing import Any

import click

from gatewayd.cli import options
from gatewayd.cli.audit.search import EVENT_TYPES

Command = Callable[..., Any]

file = click.option("--file", "file", metavar="PATH", help="The audit file. Default: that of DB_PATH.")
database = click.option("--database", metavar="NAME", help="Only of this database.")
agent = click.option("--agent", metavar="NAME", help="Only of agents of this name.")
rule = click.option("--rule", metavar="RULE", help="Only denials by this rule, such as table_access.")
type_ = click.option(
    "--type", "event_type", type=click.Choice(EVENT_TYPES, case_sensitive=False), help="Only events of this type."
)


def filters(command: Command) -> Command:
    """--database, --agent, --rule, --type, --file and --json."""
    for option in (options.as_json, file, type_, rule, agent, database):
        command = option(command)
    return command
