"""`gatewayd policy lint`: the security posture of a valid policy, each finding with what to do."""

import sys
from collections.abc import Sequence

import click

from gatewayd.catalog import Catalog
from gatewayd.cli import options
from gatewayd.cli.output import Output, TableColumn, remark
from gatewayd.cli.policyfile import DatabaseEntry, PolicyText, entries, policies_or_exit, policy_text
from gatewayd.config.exit_codes import FAILURE
from gatewayd.masking.rules.mask_rules import problems
from gatewayd.policy.file import yaml
from gatewayd.policy.file.problem import Path, dotted
from gatewayd.policy.tools.finding import Finding, Severity
from gatewayd.policy.tools.lint import RANK, lint

_COLUMNS = (
    TableColumn("severity", "severity"),
    TableColumn("line", "line", "right"),
    TableColumn("where", "path"),
    TableColumn("found", "found", wide=True),
    TableColumn("what to do", "remedy", wide=True),
)


@click.command()
@options.policy_file
@options.connect
@options.database
@click.option(
    "--fail-on",
    type=click.Choice(["high", "medium", "low", "never"]),
    default="high",
    show_default=True,
    help="The least severity that makes the command exit with 1.",
)
@options.as_json
def command(file: str | None, connect: bool, database: str | None, fail_on: str, as_json: bool) -> None:
    """Say what a valid policy leaves open, and what to do.

    With --connect the names of the policy are held against each database: keys that match no table, views over denied tables,
    columns that look personal and have no mask. Exits with 1 when something of the severity of --fail-on is found, 78 when the
    policy is not valid, 69 when a database does not answer.
    """
    output = Output(as_json=as_json)
    text = policy_text(file)
    chosen = entries(policies_or_exit(text, with_addresses=connect), database)
    catalogs = {}
    if connect:
        from gatewayd.cli.catalogs import inspect

        catalogs = {name: inspected.catalog for name, inspected in inspect(chosen).items()}
    found = [(entry, finding) for entry in chosen for finding in _findings(entry, catalogs.get(entry.name))]
    lines = _Lines(text)
    several = len(chosen) > 1
    columns = (_COLUMNS[0], TableColumn("database", "database"), *_COLUMNS[1:]) if several else _COLUMNS
    output.records(columns, [_record(entry, finding, lines) for entry, finding in found])
    _summary(text, [finding for _, finding in found], connect=connect)
    if fail_on != "never" and any(RANK[finding.severity] >= _rank(fail_on) for _, finding in found):
        sys.exit(FAILURE)


def _findings(entry: DatabaseEntry, catalog: Catalog | None) -> Sequence[Finding]:
    """Masks that do not fit first: with one of them gatewayd would not start."""
    misfits = problems(entry.policy, catalog) if catalog is not None else ()
    remedy = "correct it: gatewayd refuses a policy whose masks do not fit its database"
    return [*(Finding("high", ("column_masks",), each, remedy) for each in misfits), *lint(entry.policy, catalog)]


def _rank(word: str) -> int:
    severity: Severity = "high" if word == "high" else "medium" if word == "medium" else "low"
    return RANK[severity]


def _record(entry: DatabaseEntry, finding: Finding, lines: "_Lines") -> dict[str, object]:
    return {
        "severity": finding.severity,
        "database": entry.name,
        "line": lines.of(entry, finding.path) or None,
        "path": dotted(finding.path),
        "found": finding.found,
        "remedy": finding.remedy,
    }


def _summary(text: PolicyText, found: list[Finding], *, connect: bool) -> None:
    counts = {severity: sum(finding.severity == severity for finding in found) for severity in ("high", "medium", "low")}
    said = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "nothing to remark"
    more = "" if connect else "; with --connect the names are held against the database too"
    remark(f"{text.name}: {said}{more}")


class _Lines:
    """Lines of the file by path. A path that the file does not spell out has the line of what stands around it."""

    def __init__(self, text: PolicyText) -> None:
        self._root, _ = yaml.parse(text.data)

    def of(self, entry: DatabaseEntry, path: Path) -> int:
        """0 where nothing of the path is in the file."""
        node, line = self._section_root(entry), 0
        for part in path:
            if not isinstance(node, yaml.YamlMapping):
                break
            found = _entry(node, str(part))
            if found is None:
                break
            node, line = found.value, found.line
        return line

    def _section_root(self, entry: DatabaseEntry) -> yaml.YamlNode | None:
        if not isinstance(self._root, yaml.YamlMapping) or "databases" not in self._root.entries:
            return self._root
        items = self._root.entries["databases"].value
        for item in items.items if isinstance(items, yaml.YamlSequence) else ():
            name = item.entries["name"].value if isinstance(item, yaml.YamlMapping) and "name" in item.entries else None
            if isinstance(name, yaml.YamlScalar) and name.value == entry.name:
                return item
        return None


def _entry(node: yaml.YamlMapping, key: str) -> yaml.YamlEntry | None:
    """A key of a table may be written bare."""
    return node.entries.get(key) or node.entries.get(key.removeprefix("public."))
