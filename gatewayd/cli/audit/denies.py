"""`gatewayd audit denies`: what was refused, with the statement and the reason."""

import time
from typing import Any

import click
import msgspec

from gatewayd.audit.reader import AuditRow
from gatewayd.cli import options
from gatewayd.cli.audit import filters
from gatewayd.cli.audit.lines import moment, one_line
from gatewayd.cli.audit.search import AuditFileView, Filter, cursor_of, open_audit_file
from gatewayd.cli.output import Output, TableColumn, remark

_COLUMNS = (
    TableColumn("when", "when"),
    TableColumn("database", "database"),
    TableColumn("agent", "agent_name"),
    TableColumn("rule", "policy_rule"),
    TableColumn("statement", "statement", wide=True),
    TableColumn("reason", "reason", wide=True),
    TableColumn("event", "id"),
)


@click.command()
@click.option(
    "--since", metavar="CURSOR|DURATION", default="1d", show_default=True, help="How far back: 30m, 7d, an event id, 0."
)
@click.option("--limit", "-n", type=click.IntRange(1), default=50, show_default=True, help="At most so many, the latest.")
@filters.database
@filters.agent
@filters.rule
@filters.file
@options.as_json
def command(
    since: str, limit: int, database: str | None, agent: str | None, rule: str | None, file: str | None, as_json: bool
) -> None:
    """What was refused, with the statement and the reason."""
    cursor = cursor_of(since, time.time_ns() // 1_000_000)
    output = Output(as_json=as_json)
    audit = open_audit_file(file)
    with audit.watched():
        denials = [_record(audit, row) for row in audit.denials(cursor, Filter(database, agent, rule), limit)]
    output.records(_COLUMNS, denials)
    more = ", the latest; --limit shows more" if len(denials) == limit else ""
    remark(f"{len(denials)} denial{'' if len(denials) == 1 else 's'}{more}")


def _record(audit: AuditFileView, row: AuditRow) -> dict[str, Any]:
    payload: dict[str, Any] = msgspec.json.decode(row.payload)
    sql = audit.statement(row.query_id)
    return {
        "id": row.id,
        "query_id": row.query_id,
        "ts": row.ts,
        "when": moment(row.ts),
        "database": row.database,
        "agent_name": row.agent_name,
        "agent_intent": row.agent_intent,
        "policy_rule": payload.get("policy_rule"),
        "statement": one_line(sql),
        "sql_raw": sql,
        "reason": payload.get("reason"),
    }
