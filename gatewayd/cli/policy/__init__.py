"""`gatewayd policy`: everything about a policy that can be done without serving it (decision 14)."""

from typing import Final

import click

from gatewayd.cli.lazy import LazyGroup

COMMANDS: Final[dict[str, str]] = {
    "init": "Write a first policy from a live catalog: nothing can be written.",
    "validate": "Say everything that is wrong with a policy file, and where.",
    "lint": "Say what a valid policy leaves open, and what to do.",
    "test": "Decide statements under a policy and hold them to what is expected.",
    "replay": "Decide the recorded statements again and list what would flip.",
    "suggest-masks": "Propose column masks from the names and comments of a catalog.",
    "schema": "Print the JSON Schema of the policy file, for editors.",
}


@click.group(cls=LazyGroup, package="gatewayd.cli.policy", summaries=COMMANDS)
def command() -> None:
    """Write, check, test and replay policies.

    FILE is a policy file, `-` is standard input; left out, it is the file that GATEWAY_POLICY_FILE names. Tables on a terminal,
    one JSON object a line in a pipe or with --json.
    """
