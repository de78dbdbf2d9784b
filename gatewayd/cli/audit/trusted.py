"""Whose signatures an audit command trusts: the keys that were named, else this machine's own identity."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from gatewayd.config.settings import state_dir
from gatewayd.keys.ed25519 import KeyRefused
from gatewayd.keys.identity import IdentityRefused, load_identity, verifier_of
from gatewayd.keys.note import VerifierKey, verifier_key

key_option: Final[Callable[..., Any]] = click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="VKEY",
    help="A key to trust, as `gatewayd audit identity` prints it. May be given again. Default: this machine's own identity.",
)


def trusted_keys(given: Sequence[str]) -> list[VerifierKey]:
    """The keys that `given` spells, or the identity of this machine; none when it has none. Ends the command for a wrong one."""
    try:
        if given:
            return [verifier_key(each) for each in given]
        identity = load_identity(state_dir(os.environ), os.environ.get("CREDENTIALS_DIRECTORY"))
    except KeyRefused as refused:
        raise click.UsageError(f"--key: {refused}") from None
    except IdentityRefused:
        return []  # not ours to read: a file can be verified by anybody
    return [] if identity is None else [verifier_of(identity)]
