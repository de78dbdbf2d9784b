"""Reads: one round trip, nothing but COPY of the wrapped statement in a READ ONLY transaction of its own (contract 11)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from gatewayd import large_texts
from gatewayd.catalog import Catalog
from gatewayd.masking.results import PostExec, RowMask
from gatewayd.policy.model import Limits
from gatewayd.postgres import names
from gatewayd.postgres.connection import Connection
from gatewayd.postgres.failure import FAILURES, failed
from gatewayd.postgres.result import Result
from gatewayd.postgres.rows import CopyRows
from gatewayd.postgres.wrap import Sent, as_written
from gatewayd.sql.parse import is_large
from gatewayd.sql.statement import Statement

HEAP_ORDER: Final = "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;"
"""Rows come as they lie, also by way of an index (a bitmap scan), never in the order of an index that holds a masked column."""

_AS_BYTES: Final = ("SELECT pg_catalog.convert_to(b.j, 'UTF8') FROM (", ") AS b (j)")
"""A row arrives as the bytes that the answer needs: asyncpg would decode a text for nobody."""


async def read(
    connection: Connection,
    sent: Sent,
    limits: Limits,
    parameters: Sequence[object] = (),
    masking: PostExec | None = None,
    *,
    undone: bool = False,
    heap_order: bool = False,
) -> Result:
    """Run a wrapped query. Session settings make its transaction READ ONLY; under a pooler the text says it itself.

    `undone` rolls the transaction back, for a query that may run code which changes settings of the session.
    """
    if parameters:
        return await _read_bound(
            connection, sent.bindable().behind(*_AS_BYTES), limits, parameters, undone=undone, heap_order=heap_order
        )
    if connection.pins_locally or heap_order or undone:
        order = HEAP_ORDER if heap_order else ""
        sent = sent.behind(connection.begin_text("READ ONLY") + order, "; ROLLBACK" if undone else "; COMMIT")
    rows = CopyRows(limits.max_rows, limits.max_bytes, mask_of(masking))
    try:
        await connection.copy(sent.text, rows.feed)
    except FAILURES as error:
        await connection.rollback()
        raise failed(error, sent.position) from error
    return Result(rows=tuple(rows.rows), rows_returned=len(rows.rows), truncated=rows.is_truncated, withheld=rows.withheld)


def mask_of(masking: PostExec | None) -> Callable[[Sequence[bytes]], list[bytes]] | None:
    return RowMask(masking).batch if masking is not None and masking.transforms else None


def masked_names(masking: PostExec | None, names_used: Sequence[str] | None) -> tuple[str, ...]:
    """The masked output columns under the names that the wrapper knows them by: their bytes must not count."""
    if masking is None:
        return ()
    return tuple(name if names_used is None else names_used[place] for place, name, _ in masking.transforms)


async def _read_bound(
    connection: Connection, sent: Sent, limits: Limits, parameters: Sequence[object], *, undone: bool, heap_order: bool
) -> Result:
    begins = connection.pins_locally or undone or heap_order
    try:
        if begins:
            await connection.execute(connection.begin_text("READ ONLY") + (HEAP_ORDER if heap_order else ""))
        records, _ = await connection.fetch_tagged(sent.text, *parameters)
        if begins:
            await connection.execute("ROLLBACK" if undone else "COMMIT")
    except FAILURES as error:
        await connection.rollback()
        raise failed(error, sent.position) from error
    rows, truncated = bound_rows(records, limits)
    return Result(rows=rows, rows_returned=len(rows), truncated=truncated)


def bound_rows(records: Sequence[Sequence[str | bytes | None]], limits: Limits) -> tuple[tuple[bytes, ...], bool]:
    """The rows of a wrapped statement that went by prepare and bind, and whether limits cut them. The server has counted the
    bytes: NULL stands for a row past them."""
    rows: list[bytes] = []
    for (row,) in records:
        if row is None or len(rows) == limits.max_rows:
            return tuple(rows), True
        rows.append(row.encode() if isinstance(row, str) else row)
    return tuple(rows), False


async def compose(
    wrap: Callable[[Statement, Limits, Sequence[str] | None, Sequence[str]], Sent],
    statement: Statement,
    limits: Limits,
    names_used: Sequence[str] | None,
    masking: PostExec | None = None,
) -> Sent:
    """Call one of the composers of `wrap.py`; in a worker thread when the text is so long that others would wait for it."""
    uncounted = masked_names(masking, names_used)
    if is_large(statement.sql):
        return await large_texts.in_thread(partial(wrap, statement, limits, names_used, uncounted))
    return wrap(statement, limits, names_used, uncounted)


async def names_to_use(
    connection: Connection, statement: Statement, catalog: Catalog, *, in_transaction: bool = False
) -> Sequence[str] | None:
    """New names for the output columns, None when theirs are distinct. Asks the server only where nobody else can tell."""
    if names.is_surely_distinct(statement):
        return None
    found = names.output_names(statement, catalog)
    if found is None:
        sent = as_written(statement)
        begins = connection.pins_locally and not in_transaction
        try:
            if begins:
                await connection.begin("READ ONLY")
            found = await connection.describe(sent.text)
            if begins:
                await connection.execute("COMMIT")
        except FAILURES as error:
            await connection.rollback()
            raise failed(error, sent.position) from error
    return names.distinct(found)
