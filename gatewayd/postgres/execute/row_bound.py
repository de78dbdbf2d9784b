"""RowBound: how many rows an approved write may touch, counted by PostgreSQL itself before COMMIT (docs/approvals.md, Bound).

Rows touched are the growth of `n_tup_ins + n_tup_upd + n_tup_del` over all user tables between BEGIN and COMMIT: rows of WITH
queries, triggers and cascades count too. The command tag was the other choice: it tells of one statement and one table.
"""

from typing import Final

from gatewayd.catalog import Catalog, Relation
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.sql.facts.statement import Statement

APPROVAL_BOUND: Final = "approval_bound"
"""Stands for the SQLSTATE of a write that was rolled back, or not begun, for the bound of its approval."""

# A foreign table has no such counters; a write to one, also by a trigger, holds this lock until the transaction ends.
_TOUCHED: Final = """
SELECT pg_catalog.current_setting('track_counts'), (
    SELECT coalesce(pg_catalog.sum(s.n_tup_ins + s.n_tup_upd + s.n_tup_del), 0)::pg_catalog.int8
    FROM pg_catalog.pg_stat_xact_user_tables AS s
), EXISTS (
    SELECT FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_class AS c ON c.oid = l.relation
    WHERE l.pid = pg_catalog.pg_backend_pid() AND l.mode = 'RowExclusiveLock' AND c.relkind = 'f'
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
)
"""


class RowBound:
    """Of one write in its transaction on `connection`: `begin` before the statement, `check` behind it. Both raise
    ExecutionFailed, upon which the caller rolls back."""

    def __init__(self, connection: Connection, statement: Statement, catalog: Catalog, at_most: int) -> None:
        self._connection = connection
        self._at_most = at_most
        self._before = 0
        self._refusal = _uncountable(statement, catalog)

    async def begin(self) -> None:
        """Reads the count of changed rows before the statement. Raises ExecutionFailed if the bound cannot be enforced."""
        if self._refusal:
            raise _refused(self._refusal)
        self._before = await self._touched()

    async def check(self, tag: int | None) -> None:
        """`tag` is what the command tag counts: never more than was touched, but for tables that are truncated behind it."""
        touched = max(await self._touched() - self._before, tag or 0)
        if touched > self._at_most:
            raise ExecutionFailed(
                APPROVAL_BOUND,
                f"the write touched {touched} rows and at most {self._at_most} were approved; it was rolled back and nothing has "
                "changed",
            )

    async def _touched(self) -> int:
        try:
            [(tracks, touched, is_foreign)] = await self._connection.fetch(_TOUCHED)
        except FAILURES as error:
            raise failed(error) from error
        if tracks != "on":
            raise _refused("the database does not count rows (track_counts is off)")
        if is_foreign:
            raise _refused("it writes to a foreign table, whose rows the database does not count")
        return int(touched)


def _refused(why: str) -> ExecutionFailed:
    return ExecutionFailed(APPROVAL_BOUND, f"the approval bounds the rows that may be touched, and {why}; nothing has changed")


def _uncountable(statement: Statement, catalog: Catalog) -> str:
    """Why the rows of this statement cannot be counted; empty where they can."""
    if statement.category == "relation write" or statement.kind.startswith("TRUNCATE"):
        return "a statement of this kind touches more than rows"
    for use in statement.relations:
        relation = catalog.relation(use.schema or "public", use.name) if use.writes else None
        if relation is not None and _reaches_foreign(relation, catalog):
            return "it writes to a foreign table, whose rows the database does not count"
    return ""


def _reaches_foreign(relation: Relation, catalog: Catalog) -> bool:
    children = (catalog.by_oid.get(oid) for oid in relation.children)
    return relation.kind == "foreign table" or any(child is not None and _reaches_foreign(child, catalog) for child in children)
