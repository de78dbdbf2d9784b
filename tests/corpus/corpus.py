"""The corpus as typed values: statements that must be refused and statements that must pass, by family (README.md beside this).

Reads the YAML files, decides a row, and says in words what differs from what the row expects.
"""

import json
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec
import yaml

from gatewayd.catalog import Catalog, unread
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy
from gatewayd.sql.facts.analyze import analyze

HERE: Final = Path(__file__).parent


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What both kinds of rows have. `statement` as sent, unless one of the three fields below it changes that."""

    statement: str
    policy: str = ""  # a name of policies.yaml; "": the file's
    catalog: Literal["read", "unread"] = "read"
    tainted: bool = False  # sent by an agent that has read a source of foreign text before
    escaped: bool = False  # the statement is the inside of a JSON string: for NUL, lone surrogates, control characters
    repeats: dict[str, int] = {}  # each of these pieces of the statement stands there so many times

    @property
    def sql(self) -> str:
        text: str = json.loads(f'"{self.statement}"', strict=False) if self.escaped else self.statement
        for piece, times in self.repeats.items():
            text = text.replace(piece, piece * times)
        return text


class Deny(Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    rule: str = ""  # the policy_rule; "": the file's
    why: str  # what it would reach, and where it was seen first (a CVE, a project's issue)
    effect: str | dict[str, str] = ""  # how the danger shows itself without us (test_corpus_effects.py); "": the file's
    reason: str = ""  # the golden text, written by `python -m tests.corpus --write` and reviewed by a person


class Allow(Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: str = ""  # who sends it: a tool, a benchmark, a manual page; for a neighbour what it stands beside
    needs: str = ""  # why the embedded server cannot run it (an extension that is not there); "": a test runs it
    server: Literal[0, 16, 18] = 0  # the one version that has what it names; 0: it runs on both


class Part(Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    why: str  # what it would show
    effect: str | dict[str, str] = ""


class PartFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    family: str
    policy: str = ""
    effect: str | dict[str, str] = ""
    rows: list[Part]


class DenyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    family: str  # what these rows have in common, in a few words
    policy: str = ""
    rule: str = ""
    effect: str | dict[str, str] = ""
    rows: list[Deny]


class AllowFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    family: str
    policy: str = ""
    source: str = ""
    database: Literal["sample", "honest"] = "sample"  # schema.sql alone, or with schema_honest.sql over it
    rows: list[Allow]


@cache
def policies() -> dict[str, Policy]:
    found: dict[str, Policy] = {}
    for name, sections in yaml.safe_load((HERE / "policies.yaml").read_text(encoding="utf-8")).items():
        single = load_policies(yaml.safe_dump(sections, allow_unicode=True), {}).single
        assert single is not None
        found[name] = single
    return found


def deny_files() -> dict[Path, DenyFile]:
    """By path, the file's own values filled into its rows."""
    return {path: _deny(_read(path, DenyFile)) for path in sorted((HERE / "deny").glob("*.yaml"))}


def part_files() -> dict[Path, PartFile]:
    """What is answered in part: hidden things are left out of the answer."""
    found = {}
    for path in sorted((HERE / "in_part").glob("*.yaml")):
        file = _read(path, PartFile)
        rows = [
            msgspec.structs.replace(row, policy=row.policy or file.policy, effect=row.effect or file.effect) for row in file.rows
        ]
        found[path] = msgspec.structs.replace(file, rows=rows)
    return found


def deny_file(path: Path) -> DenyFile:
    return _deny(_read(path, DenyFile))


def allow_files() -> dict[Path, AllowFile]:
    return {path: _allow(_read(path, AllowFile)) for path in sorted((HERE / "allow").glob("*.yaml"))}


def decided(row: Row, catalog: Catalog) -> Decision:
    used = catalog if row.catalog == "read" else unread(catalog.database)
    return decide(analyze(row.sql), policies()[row.policy], used, tainted=row.tainted)


def mismatch(row: Row, catalog: Catalog) -> str:
    """What is wrong with the decision on a row; empty when it is as the row says."""
    decision = decided(row, catalog)
    if isinstance(row, Allow):
        return "" if isinstance(decision, Allowed) else f"must pass, but: {_said(decision)}"
    assert isinstance(row, Deny)
    if not isinstance(decision, Denied):
        return f"must be denied by {row.rule}, but passes"
    if decision.policy_rule != row.rule:
        return f"must be denied by {row.rule}, but: {_said(decision)}"
    return "" if decision.reason == row.reason else f"another reason than the golden one: {decision.reason}"


def _said(decision: Decision) -> str:
    return f"{decision.policy_rule}: {decision.reason}" if isinstance(decision, Denied) else type(decision).__name__.lower()


_File = TypeVar("_File", DenyFile, AllowFile, PartFile)


def _read(path: Path, kind: type[_File]) -> _File:
    try:
        return msgspec.convert(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader), kind)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ValueError(f"{path.name}: {error}") from error


def _deny(file: DenyFile) -> DenyFile:
    rows = [
        msgspec.structs.replace(
            row, policy=row.policy or file.policy, rule=row.rule or file.rule, effect=row.effect or file.effect
        )
        for row in file.rows
    ]
    return msgspec.structs.replace(file, rows=rows)


def _allow(file: AllowFile) -> AllowFile:
    rows = [msgspec.structs.replace(row, policy=row.policy or file.policy, source=row.source or file.source) for row in file.rows]
    return msgspec.structs.replace(file, rows=rows)
