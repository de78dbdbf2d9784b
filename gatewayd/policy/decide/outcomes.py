"""The three ways a decision can go, and the Permit that execution asks for.

Only `policy/decide/decision.py` makes an Allowed, only `audit/service.py` makes a Permit (a test reads the code and holds this),
so "nothing runs undecided or unaudited" is a rule of the types as well.
"""

from typing import Literal

import msgspec

from gatewayd.sql.facts.statement import Statement

PolicyRule = Literal[
    "table_access",
    "multi_statement",
    "dangerous_statement",
    "parse_error",
    "column_masking",
    "approval_denied",
    "approval_expired",
    "internal_error",
]


class Allowed(msgspec.Struct, frozen=True):
    """The statement may run, unchanged or as its masks rewrite it."""

    statement: Statement
    tables: tuple[str, ...]  # tables_touched: schema-qualified, de-duplicated, in order of appearance, at most 64
    matched_rule: str  # what decided it, in the words of dry-run (decision 7)
    needs_shield: bool = False
    """Hidden rows are within its reach: it runs only as `shields/` rewrites it, and its error texts are shortened."""
    reads_source: str | None = None
    """The source of foreign text that it reads, or may read: the grant is tainted before its rows leave."""
    is_contained: bool = False
    """Decided as for a tainted grant."""


class Denied(msgspec.Struct, frozen=True):
    """The statement must not run; `reason` is for the agent."""

    policy_rule: PolicyRule
    reason: str
    statement_type: str | None = None
    tables: tuple[str, ...] = ()
    matched_rule: str = ""


class Held(msgspec.Struct, frozen=True):
    """An allowed write that a human must approve first (`approvals`)."""

    allowed: Allowed
    write_class: Literal["row_changes", "whole_table_writes", "schema_changes"]


Decision = Allowed | Denied | Held


class Permit(msgspec.Struct, frozen=True):
    """An Allowed whose ATTEMPTED and DECIDED rows are committed."""

    allowed: Allowed
    query_id: str
    audit_id: str  # id of the DECIDED row
