"""execute(): an audited, allowed statement runs on a session of the pool; the only way to the database (decision 11)."""

from collections.abc import Hashable

from gatewayd.catalog import Catalog
from gatewayd.masking.plan import Rewritten
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.outcomes import Permit
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.execute.displayed_columns import shown
from gatewayd.postgres.execute.error_words import told_less
from gatewayd.postgres.execute.own_code import may_run_own_code
from gatewayd.postgres.execute.result import UNMASKABLE, ExecutionFailed, Result
from gatewayd.postgres.execute.row_bound import RowBound
from gatewayd.postgres.execute.run_read import compose, read
from gatewayd.postgres.execute.run_show import show
from gatewayd.postgres.execute.run_write import write
from gatewayd.postgres.execute.wrap import NotWrapped, Sent, wrap_query
from gatewayd.postgres.pool import Pool


async def execute(
    pool: Pool,
    permit: Permit,
    limits: Limits,
    catalog: Catalog,
    masking: Rewritten | PostExec | None = None,
    caller: Hashable = None,
    *,
    rows_at_most: int | None = None,
) -> Result:
    """Run the statement of `permit` within `limits`: rewritten, or with masks put over its rows, as `masking` says; `caller`
    is whose share of the pool its session counts in. A write that touches more than `rows_at_most` rows, where that is given, is
    rolled back. Raises ExecutionFailed.

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
    try:
        match statement.form:
            case "query" if not statement.locks:
                columns = await shown(connection, statement, catalog, over)
                key = limits, columns
                sent = instead.composed.get(key) if instead is not None else None
                if not isinstance(sent, Sent):
                    sent = await compose(wrap_query, statement, limits, columns)
                    if instead is not None:
                        instead.composed[key] = sent
                return await read(
                    connection, sent, limits, parameters, over, undone=may_run_own_code(statement, catalog), heap_order=ordered
                )
            case "utility" if statement.returns_rows:
                return await show(connection, statement, limits, undone=may_run_own_code(statement, catalog))
            case _:
                bound = rows_at_most if rows_at_most is None else RowBound(connection, statement, catalog, rows_at_most)
                return await write(connection, statement, limits, catalog, parameters, over, heap_order=ordered, bound=bound)
    except NotWrapped:
        raise ExecutionFailed("XX000", "the statement could not be wrapped without changing it; nothing ran") from None
    except ExecutionFailed as failure:
        if masking is None or failure.sqlstate == UNMASKABLE:
            raise
        if instead is not None:
            raise told_less(failure, instead.edits, instead.earlier_edits) from None
        raise told_less(failure, over.edits if over is not None else ()) from None
    finally:
        pool.release(connection, caller)
