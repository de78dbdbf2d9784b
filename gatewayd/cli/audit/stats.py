"""`gatewayd audit stats`: how much was asked, allowed, refused, and how long it took."""

import time
from collections.abc import Sequence
from typing import Final

import click

from gatewayd.cli import options
from gatewayd.cli.audit import filters
from gatewayd.cli.audit.search import cursor_of, open_audit_file
from gatewayd.cli.output import Output, TableColumn, remark

_TOTALS: Final = """
SELECT database, coalesce(agent_name, '-'),
       sum(event_type = 'ATTEMPTED'),
       sum(json_extract(payload, '$.decision') IS 'ALLOW'), sum(json_extract(payload, '$.decision') IS 'DENY'),
       sum(event_type = 'EXECUTED'), sum(event_type = 'FAILED'),
       coalesce(sum(json_extract(payload, '$.rows_returned')), 0), coalesce(sum(json_extract(payload, '$.rows_affected')), 0),
       cast(avg(json_extract(payload, '$.exec_ms')) AS integer), max(json_extract(payload, '$.exec_ms')),
       cast(avg(json_extract(payload, '$.overhead_ms')) AS integer)
FROM audit_events WHERE id > ? AND event_type NOT IN ('POLICY_RELOADED', 'ERASED') GROUP BY 1, 2 ORDER BY 3 DESC
"""
_WORDS: Final = """
SELECT database, {word}, count(*) FROM audit_events
WHERE id > ? AND event_type = '{event}' AND {word} IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 20
"""
_KEYS: Final = (
    ("database", "database"),
    ("agent", "agent_name"),
    ("calls", "calls"),
    ("allowed", "allowed"),
    ("denied", "denied"),
    ("executed", "executed"),
    ("failed", "failed"),
    ("rows", "rows_returned"),
    ("affected", "rows_affected"),
    ("mean ms", "mean_exec_ms"),
    ("max ms", "max_exec_ms"),
    ("overhead ms", "mean_overhead_ms"),
)
# what a table of words is called, the event it is of, the word
_TALLIES: Final = (
    ("policy_rule", "DECIDED", "json_extract(payload, '$.policy_rule')"),
    ("statement_type", "DECIDED", "json_extract(payload, '$.statement_type')"),
    ("error_class", "FAILED", "json_extract(payload, '$.error_class')"),
)


@click.command()
@click.option(
    "--since", metavar="CURSOR|DURATION", default="7d", show_default=True, help="How far back: 30m, 7d, an event id, 0."
)
@filters.file
@options.as_json
def command(since: str, file: str | None, as_json: bool) -> None:
    """How much was asked, allowed, refused, and how long it took."""
    cursor = cursor_of(since, time.time_ns() // 1_000_000)
    output = Output(as_json=as_json)
    audit = open_audit_file(file)
    with audit.watched():
        calls = [dict(zip((key for _, key in _KEYS), row, strict=True)) for row in audit.query(_TOTALS, cursor)]
        tallies = [(name, audit.query(_WORDS.format(event=event, word=word), cursor)) for name, event, word in _TALLIES]
    columns = [TableColumn(title, key, "left" if key in ("database", "agent_name") else "right") for title, key in _KEYS]
    output.records(columns, [{"kind": "calls", **each} for each in calls])
    for name, counted in tallies:
        _tally(output, name, counted)
    remark(f"{sum(int(str(each['calls'])) for each in calls)} calls since {since} in {audit.path}")


def _tally(output: Output, name: str, counted: Sequence[tuple[object, ...]]) -> None:
    found = [{"kind": name, "database": database, name: word, "count": count} for database, word, count in counted]
    columns = (TableColumn("database", "database"), TableColumn(name, name), TableColumn("count", "count", "right"))
    if found and output.is_table:
        output.line(("", ""))
    output.records(columns, found)
