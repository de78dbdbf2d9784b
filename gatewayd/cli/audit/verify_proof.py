"""`gatewayd audit verify-proof`: checks such a text, without the audit file and without a network."""

import sys
from pathlib import Path

import click

from gatewayd.audit.proof import ProofRefused, check_proof
from gatewayd.cli import options
from gatewayd.cli.audit.lines import moment
from gatewayd.cli.audit.trusted import key_option, trusted_keys
from gatewayd.cli.output import Output, json_line, remark, visible
from gatewayd.config.exit_codes import FAILURE


@click.command()
@click.argument("file", metavar="FILE")
@key_option
@options.as_json
def command(file: str, keys: tuple[str, ...], as_json: bool) -> None:
    """Check what `gatewayd audit prove` gave, without the audit file and without a network.

    FILE is the text; - reads it from standard input. Shows the rows that are proved. Exits with 1 when it proves nothing.
    """
    trusted = trusted_keys(keys)
    if not trusted:
        raise click.UsageError("name the gateway's key with --key; `gatewayd audit identity` prints it there")
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        proved = check_proof(text, trusted)
    except (OSError, UnicodeDecodeError, ProofRefused) as failure:
        remark(f"NOT PROVED: {failure}")
        sys.exit(FAILURE)
    output = Output(as_json=as_json)
    for each in proved:
        if not output.is_table:
            output.json({"seq": each.seq, "instance": each.head.instance, "erased": each.is_erased, **each.row})
            continue
        output.line((f"seq {each.seq}  {moment(each.row['ts'])}  ", "dim"), (visible(str(each.row["event_type"])), "bold"))
        for name, value in each.row.items():
            if value is not None:
                shown = visible(value) if isinstance(value, str) else json_line(value)
                output.line((f"  {name:<15} ", "dim"), (shown, ""))
    head = proved[0].head
    rows = f"{len(proved)} row{'' if len(proved) == 1 else 's'}"
    signer = proved[0].signer.name
    remark(f"proved: {rows} of query {proved[0].row['query_id']}, under the head of {head.size} rows signed by {signer}")
