"""`gatewayd audit since`: everything after a place in the file, streaming."""

import time

import click

from gatewayd.cli.audit.filters import filters
from gatewayd.cli.audit.lines import show
from gatewayd.cli.audit.search import Filter, cursor_of, open_audit_file
from gatewayd.cli.output import Output


@click.command()
@click.argument("start", metavar="CURSOR|DURATION")
@click.option("--limit", "-n", type=click.IntRange(1), help="At most so many events.")
@filters
def command(
    start: str,
    limit: int | None,
    database: str | None,
    agent: str | None,
    rule: str | None,
    event_type: str | None,
    file: str | None,
    as_json: bool,
) -> None:
    """All events after an event id, or of the last 30m, 12h, 7d; 0 is the beginning.

    In a pipe each line is a row as GET /audit/since gives it; the id of the last one is the cursor to go on with.
    """
    cursor = cursor_of(start, time.time_ns() // 1_000_000)
    output = Output(as_json=as_json)
    for row in open_audit_file(file).rows_after(cursor, Filter(database, agent, rule, event_type), limit):
        show(output, row)
