"""The `gatewayd` command: the overview of what it can do.

To add a command, write `cli/<name>.py` (or a folder of that name for a group) with a click command called `command` and give it a
line below.
"""

from typing import Final

import click

from gatewayd import __version__
from gatewayd.cli.lazy import LazyGroup

# name -> what it does, as the overview shows it (the modules are not imported for that)
COMMANDS: Final[dict[str, str]] = {
    "serve": "Stand between agents and databases (what `gatewayd` alone does).",
    "demo": "Serve a sample shop from an embedded PostgreSQL.",
    "check": "Check configuration and policy without serving.",
    "doctor": "Look at everything a gatewayd depends on, and say what to do.",
    "policy": "Write, check, test and replay policies.",
    "audit": "Read the audit file.",
    "link": "Link this gateway to a control plane, and look after the link.",
    "taint": "Show which agents are contained, and let them go.",
    "control": "Run the control plane: people, policies, approvals, audit.",
    "approve": "Decide about held writes at this terminal: a small approval gate.",
    "query": "Run one statement through the running gatewayd, as an agent would.",
    "publish": "Publish a policy file through the control plane.",
    "completion": "Print a shell's completion script.",
    "manual": "Write the manual pages into a folder.",
}


@click.group(
    cls=LazyGroup,
    package="gatewayd.cli",
    summaries=COMMANDS,
    default="serve",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def gatewayd() -> None:
    """A policy gateway between AI agents and PostgreSQL.

    Without a policy file everything can be read and nothing can be written. Configuration comes from the environment:
    DATABASE_URL is enough to start.
    """
