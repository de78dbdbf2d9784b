"""`gatewayd audit report`: what an auditor asks of a period, as text, JSON or one page of HTML."""

import os
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import msgspec

from gatewayd.audit.ids import ulid_text
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.report import AuditReport, Reporter
from gatewayd.audit.verdict import FileVerdict
from gatewayd.audit.verify import Verifier
from gatewayd.cli import options
from gatewayd.cli.audit import filters
from gatewayd.cli.audit.report_page import page
from gatewayd.cli.audit.search import open_audit_file
from gatewayd.cli.audit.trusted import key_option, trusted_keys
from gatewayd.cli.output import Output, json_line, remark, visible
from gatewayd.config.exit_codes import FAILURE
from gatewayd.config.settings import audit_path


@click.command()
@click.option("--from", "from_", metavar="DAY", help="The first day, such as 2026-01-31 (UTC). Default: 30 days ago.")
@click.option("--to", "to", metavar="DAY", help="The last day (UTC). Default: today.")
@click.option("--html", "html", metavar="FILE", help="Write one page of HTML, complete in itself, to FILE; - is standard output.")
@filters.file
@key_option
@options.as_json
def command(from_: str | None, to: str | None, html: str | None, file: str | None, keys: tuple[str, ...], as_json: bool) -> None:
    """What an auditor asks of a period.

    Is the record whole: verified leaf by leaf, gaps, instances, calls without an end, time without a signed head. What does it
    say: decisions by agent, table and rule, policy changes, erasures. Text, JSON in a pipe, or one page of HTML with charts.
    Exits with 1 when the record is not intact.
    """
    now = datetime.now(UTC)
    first = _day(from_, "--from") if from_ else now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=30)
    end = (_day(to, "--to") if to else now.replace(hour=0, minute=0, second=0, microsecond=0)) + timedelta(days=1)
    if end <= first:
        raise click.UsageError("--to is before --from")
    from_ms, to_ms = int(first.timestamp() * 1000), int(end.timestamp() * 1000)
    path = open_audit_file(file).path or audit_path(os.environ)
    try:
        connection = connect_for_reading(path)
        verdict = Verifier(connection, trusted_keys(keys)).run()
        report = Reporter(connection, from_ms, to_ms).run(ulid_text(from_ms << 80), ulid_text(to_ms << 80))
    except (sqlite3.Error, OSError, ValueError, msgspec.MsgspecError) as failure:
        raise click.ClickException(f"cannot read the audit file `{visible(path)}`: {visible(str(failure))}") from None
    if html is not None:
        _write(html, page(report, verdict, now))
    else:
        _tell(Output(as_json=as_json), report, verdict)
    if verdict.faults:
        sys.exit(FAILURE)


def _day(text: str, name: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise click.UsageError(f"{name}: found `{visible(text)}`; expected a day such as 2026-01-31") from None


def _write(name: str, text: str) -> None:
    if name == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as failure:
        raise click.ClickException(f"--html: cannot write `{visible(name)}` ({failure.strerror})") from None
    remark(f"wrote {name}")


def _tell(output: Output, report: AuditReport, verdict: FileVerdict) -> None:
    if not output.is_table:
        click.echo(json_line({"verdict": verdict.sentence, "findings": verdict.findings, **msgspec.to_builtins(report)}))
        return
    output.line((verdict.sentence, "bold red" if verdict.faults else "bold green"))
    for finding in verdict.findings:
        place = f" (seq {finding.seq})" if finding.seq else ""
        output.line((f"  {finding.kind} ", "dim"), (visible(finding.what + place), ""))
    for title, lines in sections(report):
        output.line(("", ""))
        output.line((title, "bold"))
        for line in lines:
            output.line(("  " + visible(line), ""))


def sections(report: AuditReport) -> list[tuple[str, list[str]]]:
    """The report in lines, by title."""
    counted = "{0.name}: {0.allowed} allowed, {0.denied} denied"
    gaps = ", ".join(f"{first}-{last}" for first, last in report.gaps) or "none"
    return [
        (
            f"Completeness, {_date(report.from_ms)} to {_date(report.to_ms - 1)}",
            [
                f"{report.rows} rows, seq {report.first_seq or '-'} to {report.last_seq or '-'}; gaps: {gaps}",
                f"instances: {', '.join(report.instances) or 'none'}",
                f"{report.undecided} calls without a decision, {report.unclosed} allowed calls without an end",
                f"{report.unanchored_rows} rows without a signed head",
                f"the longest time without one: {report.longest_unanchored_ms / 1000:.0f} s",
                f"{report.unproved_rows} rows from before format 2, which cannot be proved",
            ],
        ),
        (
            "Decisions",
            [
                f"{report.calls} calls: {report.allowed} allowed, {report.denied} denied",
                f"{report.executed} executed, {report.failed} failed",
                *(f"policy {each}" for each in report.policies),
            ],
        ),
        ("By agent", [counted.format(each) for each in report.agents]),
        ("By table", [counted.format(each) for each in report.tables]),
        ("Denied by rule", [f"{each.name}: {each.denied}" for each in report.rules]),
        ("Policy changes", [f"{_time(each.ts)} {each.database} {each.what}" for each in report.policy_changes]),
        ("Erasures", [f"{_time(each.ts)} {each.what}" for each in report.erasures]),
    ]


def _date(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
