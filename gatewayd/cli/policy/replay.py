"""`gatewayd policy replay`: the recorded statements under a new policy, before it is enforced."""

import sys
import time
from collections import Counter
from collections.abc import Mapping

import click
import msgspec

from gatewayd.audit.events import SQL_RAW_BYTES
from gatewayd.cli import options
from gatewayd.cli.audit.lines import one_line
from gatewayd.cli.audit.search import AuditFileView, cursor_of, open_audit_file
from gatewayd.cli.output import Output, TableColumn, remark
from gatewayd.cli.policy.decider import Decider, catalogs, decider
from gatewayd.cli.policyfile import entries, policies_or_exit, policy_text
from gatewayd.cli.progress import progress
from gatewayd.config.exit_codes import FAILURE
from gatewayd.policy.tools.replay import Flip, Replay, StatementShape

_STATEMENTS = (
    TableColumn("change", "change"),
    TableColumn("count", "count", "right"),
    TableColumn("rule", "rule"),
    TableColumn("statement", "statement", wide=True),
    TableColumn("reason", "reason", wide=True),
    TableColumn("agents", "agents"),
    TableColumn("event", "id"),
)


@click.command()
@options.policy_file
@click.option(
    "--since", metavar="CURSOR|DURATION", default="7d", show_default=True, help="How far back: 12h, 7d, an event id, 0."
)
@click.option("--connect/--no-connect", default=True, show_default=True, help="Decide with the live catalogs, or by names alone.")
@options.database
@click.option("--audit", "audit_file", metavar="PATH", help="The audit file. Default: that of DB_PATH.")
@click.option("--limit", "-n", type=click.IntRange(0), default=20, show_default=True, help="How many statements to list.")
@click.option("--check", is_flag=True, help="Exit with 1 when anything flips.")
@options.as_json
def command(
    file: str | None,
    since: str,
    connect: bool,
    database: str | None,
    audit_file: str | None,
    limit: int,
    check: bool,
    as_json: bool,
) -> None:
    """Decide the recorded statements again and list what would flip.

    FILE is the new policy. Every statement recorded since then is decided under it, with the catalog as it is now; nothing
    runs, and the audit file is only read. What would be denied, allowed or held that was not is counted by rule, table and
    agent, and listed by the shape of the statement.

    \b
      gatewayd policy replay --since 7d new-policy.yaml
    """
    cursor = cursor_of(since, time.time_ns() // 1_000_000)
    text = policy_text(file)
    chosen = entries(policies_or_exit(text, with_addresses=connect), database)
    audit = open_audit_file(audit_file)
    live = catalogs(chosen) if connect else {}
    deciders = {entry.name: decider(entry.policy, live.get(entry.name), recorded=True) for entry in chosen}
    replay = _replay(audit, cursor, deciders)
    _print(Output(as_json=as_json), replay, limit)
    totals = replay.totals
    apart = {
        "undecided (held, or without a recorded decision)": totals.undecided,
        "recorded up to 1 MiB only, so not decided again": totals.cut,
        "of a database that the new policy does not name": totals.other_database,
        "denied by another rule than before": totals.other_rule,
    }
    remark(
        f"{totals.statements} statements since {since} decided again under {text.name}: {totals.now_denied} now denied, "
        f"{totals.now_allowed} now allowed, {totals.now_held} now held, {totals.same} as before"
    )
    for what, count in apart.items():
        if count:
            remark(f"{count} {what}")
    if not connect:
        remark(
            "by names alone: views, partitions, masks and your own functions may decide otherwise; --connect asks the databases"
        )
    if check and totals.flips:
        sys.exit(FAILURE)


def _replay(audit: AuditFileView, cursor: str, deciders: Mapping[str, Decider]) -> Replay:
    replay = Replay()
    tainted: set[str] = set()
    with progress("deciding again", audit.attempts(cursor)) as shown:
        for recorded in audit.recorded(cursor):
            shown.advance()
            decided = deciders.get(recorded.database)
            if decided is None:
                replay.totals.other_database += 1
            elif recorded.decision is None:
                replay.totals.undecided += 1
            elif len(recorded.sql.encode()) > SQL_RAW_BYTES - 4:  # a cut text ends before a character that would pass the limit
                replay.totals.cut += 1
            else:
                verdict = decided(recorded.sql, recorded.token in tainted)
                replay.compare(recorded, verdict)
                if verdict.reads_source is not None and verdict.decision == "allow":
                    tainted.add(recorded.token)  # from here on, as if nobody had cleared it
    return replay


def _print(output: Output, replay: Replay, limit: int) -> None:
    tallies: tuple[tuple[str, Counter[tuple[Flip, str]]], ...] = (
        ("rule", replay.by_rule),
        ("table", replay.by_table),
        ("agent", replay.by_agent),
    )
    for name, tally in tallies:
        columns = (TableColumn("change", "change"), TableColumn("count", "count", "right"), TableColumn(name, name))
        output.records(
            columns,
            [{"kind": name, "change": change, name: word, "count": count} for (change, word), count in tally.most_common()],
        )
        if output.is_table and tally:
            output.line(("", ""))
    shapes = replay.shapes()
    if output.is_table:
        output.records(_STATEMENTS, [_row(shape) for shape in shapes[:limit]])
    else:
        output.records((), ({"kind": "statement", **msgspec.structs.asdict(shape)} for shape in shapes))
    if output.is_table and len(shapes) > limit:
        remark(f"and {len(shapes) - limit} more kinds of statements; --limit shows them")
    if not output.is_table:
        output.json({"kind": "summary", **msgspec.structs.asdict(replay.totals)})


def _row(shape: StatementShape) -> dict[str, object]:
    agents = [f"{agent} ({count})" for agent, count in shape.agents.items()]
    return {**msgspec.structs.asdict(shape), "statement": one_line(shape.sql), "agents": agents}
