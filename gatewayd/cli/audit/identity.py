"""`gatewayd audit identity`: the public key that this gateway's heads are signed with."""

import os
import sys

import click

from gatewayd.cli.output import remark
from gatewayd.config.exit_codes import FAILURE
from gatewayd.config.settings import state_dir
from gatewayd.keys.identity import IdentityRefused, load_identity, verifier_of


@click.command()
def command() -> None:
    """The public key that this gateway's heads are signed with.

    In the form that tools of transparency logs take, and `--key` of the audit commands. It is no secret: give it to whoever is
    to verify. The identity is made at the first start, in GATEWAY_STATE_DIR.
    """
    folder = state_dir(os.environ)
    try:
        identity = load_identity(folder, os.environ.get("CREDENTIALS_DIRECTORY"))
    except IdentityRefused as refused:
        remark(str(refused))
        sys.exit(FAILURE)
    if identity is None:
        remark(
            f"there is no identity in {folder} yet; gatewayd makes it at its first start, GATEWAY_STATE_DIR names another folder"
        )
        sys.exit(FAILURE)
    click.echo(str(verifier_of(identity)))
