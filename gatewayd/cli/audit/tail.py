"""`gatewayd audit tail`: the latest events, and with -f those to come."""

import signal
from threading import Event

import click

from gatewayd.cli.audit.filters import filters
from gatewayd.cli.audit.lines import show
from gatewayd.cli.audit.search import Filter, open_audit_file
from gatewayd.cli.output import Output

POLL_S = 0.5  # SQLite tells nobody about a commit of another process


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with the events to come, until Ctrl-C.")
@click.option("--limit", "-n", type=click.IntRange(0), default=20, show_default=True, help="How many of the latest events.")
@filters
def command(
    follow: bool,
    limit: int,
    database: str | None,
    agent: str | None,
    rule: str | None,
    event_type: str | None,
    file: str | None,
    as_json: bool,
) -> None:
    """The latest events; with -f also those to come."""
    output = Output(as_json=as_json)
    audit = open_audit_file(file)
    wanted = Filter(database, agent, rule, event_type)
    cursor = audit.last_id()
    with audit.watched():
        rows = audit.latest(wanted, limit)
    for row in rows:
        show(output, row)
        cursor = max(cursor, row.id)
    if not follow:
        return
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.wait(POLL_S):
        for row in audit.rows_after(cursor, wanted):
            show(output, row)
            cursor = row.id
