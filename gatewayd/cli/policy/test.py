"""`gatewayd policy test`: what would become of this statement, or of these, as CI asks."""

import sys
from collections.abc import Sequence

import click

from gatewayd.cli import options
from gatewayd.cli.output import Output, TableColumn, remark
from gatewayd.cli.policy.decider import Decider, catalogs, decider
from gatewayd.cli.policyfile import entries, policies_or_exit, policy_text
from gatewayd.config.exit_codes import FAILURE, USAGE
from gatewayd.config.settings import read_bytes
from gatewayd.policy.file.problem import PolicyErrors
from gatewayd.policy.tools.expect import Case, check_expected, load_cases

_ONE = (
    TableColumn("decision", "decision"),
    TableColumn("rule", "rule"),
    TableColumn("tables", "tables"),
    TableColumn("reason", "reason", wide=True),
)
_MANY = (
    TableColumn("", "outcome"),
    TableColumn("line", "line", "right"),
    TableColumn("statement", "sql", wide=True),
    TableColumn("expected", "expected"),
    TableColumn("decision", "decision"),
    TableColumn("rule", "rule"),
    TableColumn("reason", "reason", wide=True),
)


@click.command()
@options.policy_file
@click.option("--sql", metavar="STATEMENT", help="One statement; `-` reads it from standard input.")
@click.option("--cases", metavar="FILE", help="A YAML file of statements and what is expected of each.")
@click.option("--expect", metavar="VERDICT", help="With --sql: allow, deny, held, or the rule that denies.")
@click.option("--tainted", is_flag=True, help="With --sql: as an agent sends it that has read a source of foreign text.")
@options.database
@options.connect
@options.as_json
def command(
    file: str | None,
    sql: str | None,
    cases: str | None,
    expect: str | None,
    tainted: bool,
    database: str | None,
    connect: bool,
    as_json: bool,
) -> None:
    """Decide statements under a policy and hold them to what is expected.

    Nothing runs. Without --connect the names in policy and statement decide alone: every table is taken for a plain one and no
    mask is judged, which is what CI has at hand; with it the catalog decides as it would in a running gatewayd. A file of cases:

    \b
      - sql: SELECT * FROM customers
        expect: allow
      - sql: DELETE FROM orders
        expect: dangerous_statement     # a rule, or just: deny
        database: shop                  # where the policy has several
        tainted: true                   # as an agent that has read a source of foreign text

    Exits with 1 when a case is not as expected, or when --sql is denied and nothing was expected.
    """
    if (sql is None) == (cases is None):
        raise click.UsageError("name one of --sql and --cases; type: gatewayd policy test policy.yaml --sql 'SELECT 1'")
    output = Output(as_json=as_json)
    wanted = _cases(sql, cases, expect, tainted)
    text = policy_text(file)
    chosen = entries(policies_or_exit(text, with_addresses=connect), database)
    live = catalogs(chosen) if connect else {}
    deciders = {entry.name: decider(entry.policy, live.get(entry.name)) for entry in chosen}
    rows = [_decided(case, deciders) for case in wanted]
    if cases is None:
        output.records(_ONE, rows)
        passed = rows[0]["outcome"] == "passed" if expect else rows[0]["decision"] == "allow"
        if expect and not passed:
            remark(f"expected {expect}")
    else:
        failed = [row for row in rows if row["outcome"] == "failed"]
        output.records(_MANY, failed if output.is_table else rows)
        remark(f"{len(rows) - len(failed)} of {len(rows)} as expected" + ("" if connect else ", by names alone"))
        passed = not failed
    if not passed:
        sys.exit(FAILURE)


def _cases(sql: str | None, cases: str | None, expect: str | None, tainted: bool) -> Sequence[Case]:
    if sql is not None:
        try:
            checked = check_expected(expect) if expect is not None else None
        except ValueError as error:
            raise click.UsageError(f"--expect: {error}") from None
        return (Case(sys.stdin.read() if sql == "-" else sql, checked, tainted=tainted),)
    if expect is not None:
        raise click.UsageError("--expect goes with --sql; the file of --cases says what it expects")
    if tainted:
        raise click.UsageError("--tainted goes with --sql; a case of a file says `tainted: true`")
    assert cases is not None
    try:
        return load_cases(read_bytes(cases))
    except OSError as error:
        raise click.UsageError(f"--cases: cannot read `{cases}` ({(error.strerror or 'no reason given').lower()})") from None
    except PolicyErrors as errors:
        for problem in errors.problems:
            click.echo(f"{cases}: {problem}", err=True)
        sys.exit(USAGE)


def _decided(case: Case, deciders: dict[str, Decider]) -> dict[str, object]:
    name = case.database or (next(iter(deciders)) if len(deciders) == 1 else None)
    if name not in deciders:
        known = ", ".join(deciders)
        where = f"line {case.line}: " if case.line else ""
        raise click.UsageError(f"{where}which database is meant? type --database NAME, or give the case one of: {known}")
    verdict = deciders[name](case.sql, case.tainted)
    record: dict[str, object] = {"outcome": None, "line": case.line or None, "sql": case.sql, "database": name}
    if case.expect is not None:
        record |= {"outcome": "passed" if verdict.meets(case.expect) else "failed", "expected": case.expect}
    return record | {
        "decision": verdict.decision,
        "rule": verdict.rule,
        "reason": verdict.reason or None,
        "tables": list(verdict.tables),
    }
