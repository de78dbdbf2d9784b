"""`gatewayd link`: links this gateway to a control plane, and looks after the link (docs/link-protocol.md)."""

from typing import Final

import click

from gatewayd.cli.lazy import LazyGroup

COMMANDS: Final[dict[str, str]] = {
    "enrol": "Link this gateway (what `gatewayd link --control URL` does).",
    "status": "Whom it belongs to, and what it enforces.",
    "check": "Would the link work: state folder, trust, bundle, network.",
    "rotate": "Give this gateway a new identity, known to the control plane before it counts.",
    "leave": "Forget the link; the audit file stays.",
    "accept-version": "Let an older bundle version in, after a stolen key.",
}


@click.group(cls=LazyGroup, package="gatewayd.cli.link", summaries=COMMANDS, default="enrol")
def command() -> None:
    """Link this gateway to a control plane, and look after the link.

    The state folder is GATEWAY_STATE_DIR; it belongs to the account that gatewayd runs as.
    """
