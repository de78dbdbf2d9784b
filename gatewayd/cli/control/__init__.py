"""`gatewayd control`: the control plane's commands. Its modules are imported only by the command that is meant."""

from typing import Final

import click

from gatewayd.cli.lazy import LazyGroup

COMMANDS: Final[dict[str, str]] = {
    "serve": "Run the control plane.",
    "check": "Check its configuration; with --connect its store, too.",
    "migrate": "Bring the store to this version.",
    "user": "People: list, and a link for one who cannot sign in.",
    "key": "Secrets: list, make, change.",
    "verify-trail": "Check an export of what people did.",
    "backup": "Write the store and the engines' folders into a file.",
    "restore": "Put a backup into an empty place.",
}


@click.group(cls=LazyGroup, package="gatewayd.cli.control", summaries=COMMANDS)
def command() -> None:
    """The control plane: people, policies, approvals, the audit of all gateways. GATEWAY_SELF_HOST=1 is enough to start."""
