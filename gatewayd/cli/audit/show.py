"""`gatewayd audit show`: everything recorded of one call, in order."""

import sys

import click

from gatewayd.audit.ids import is_ulid
from gatewayd.cli import options
from gatewayd.cli.audit import filters
from gatewayd.cli.audit.lines import details, moment, place, summary
from gatewayd.cli.audit.search import open_audit_file
from gatewayd.cli.output import Output, remark, style_of, visible
from gatewayd.config.exit_codes import FAILURE


@click.command()
@click.argument("id_", metavar="ID")
@filters.file
@options.as_json
def command(id_: str, file: str | None, as_json: bool) -> None:
    """Everything recorded of one call.

    ID is the `auditId` of an answer, the id of any of the call's events, or its query id. Exits with 1 when there is none.
    """
    if not is_ulid(id_):
        raise click.UsageError(f"found `{visible(id_)}`; expected an id of 26 characters, such as the `auditId` of an answer")
    output = Output(as_json=as_json)
    rows = open_audit_file(file).chain(id_.upper())
    if not rows:
        remark(f"nothing is recorded under {id_}; it may be of another audit file, or deleted")
        sys.exit(FAILURE)
    if not output.is_table:
        for row in rows:
            output.json(row)
        return
    first = rows[0]
    who = " ".join(filter(None, (first.agent_name, first.agent_version))) or "no agent"
    output.line(("query ", "dim"), (first.query_id, "bold"), (f"  database {visible(first.database)}, {visible(who)}", ""))
    if first.agent_intent:
        output.line(("intent ", "dim"), (visible(first.agent_intent), ""))
    for row in rows:
        word, _ = summary(row)
        output.line(("", ""))
        output.line(
            (f"{moment(row.ts)}  ", "dim"), (row.event_type, style_of(word) or "bold"), (f"  {place(row)}  {row.id}", "dim")
        )
        for key, value in details(row.payload):
            indented = value.replace("\n", "\n" + " " * 20)
            output.line((f"  {key:<17} ", "dim"), (indented, style_of(value)))
