"""Statements and what a policy is expected to make of them: what `policy test` holds in CI (decision 14). Pure.

A file of cases is YAML: a list of `{sql, expect, database?, tainted?}`, or a mapping of statement to verdict.
"""

from typing import Final, get_args

import msgspec

from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied, Held, PolicyRule
from gatewayd.policy.file import yaml
from gatewayd.policy.file.problem import Path, PolicyErrors, Problem, did_you_mean, dotted, quoted

VERDICTS: Final = ("allow", "deny", "held")
RULES: Final = tuple(rule for rule in get_args(PolicyRule) if not rule.startswith("approval"))
EXPECTED: Final = f"{', '.join(VERDICTS)}, or the rule that denies: {', '.join(RULES)}"
_TEXTS: Final = ("sql", "expect", "database")
_KEYS: Final = (*_TEXTS, "tainted")


class Case(msgspec.Struct, frozen=True):
    """`expect` is a verdict, a rule, or None where the question is open. `line` is that of the file, 0 where there is none."""

    sql: str
    expect: str | None = None
    database: str | None = None
    line: int = 0
    tainted: bool = False
    """Sent by an agent that has read a source of foreign text (docs/policy.md, Containment)."""


class CaseVerdict(msgspec.Struct, frozen=True):
    """What a decision says in the words of a case; `rule` is the denying one or what allowed it. `matched_rule` is what
    decided in the words of dry-run: a guardrail, a key of table_access."""

    decision: str
    rule: str
    reason: str
    tables: tuple[str, ...] = ()
    matched_rule: str = ""
    reads_source: str | None = None
    """The source of foreign text that it reads: the agent is tainted from then on."""

    def meets(self, expect: str) -> bool:
        """Whether the verdict, or its rule, is what was expected."""
        return expect == self.decision or (self.decision == "deny" and expect == self.rule)


def verdict_of(decision: Decision) -> CaseVerdict:
    """The decision in the words of a case."""
    match decision:
        case Allowed():
            rule = decision.matched_rule
            return CaseVerdict("allow", rule, "", decision.tables, rule, decision.reads_source)
        case Held():
            reason = f"waits for a human's approval (approvals.{decision.write_class})"
            allowed = decision.allowed
            rule = allowed.matched_rule
            return CaseVerdict("held", rule, reason, allowed.tables, rule, allowed.reads_source)
        case Denied():
            return CaseVerdict("deny", decision.policy_rule, decision.reason, decision.tables, decision.matched_rule)


def check_expected(text: str) -> str:
    """The verdict or rule. Raises ValueError with `found …; expected …`."""
    if text not in (*VERDICTS, *RULES):
        raise ValueError(f"found {quoted(text)}{did_you_mean(text, (*VERDICTS, *RULES))}; expected {EXPECTED}")
    return text


def load_cases(data: bytes) -> tuple[Case, ...]:
    """The cases of a file in their order. Raises PolicyErrors with everything that is wrong with it."""
    root, problems = yaml.parse(data)
    reader = _Cases()
    cases: list[Case] = []
    match root:
        case yaml.YamlSequence():
            cases = [case for index, item in enumerate(root.items) if (case := reader.item(item, (index,))) is not None]
        case yaml.YamlMapping():
            cases = [
                Case(sql, reader.text(entry.value, (sql,), is_verdict=True), None, entry.line)
                for sql, entry in root.entries.items()
            ]
        case _:
            reader.report((), 0, "found no cases; expected a list of {sql, expect}, or a mapping of statement to verdict")
    if problems or reader.problems:
        raise PolicyErrors([*problems, *reader.problems])
    return tuple(cases)


class _Cases:
    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def report(self, path: Path, line: int, message: str) -> None:
        self.problems.append(Problem(dotted(path), line, message))

    def item(self, node: yaml.YamlNode, path: Path) -> Case | None:
        if not isinstance(node, yaml.YamlMapping):
            self.report(path, node.line, "found no mapping; expected {sql: …, expect: …}")
            return None
        for key, entry in node.entries.items():
            if key not in _KEYS:
                self.report(
                    (*path, key), entry.line, f"found an unknown key{did_you_mean(key, _KEYS)}; expected {', '.join(_KEYS)}"
                )
        given = {
            key: self.text(node.entries[key].value, (*path, key), is_verdict=key == "expect")
            for key in _TEXTS
            if key in node.entries
        }
        for key in ("sql", "expect"):
            if key not in given:
                self.report(path, node.line, f"found no key {key}; expected sql and expect")
        tainted = self.flag(node.entries["tainted"].value, (*path, "tainted")) if "tainted" in node.entries else False
        return Case(given.get("sql") or "", given.get("expect"), given.get("database"), node.line, tainted)

    def flag(self, node: yaml.YamlNode, path: Path) -> bool:
        if isinstance(node, yaml.YamlScalar) and isinstance(node.value, bool):
            return node.value
        self.report(path, node.line, "found no boolean; expected true or false")
        return False

    def text(self, node: yaml.YamlNode, path: Path, *, is_verdict: bool) -> str | None:
        if not isinstance(node, yaml.YamlScalar) or not isinstance(node.value, str):
            self.report(path, node.line, f"found no text; expected {EXPECTED if is_verdict else 'text'}")
            return None
        if is_verdict:
            try:
                check_expected(node.value)
            except ValueError as error:
                self.report(path, node.line, str(error))
        return node.value
