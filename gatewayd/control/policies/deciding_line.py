"""The line of a policy that decided a statement. Pure."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from gatewayd.policy.file import yaml
from gatewayd.policy.file.name_forms import TABLE
from gatewayd.policy.tools.expect import CaseVerdict

_TABLE: Final = re.compile(r"table:(.+)→[a-z_]+")
_GUARDRAIL: Final = re.compile(r"\bguardrails\.(block_[a-z_]+)")
_CLASS: Final = re.compile(r"\(approvals\.([a-z_]+)\)")


class PolicyLine(msgspec.Struct, frozen=True):
    """`line` counts from 1; 0 where the text does not write it, because a default decided. `path` is dotted."""

    line: int
    path: str
    text: str = ""


def deciding_line(text: str, database: str, verdict: CaseVerdict) -> PolicyLine | None:
    """None where no key of the policy decided: a rule that no policy can change."""
    root, _ = yaml.parse(text)
    entry = _database(root, database)
    if entry is None:
        return None
    place = _place(entry, verdict)
    if place is None:
        return None
    path, line = place
    lines = text.splitlines()
    return PolicyLine(line, ".".join(path), lines[line - 1].strip() if 0 < line <= len(lines) else "")


def _place(entry: yaml.YamlMapping, verdict: CaseVerdict) -> tuple[Sequence[str], int] | None:
    if verdict.rule == "column_masking":
        return _masks(entry, verdict)
    if verdict.decision == "held" and (held := _CLASS.search(verdict.reason)):
        for key in (held[1], "writes"):
            if line := _line(entry, "approvals", key):
                return ("approvals", key), line
        return ("approvals", "writes"), _line(entry, "approvals")
    if verdict.rule == "dangerous_statement" and (guardrail := _GUARDRAIL.search(verdict.reason)):
        return ("guardrails", guardrail[1]), _line(entry, "guardrails", guardrail[1])
    if table := _TABLE.fullmatch(verdict.matched_rule):
        return _table_key(entry, table[1])
    if verdict.matched_rule.startswith("default:"):
        return ("table_access", "default"), _line(entry, "table_access", "default")
    return None


def _masks(entry: yaml.YamlMapping, verdict: CaseVerdict) -> tuple[Sequence[str], int]:
    masks = _under(entry, "column_masks")
    for key, value in masks.entries.items() if masks is not None else ():
        if _spelled(key) in verdict.tables:
            return ("column_masks", key), value.line
    return ("column_masks",), _line(entry, "column_masks")


def _table_key(entry: yaml.YamlMapping, name: str) -> tuple[Sequence[str], int] | None:
    access = _under(entry, "table_access")
    tables = _under(access, "tables") if access is not None else None
    for key, value in tables.entries.items() if tables is not None else ():
        if _spelled(key) == name:
            return ("table_access", "tables", key), value.line
    return None


def _spelled(key: str) -> str:
    """The key with its schema, as decisions name it."""
    try:
        return ".".join(TABLE.parse(key))  # type: ignore[arg-type]  # a pair of texts
    except ValueError:
        return key


def _database(root: yaml.YamlNode | None, name: str) -> yaml.YamlMapping | None:
    entries = root.entries.get("databases") if isinstance(root, yaml.YamlMapping) else None
    for item in entries.value.items if entries and isinstance(entries.value, yaml.YamlSequence) else ():
        found = item.entries.get("name") if isinstance(item, yaml.YamlMapping) else None
        if found is not None and isinstance(found.value, yaml.YamlScalar) and found.value.value == name:
            return item if isinstance(item, yaml.YamlMapping) else None
    return None


def _under(node: yaml.YamlMapping, key: str) -> yaml.YamlMapping | None:
    entry = node.entries.get(key)
    return entry.value if entry is not None and isinstance(entry.value, yaml.YamlMapping) else None


def _line(node: yaml.YamlMapping, *path: str) -> int:
    """Of the last key of the path, 0 where it is not written."""
    for key in path[:-1]:
        below = _under(node, key)
        if below is None:
            return 0
        node = below
    entry = node.entries.get(path[-1])
    return entry.line if entry is not None else 0
