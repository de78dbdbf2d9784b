"""The guardrails and the classes of writes that a human must approve (decision 3.6)."""

from typing import Final, Literal

from gatewayd.policy.decide.reasons import Refusal, at
from gatewayd.policy.file.model import Approvals, Guardrails
from gatewayd.sql.facts.statement import Statement

WriteClass = Literal["row_changes", "whole_table_writes", "schema_changes"]

INSTEAD: Final = {
    "block_unqualified_dml": "add a WHERE clause that names the rows meant, or an operator can set",
    "block_ddl": "an operator can make the change, or set",
    "block_dml": "only statements that change nothing may run here, unless an operator sets",
}
JOIN_COLUMNS: Final = "join on columns of both sides, or an operator can set"


def refuse(statement: Statement, guardrails: Guardrails) -> Refusal | None:
    """The first place in the statement that an active guardrail forbids."""
    on = {
        "block_unqualified_dml": guardrails.block_unqualified_dml,
        "block_ddl": guardrails.block_ddl,
        "block_dml": guardrails.block_dml,
    }
    for site in statement.sites:
        if on.get(site.rule, False):
            where = at(statement.sql, site.position)
            instead = JOIN_COLUMNS if site.found.startswith("MERGE that") else INSTEAD[site.rule]
            return Refusal(
                f"{site.found}{where} is blocked by guardrails.{site.rule}; {instead} guardrails.{site.rule}: false",
                "dangerous_statement",
            )
    return None


def held_class(statement: Statement, approvals: Approvals) -> WriteClass | None:
    """The class of write that makes this statement wait for a human, the gravest first; None when it need not wait.

    A plain EXPLAIN changes nothing and EXPLAIN ANALYZE of a write is never permitted, so neither waits. A locking read waits: its
    transaction may write, and so may the functions that it calls.
    """
    if statement.explains != "no":
        return None
    found: set[WriteClass] = {"row_changes"} if statement.locks else set()
    for site in statement.sites:
        if site.rule == "block_unqualified_dml":
            found.add("whole_table_writes")
        elif site.rule == "block_dml":
            found.add("row_changes")
    if statement.kind.startswith("TRUNCATE"):
        found = {"whole_table_writes"}
    elif statement.category == "relation write":
        found.add("schema_changes")
    elif statement.category == "row write" and not found:
        found.add("row_changes")
    return next((write_class for write_class in classes_held(approvals) if write_class in found), None)


def classes_held(approvals: Approvals) -> tuple[WriteClass, ...]:
    """The classes of writes that wait for a human, the gravest first."""
    asked: dict[WriteClass, bool | None] = {
        "whole_table_writes": approvals.whole_table_writes,
        "schema_changes": approvals.schema_changes,
        "row_changes": approvals.row_changes,
    }
    return tuple(write_class for write_class, own in asked.items() if (approvals.writes if own is None else own))
