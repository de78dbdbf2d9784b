"""`gatewayd audit`: reads the audit file beside the running gatewayd, and writes it only to erase (decision 14)."""

from typing import Final

import click

from gatewayd.cli.lazy import LazyGroup

COMMANDS: Final[dict[str, str]] = {
    "tail": "The latest events; with -f also those to come.",
    "since": "All events after an event id, or of the last 30m, 12h, 7d.",
    "denies": "What was refused, with the statement and the reason.",
    "show": "Everything recorded of one call, by any id of it.",
    "verify": "Whether the file is what was recorded: every leaf, root and signature.",
    "prove": "Everything of one query as one text that proves itself.",
    "verify-proof": "Check such a text, without the file and without a network.",
    "identity": "The public key that this gateway's heads are signed with.",
    "report": "What an auditor asks of a period, as text, JSON or one page of HTML.",
    "erase": "Take personal text out of the record, and record that.",
    "stats": "How much was asked, allowed, refused, and how long it took.",
}


@click.group(cls=LazyGroup, package="gatewayd.cli.audit", summaries=COMMANDS)
def command() -> None:
    """Read, verify and prove the audit file.

    The file is that of DB_PATH, or --file. It is opened for reading only, beside the gatewayd that writes it. Lines on a
    terminal, one JSON object a line in a pipe or with --json.
    """
