"""The words of a refusal (decision 3.8): names as SQL writes them, places as line and column, settings as the policy has them.

A reason is shown to agents and operators and is logged, so everything from the statement is escaped and bounded in it.
"""

from typing import Final

import msgspec

from gatewayd.policy.file.model import Level
from gatewayd.sql.facts.statement import RelationUse

REASON_CHARACTERS: Final = 700
NAME_CHARACTERS: Final = 63  # PostgreSQL's own bound, in bytes


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Why one rule says no, what to do about it, and what dry-run calls the deciding rule."""

    why: str
    matched_rule: str = "table_access"
    remedy: str = ""

    @property
    def reason(self) -> str:
        return f"{self.why}; {self.remedy}" if self.remedy else self.why


def shown(name: str) -> str:
    """One identifier as SQL would write it, control characters escaped, cut to PostgreSQL's length."""
    cut = name if len(name) <= NAME_CHARACTERS else name[:NAME_CHARACTERS] + "…"
    if cut.isidentifier() and cut == cut.lower():
        return cut
    visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return '"' + visible.replace('"', '""') + '"'


def dotted(*parts: str | None) -> str:
    """A qualified name for a message, without the parts that are None."""
    return ".".join(shown(part) for part in parts if part is not None)


def written(use: RelationUse) -> str:
    """The relation as the statement names it."""
    return dotted(use.database, use.schema, use.name)


def setting(schema: str, name: str, level: Level) -> str:
    """The line of the policy file that would change a relation's level."""
    return f'table_access.tables."{_key(schema, name)}": {level}'


def allow(schema: str, name: str) -> str:
    """The entry of the policy file that would let agents call a function."""
    return f'functions.allow: ["{_key(schema, name)}"]'


def _key(schema: str, name: str) -> str:
    """A policy file cannot spell every name (`names.py`); `schema.*` covers the ones that it cannot."""
    if set(name) & set('."*') or not name.isprintable() or name != name.strip():
        name = "*"
    return f"{schema}.{name}" if schema.isprintable() and '"' not in schema else "schema.*"


def at(sql: str, position: int) -> str:
    """` at line L, column C` of a byte offset, both counted from 1 and columns in characters; empty for -1."""
    if position < 0:
        return ""
    before = sql.encode()[:position].decode(errors="replace")
    newline = before.rfind("\n")
    return f" at line {before.count(chr(10)) + 1}, column {len(before) - newline}"


def bounded(reason: str) -> str:
    """The reason, cut to the longest that is recorded and sent."""
    return reason if len(reason) <= REASON_CHARACTERS else reason[: REASON_CHARACTERS - 1] + "…"
