"""`gatewayd audit verify`: whether the audit file is what was recorded."""

import os
import sqlite3
import sys
from pathlib import Path

import click
import msgspec

from gatewayd.audit.heads import heads_in_log, unproved_head
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.verdict import AuditFinding
from gatewayd.audit.verify import Verifier
from gatewayd.cli import options
from gatewayd.cli.audit.lines import moment
from gatewayd.cli.audit.trusted import key_option, trusted_keys
from gatewayd.cli.output import Output, visible
from gatewayd.cli.progress import progress
from gatewayd.config.exit_codes import FAILURE
from gatewayd.config.settings import audit_path
from gatewayd.keys.note import NoteRefused


@click.command()
@click.argument("file", required=False, metavar="[FILE]")
@click.option(
    "--checkpoint", "checkpoints", multiple=True, metavar="NOTE", help="A file with a signed head kept elsewhere; - is stdin."
)
@click.option(
    "--journal", is_flag=True, help="Read gatewayd's log on stdin: its `audit checkpoint` lines are heads kept elsewhere."
)
@key_option
@options.as_json
def command(file: str | None, checkpoints: tuple[str, ...], journal: bool, keys: tuple[str, ...], as_json: bool) -> None:
    """Whether the audit file is what was recorded.

    Makes every leaf, root and signature again, and compares them with the file's own heads and with heads kept elsewhere. FILE
    is that of DB_PATH unless it is named; it is only read, also while gatewayd writes it. Ends in one sentence, and with 1 when
    anything is wrong.
    """
    path = file or audit_path(os.environ)
    output = Output(as_json=as_json)
    notes = [note for name in checkpoints for note in _notes(name)]
    if journal:
        notes += heads_in_log(iter(sys.stdin))
        if not notes:
            raise click.UsageError("found no `audit checkpoint` line on standard input; expected gatewayd's log")
    trusted = trusted_keys(keys)
    try:
        if not Path(path).exists():
            raise FileNotFoundError("there is no such file")
        connection = connect_for_reading(path)
        connection.execute("PRAGMA mmap_size = 268435456")
        (last,) = connection.execute("SELECT max(rowid) FROM audit_events").fetchone()
        with progress("verifying the audit file", last or 0) as shown:
            verdict = Verifier(connection, trusted, notes).run(shown.advance)
    except (sqlite3.Error, OSError) as failure:
        raise click.ClickException(f"cannot read the audit file `{visible(path)}`: {failure}") from None
    for finding in verdict.findings:
        _show(output, finding)
    if not output.is_table:
        output.json({"kind": "verdict", "intact": not verdict.faults, "sentence": verdict.sentence, **_counts(verdict)})
    else:
        output.line((verdict.sentence, "bold red" if verdict.faults else "bold green"))
    if verdict.faults:
        sys.exit(FAILURE)


def _counts(verdict: msgspec.Struct) -> dict[str, object]:
    counted = msgspec.to_builtins(verdict)
    return {name: value for name, value in counted.items() if name != "findings"}


def _show(output: Output, finding: AuditFinding) -> None:
    if not output.is_table:
        output.json(finding)
        return
    where = f"seq {finding.seq} " if finding.seq is not None else ""
    when = f"({moment(finding.ts)}) " if finding.ts is not None else ""
    style = "bold red" if finding.kind == "fault" else "yellow"
    said = f"{where}{when}{finding.what}" + (f"; {finding.meaning}" if finding.meaning else "")
    output.line((f"{'FAULT' if finding.kind == 'fault' else 'note '} ", style), (visible(said), ""))


def _notes(name: str) -> list[tuple[str, str]]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        unproved_head(text)
    except (OSError, UnicodeDecodeError, NoteRefused) as failure:
        raise click.UsageError(f"--checkpoint {visible(name)}: {failure}") from None
    return [(text, visible(name))]
