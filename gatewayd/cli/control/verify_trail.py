"""`gatewayd control verify-trail`: checks what people did, as it was exported, without the store and without a network."""

import sys
from pathlib import Path

import click

from gatewayd.cli.audit.trusted import trusted_keys
from gatewayd.cli.output import json_line, remark
from gatewayd.config.exit_codes import FAILURE


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--key", "keys", multiple=True, required=True, metavar="VKEY", help="The control plane's key. May be given again.")
@click.option(
    "--head", "heads", multiple=True, metavar="NOTE_FILE", help="A head kept elsewhere, which the export must lead to as well."
)
def command(file: str, keys: tuple[str, ...], heads: tuple[str, ...]) -> None:
    """Check an export (JSON lines) of what people did, or the proof of one act.

    FILE is the text; - reads it from standard input. Prints the acts that are proved, as JSON. The key is shown on the page
    "What people did"; heads are in the control plane's log. Exits with 1 when it proves nothing.
    """
    from gatewayd.control.trail.proof import TrailRefused, check

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        notes = [Path(each).read_text(encoding="utf-8") for each in heads]
        found = check(text, trusted_keys(keys), notes)
    except (OSError, UnicodeDecodeError, TrailRefused) as failure:
        remark(f"NOT PROVED: {failure}")
        sys.exit(FAILURE)
    for act in found.acts:
        click.echo(json_line(act))
    acts = f"{len(found.acts)} act{'' if len(found.acts) == 1 else 's'}"
    remark(f"proved: {acts}, under the head of {found.head.size} signed by {found.signer.name}")
