"""Reads: one round trip, nothing but COPY of the wrapped statement in a READ ONLY transaction of its own (decision 11)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from gatewayd.fairness import large_texts
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute.copy_rows import CopyRows
from gatewayd.postgres.execute.evidence import Evidence
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.execute.guard import ask, guard, spoke
from gatewayd.postgres.execute.result import ExecutionFailed, Result
from gatewayd.postgres.execute.wrap import AS_THEY_ARE, Sent, Shown
from gatewayd.sql.facts.statement import Statement

HEAP_ORDER: Final = "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;"
"""Rows come as they lie, also by way of an index (a bitmap scan), never in the order of an index that holds a masked column."""

_ALL_IN_ONE: Final = (
    "SELECT pg_catalog.count(*), pg_catalog.convert_to(pg_catalog.string_agg(b.j, E'\\001'), 'UTF8') FROM (",
    ") AS b (j)",
)
"""How many rows there are, and those within `max_bytes` in one value: asyncpg makes an object of each row that arrives. Bytes,
because it would decode a text for nobody."""
_BETWEEN_ROWS: Final = b"\1"  # no JSON text holds such a character


async def read(
    connection: Connection,
    sent: Sent,
    limits: Limits,
    parameters: Sequence[object] = (),
    masking: PostExec | None = None,
    *,
    undone: bool = False,
    heap_order: bool = False,
    evidence: Evidence | None = None,
) -> Result:
    """Run a wrapped query. Session settings make its transaction READ ONLY; under a pooler the text says it itself.

    `undone` rolls the transaction back, for a query that may run code which changes settings of the session. Raises
    CatalogChanged where `evidence` does not hold any more when the query has ended, however it ended.
    """
    if parameters:
        bound = sent.bindable().behind(*_ALL_IN_ONE)
        return await _read_bound(connection, bound, limits, parameters, undone, heap_order, evidence)
    begins = connection.pins_locally or heap_order or undone
    end = "ROLLBACK" if undone else "COMMIT"
    if begins:
        order = HEAP_ORDER if heap_order else ""
        sent = sent.behind(connection.begin_text("READ ONLY") + order, f"; {end}" if evidence is None else "")
    if evidence is not None:
        sent = sent.behind("", f";{guard(connection, evidence)}")
    rows = CopyRows(limits.max_rows, limits.max_bytes, masking.row_mask() if masking is not None else None)
    try:
        tag = await connection.copy(sent.text, rows.feed)
        if evidence is not None and begins:
            await connection.execute(end)
    except FAILURES as error:
        raise await refused(connection, failed(error, sent.position), evidence) from error
    if evidence is not None:
        spoke(connection, tag)
    return Result(rows=tuple(rows.rows), rows_returned=len(rows.rows), truncated=rows.is_truncated, withheld=rows.withheld)


async def _read_bound(
    connection: Connection,
    sent: Sent,
    limits: Limits,
    parameters: Sequence[object],
    undone: bool,
    heap_order: bool,
    evidence: Evidence | None,
) -> Result:
    begins = connection.pins_locally or undone or heap_order
    try:
        if begins:
            await connection.execute(connection.begin_text("READ ONLY") + (HEAP_ORDER if heap_order else ""))
        ((count, text),), _ = await connection.fetch_tagged(sent.text, *parameters)
        if evidence is not None:
            await ask(connection, evidence)
        if begins:
            await connection.execute("ROLLBACK" if undone else "COMMIT")
    except FAILURES as error:
        raise await refused(connection, failed(error, sent.position), evidence) from error
    except ExecutionFailed:  # the guard's
        await connection.rollback()
        raise
    rows = tuple(text.split(_BETWEEN_ROWS)[: limits.max_rows]) if text is not None else ()
    return Result(rows=rows, rows_returned=len(rows), truncated=len(rows) < count)


async def refused(connection: Connection, failure: ExecutionFailed, evidence: Evidence | None) -> ExecutionFailed:
    """What is told of a failed statement, its transaction ended: the planner itself can print a constant of a view that was just
    put in place of the one that was decided about, so the guard is asked first."""
    await connection.rollback()
    if evidence is not None and connection.is_clean:
        try:
            await ask(connection, evidence)
        except ExecutionFailed as unproved:
            return unproved
    return failure


async def compose(
    wrap: Callable[[Statement, Limits, Shown], Sent], statement: Statement, limits: Limits, shown: Shown = AS_THEY_ARE
) -> Sent:
    """Call one of the composers of `wrap.py`; in a worker thread when the text is so long that others would wait for it."""
    if large_texts.is_large(statement.sql):
        return await large_texts.in_thread(partial(wrap, statement, limits, shown))
    return wrap(statement, limits, shown)
