"""The policy file of a command's argument, as values; or the end of the command with every problem (decisions 2 and 14).

This needs no environment: secrets, the salt and the approval gate are checked by `gatewayd check`.
"""

import os
import re
import sys
from collections.abc import Mapping
from typing import NoReturn

import click
import msgspec

from gatewayd.audit.events import DEFAULT_DATABASE
from gatewayd.config.credentials import Variables
from gatewayd.config.exit_codes import CONFIGURATION
from gatewayd.config.settings import read_bytes
from gatewayd.policy.file.load import PolicyErrors, Problem, load_policies
from gatewayd.policy.file.model import Policies, Policy
from gatewayd.policy.file.yaml import MAX_BYTES

VARIABLE = "GATEWAY_POLICY_FILE"


class DatabaseEntry(msgspec.Struct, frozen=True):
    """One database of a policy file. `url` is a secret; None where DATABASE_URL has it."""

    name: str
    policy: Policy
    url: str | None

    def __repr__(self) -> str:
        """Without the url."""
        return f"Entry(name={self.name!r}, policy={self.policy!r})"


class PolicyText(msgspec.Struct, frozen=True):
    """A policy file as read. `name` is what to call it."""

    name: str
    data: bytes

    def policies(self, *, with_addresses: bool = False) -> Policies:
        """Raises PolicyErrors. Without `with_addresses` a `${VAR}` of an address may be unset."""
        given = Variables(os.environ, read_bytes)
        variables = given if with_addresses else _Standing(self.data, given)
        return load_policies(self.data, variables, approval_gate=True, mask_salt=True)


def policy_text(file: str | None) -> PolicyText:
    """The text that `file` names, or GATEWAY_POLICY_FILE where it names none. Ends the command when there is nothing to read."""
    path = file or os.environ.get(VARIABLE)
    if not path:
        words = click.get_current_context().command_path
        raise click.UsageError(f"no policy file is named; type: {words} policy.yaml (or set {VARIABLE})")
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else read_bytes(path)
    except OSError as error:
        raise click.UsageError(f"cannot read `{path}` ({(error.strerror or 'no reason given').lower()})") from None
    return PolicyText("standard input" if path == "-" else path, data)


def policies_or_exit(text: PolicyText, *, with_addresses: bool = False) -> Policies:
    """The policies of the text. Exits with 78 after printing what is wrong with them."""
    try:
        return text.policies(with_addresses=with_addresses)
    except PolicyErrors as errors:
        refuse(text, errors.problems)


def refuse(text: PolicyText, problems: tuple[Problem, ...]) -> NoReturn:
    """Prints the problems of a policy file and ends the command."""
    for problem in problems:
        click.echo(f"{text.name}: {problem}", err=True)
    sys.exit(CONFIGURATION)


def entries(policies: Policies, only: str | None = None) -> tuple[DatabaseEntry, ...]:
    """The databases that the policies speak about, or the one called `only`. Ends the command when there is none of that name."""
    if policies.databases is None:
        assert policies.single is not None
        found: tuple[DatabaseEntry, ...] = (DatabaseEntry(DEFAULT_DATABASE, policies.single, None),)
    else:
        found = tuple(DatabaseEntry(named.name, named.policy, named.url) for named in policies.databases)
    if only is None:
        return found
    chosen = tuple(entry for entry in found if entry.name == only)
    if not chosen:
        known = ", ".join(entry.name for entry in found)
        raise click.UsageError(f"the policy has no database `{only}`; type one of: {known}")
    return chosen


class _Standing:
    """Variables that may be unset: something of the right form stands for each, since no connection is made."""

    def __init__(self, data: bytes, given: Variables) -> None:
        whole = re.findall(rb"url['\"]?\s*:\s*['\"]?\$\{([A-Z_][A-Z0-9_]*)\}['\"]?\s*(?:[#,}\r\n]|$)", data)
        self._whole: Mapping[str, str] = {name.decode(): "postgresql://unset" for name in whole}
        self._given = given

    def get(self, name: str, /) -> str | None:
        # "1" may stand for a port as well as for a name or a password
        return self._given.get(name) or self._whole.get(name, "1")
