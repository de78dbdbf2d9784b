"""Writes: BEGIN READ WRITE … COMMIT around one statement, on one session (decision 11).

The transaction belongs to the gateway: no statement that policy allows can end it, and the session's status is looked at before
COMMIT. Success is said only after COMMIT, where deferred constraints speak. Cancelled before COMMIT, nothing stays; COMMIT itself
is not cancelled, because its outcome must be known.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import trio

from gatewayd.catalog import Catalog
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute.copy_rows import CopyRows
from gatewayd.postgres.execute.displayed_columns import shown
from gatewayd.postgres.execute.failure import CANCELLED, CONNECTION_LOST, FAILURES, READ_ONLY, failed, outcome_unknown
from gatewayd.postgres.execute.result import UNMASKABLE, CatalogChanged, ExecutionFailed, Result
from gatewayd.postgres.execute.row_bound import RowBound
from gatewayd.postgres.execute.run_read import HEAP_ORDER, compose
from gatewayd.postgres.execute.wrap import Sent, as_written, wrap_below_with, wrap_query, wrap_returning
from gatewayd.sql.facts.statement import Statement


class Holds(Protocol):
    """Raises CatalogChanged where what was decided rests on something that is not so any more; ExecutionFailed where nobody can
    tell. `in_transaction`: the statement's own changes are there, uncommitted."""

    async def __call__(self, *, in_transaction: bool) -> None: ...


async def write(
    connection: Connection,
    statement: Statement,
    limits: Limits,
    catalog: Catalog,
    parameters: Sequence[object] = (),
    masking: PostExec | None = None,
    *,
    heap_order: bool = False,
    bound: RowBound | None = None,
    holds: Holds | None = None,
) -> Result:
    """Run a write, or a SELECT that locks rows. Raises ExecutionFailed; 08007 when the outcome of COMMIT is unknown.

    What touches more rows than `bound` allows is rolled back. `holds` is asked before COMMIT, and after a failure.
    """

    async def run() -> Result:
        if heap_order:
            await connection.execute(HEAP_ORDER)
        if not statement.returns_rows:
            return await _without_rows(connection, as_written(statement), parameters)
        columns = await shown(connection, statement, catalog, masking, in_transaction=True)
        if statement.form == "query":
            wrap = wrap_query
        elif statement.kind == "SELECT":
            wrap = wrap_below_with
        else:
            wrap = wrap_returning
        sent = await compose(wrap, statement, limits, columns)
        affects = wrap is wrap_returning
        if parameters:
            return await _bound(connection, sent.bindable(), limits, parameters, affects=affects)
        return await _with_rows(connection, sent, limits, masking, affects=affects)

    async def run_bounded() -> Result:
        if bound is None:
            return await run()
        await bound.begin()
        result = await run()
        await bound.check(result.rows_affected)
        return result

    return await _in_transaction(connection, run_bounded, holds)


async def _in_transaction(connection: Connection, run: Callable[[], Awaitable[Result]], holds: Holds | None) -> Result:
    has_begun = False
    try:
        await connection.begin("READ WRITE")
        has_begun = True
        result = await run()
        if not connection.is_in_transaction:
            raise ExecutionFailed("25P01", "the statement ended the gateway's transaction; its outcome is unknown")
        if holds is not None:
            await holds(in_transaction=True)
    except (*FAILURES, ExecutionFailed) as error:
        said = failed(error)
        connection.leads_to_standby = not has_begun or said.sqlstate == READ_ONLY
        await connection.rollback()
        if holds is not None and connection.is_clean and not isinstance(said, CatalogChanged):
            await holds(in_transaction=False)
        raise said from (None if said is error else error)
    await _commit(connection)
    return result


async def _commit(connection: Connection) -> None:
    await trio.lowlevel.checkpoint_if_cancelled()  # the last moment at which nothing has happened
    try:
        tag = await connection.commit()
    except FAILURES as error:
        said = failed(error)
        if said.sqlstate == CONNECTION_LOST:
            raise outcome_unknown("the connection to the database was lost") from error
        raise said from error
    except ExecutionFailed as silent:
        if silent.sqlstate == CANCELLED:
            raise outcome_unknown("the database did not answer") from silent
        raise
    if tag != "COMMIT":
        raise ExecutionFailed("40000", "the database rolled the transaction back instead of committing it")


async def _without_rows(connection: Connection, sent: Sent, parameters: Sequence[object]) -> Result:
    try:
        _, tag = await connection.fetch_tagged(sent.text, *parameters)
    except FAILURES as error:
        raise failed(error, sent.position) from error
    return Result(rows_affected=_count(tag))


async def _with_rows(connection: Connection, sent: Sent, limits: Limits, masking: PostExec | None, *, affects: bool) -> Result:
    rows = CopyRows(limits.max_rows, limits.max_bytes, masking.row_mask() if masking is not None else None)
    try:
        tag = await connection.copy(sent.text, rows.feed)
    except FAILURES as error:
        raise failed(error, sent.position) from error
    if rows.withheld is not None:  # before COMMIT: a write is never made and then said to be refused
        raise ExecutionFailed(UNMASKABLE, "the rows to return could not be masked, so nothing was written")
    return Result(
        rows=tuple(rows.rows),
        rows_returned=len(rows.rows),
        rows_affected=_count(tag) if affects else None,
        truncated=rows.is_truncated,
    )


async def _bound(connection: Connection, sent: Sent, limits: Limits, parameters: Sequence[object], *, affects: bool) -> Result:
    try:
        records, tag = await connection.fetch_tagged(sent.text, *parameters)
    except FAILURES as error:
        raise failed(error, sent.position) from error
    rows: list[bytes] = []  # NULL stands for one past `max_bytes`, and for all that follow
    for (row,) in records[: limits.max_rows]:
        if row is None:
            break
        rows.append(row.encode())
    return Result(
        rows=tuple(rows),
        rows_returned=len(rows),
        rows_affected=_count(tag) if affects else None,
        truncated=len(rows) < len(records),
    )


def _count(tag: str) -> int | None:
    """`INSERT 0 5`, `UPDATE 5`, `SELECT 5` (CREATE TABLE AS), `COPY 5` -> 5; `CREATE TABLE` -> None."""
    last = tag.rpartition(" ")[2]
    return int(last) if last.isdigit() else None
