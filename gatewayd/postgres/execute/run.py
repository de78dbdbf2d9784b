"""execute(): an audited, allowed statement runs on a session of the pool; the only way to the database (decision 11)."""

from collections.abc import Hashable
from typing import Final

import msgspec

from gatewayd.catalog import Catalog
from gatewayd.masking.plan import Rewritten
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.outcomes import Permit
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute.displayed_columns import reads_catalog_alone, shown
from gatewayd.postgres.execute.error_words import told_less
from gatewayd.postgres.execute.evidence import Evidence
from gatewayd.postgres.execute.guard import ask
from gatewayd.postgres.execute.own_code import may_run_own_code
from gatewayd.postgres.execute.result import UNMASKABLE, CatalogChanged, ExecutionFailed, Result
from gatewayd.postgres.execute.row_bound import RowBound
from gatewayd.postgres.execute.run_read import compose, read, refused
from gatewayd.postgres.execute.run_show import show
from gatewayd.postgres.execute.run_write import write
from gatewayd.postgres.execute.wrap import NotWrapped, Sent, TooLargeToWrap, wrap_query
from gatewayd.postgres.pool import Pool
from gatewayd.sql.facts.statement import Statement

HELD_BYTES: Final = 12 * 1024 * 1024
"""What may be held of one answer besides twice `max_bytes`: a row is kept until it is whole, and values under keyed masks with
it (LARGEST_TEXT_BYTES)."""


async def execute(
    pool: Pool,
    permit: Permit,
    limits: Limits,
    catalog: Catalog,
    masking: Rewritten | PostExec | None = None,
    caller: Hashable = None,
    *,
    rows_at_most: int | None = None,
    evidence: Evidence | None = None,
) -> Result:
    """Run the statement of `permit` within `limits`: rewritten, or with masks put over its rows, as `masking` says; `caller`
    is whose share of the pool its session counts in. A write that touches more than `rows_at_most` rows, where that is given, is
    rolled back. Raises ExecutionFailed; CatalogChanged when `evidence` does not hold after the statement has run: nothing is
    told then, and a write is undone.

    Cancelled, PostgreSQL has stopped working on the statement (or its session is closed) before trio.Cancelled leaves, and a
    write has not taken effect. A COMMIT that has begun is not cancelled: its result is returned.
    """
    instead = masking if isinstance(masking, Rewritten) else None
    over = masking if isinstance(masking, PostExec) else None
    if permit.allowed.needs_shield and (masking is None or (over is not None and over.instead is None)):
        raise AssertionError("an unshielded statement came to be executed")
    statement = instead.statement if instead is not None else (over and over.instead) or permit.allowed.statement
    parameters = () if instead is None else instead.parameters
    ordered = masking is not None and masking.keeps_heap_order
    connection = await pool.acquire(limits, caller)
    connection.hold_at_most(HELD_BYTES + 2 * limits.max_bytes)
    try:
        match statement.form:
            case "query" if not statement.locks:
                try:
                    columns = await shown(connection, statement, catalog, over)
                except ExecutionFailed as failure:
                    raise await refused(connection, failure, evidence) from failure
                if reads_catalog_alone(statement, catalog):
                    columns = msgspec.structs.replace(columns, is_planned_apart=True)
                key = limits, columns
                sent = instead.composed.get(key) if instead is not None else None
                if not isinstance(sent, Sent):
                    sent = await compose(wrap_query, statement, limits, columns)
                    if instead is not None:
                        instead.composed.clear()  # one: what is remembered is bounded
                        instead.composed[key] = sent
                undone = may_run_own_code(statement, catalog)
                return await read(
                    connection, sent, limits, parameters, over, undone=undone, heap_order=ordered, evidence=evidence
                )
            case "utility" if statement.returns_rows:
                return await show(connection, statement, limits, evidence, undone=may_run_own_code(statement, catalog))
            case _:
                bound = rows_at_most if rows_at_most is None else RowBound(connection, statement, catalog, rows_at_most)
                holds = None if evidence is None else _Write(pool, connection, evidence, limits, caller, statement)
                return await write(
                    connection, statement, limits, catalog, parameters, over, heap_order=ordered, bound=bound, holds=holds
                )
    except TooLargeToWrap:
        raise ExecutionFailed(
            "54000", "the statement is too large to be limited together with its WITH queries; send it in several smaller ones"
        ) from None
    except NotWrapped:
        raise ExecutionFailed("XX000", "the statement could not be wrapped without changing it; nothing ran") from None
    except ExecutionFailed as failure:
        if masking is None or failure.sqlstate == UNMASKABLE or isinstance(failure, CatalogChanged):
            raise
        if instead is not None:
            raise told_less(failure, instead.edits, instead.earlier_edits) from None
        raise told_less(failure, over.edits if over is not None else ()) from None
    finally:
        connection.hold_at_most(None)
        pool.release(connection, caller)


class _Write:
    """The guard of a write, as `run_write.Holds`."""

    def __init__(
        self, pool: Pool, connection: Connection, evidence: Evidence, limits: Limits, caller: Hashable, statement: Statement
    ) -> None:
        self._pool = pool
        self._connection = connection
        self._evidence = evidence
        self._limits = limits
        self._caller = caller
        self._defines = statement.category == "relation write"

    async def __call__(self, *, in_transaction: bool) -> None:
        """What defines relations changes the very rows that are asked for, and a trigger may make a partition. Such changes are
        seen by their own transaction alone, so another session is asked where this one says no."""
        if not (in_transaction and self._defines):
            try:
                await ask(self._connection, self._evidence)
                return
            except CatalogChanged:
                if not in_transaction:
                    raise
        other = await self._pool.acquire(self._limits, self._caller)
        try:
            await ask(other, self._evidence)
        finally:
            self._pool.release(other, self._caller)
