"""What the tests of execution share: a pool, and statements run on it as the pipeline runs them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio

from gatewayd.catalog import Catalog
from gatewayd.config.bounds import DatabaseBounds
from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.execute.result import ExecutionFailed, Result
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.pool import Pool
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement


class Asking:
    """`await asking(sql)` decides nothing: it runs what it is given."""

    def __init__(self, pool: Pool, catalog: Catalog) -> None:
        self.pool = pool
        self.catalog = catalog

    async def __call__(self, sql: str, limits: Limits | None = None) -> Result:
        statement = analyze(sql)
        assert isinstance(statement, Statement), statement
        permit = Permit(Allowed(statement, (), ""), "query", "audit")
        return await execute(self.pool, permit, limits or self.pool.limits, self.catalog)

    async def rows(self, sql: str, limits: Limits | None = None) -> list[Any]:
        return [msgspec.json.decode(row) for row in (await self(sql, limits)).rows]

    async def fails(self, sql: str, limits: Limits | None = None) -> ExecutionFailed:
        with pytest.raises(ExecutionFailed) as caught:
            await self(sql, limits)
        return caught.value


PATIENT = DatabaseBounds(connect_s=300, grace_s=300)
"""No session is given up because the machine is slow; what is about the bounds sets its own."""


@asynccontextmanager
async def asking(
    dsn: str,
    limits: Limits | None = None,
    size: int = 10,
    catalog: Catalog | None = None,
    bounds: DatabaseBounds = PATIENT,
) -> AsyncIterator[Asking]:
    pool = Pool("test", dsn, limits or Limits(), size, bounds)
    try:
        yield Asking(pool, catalog or Catalog(revision=1, database="test"))  # empty, but read
    finally:
        with trio.CancelScope(shield=True):
            await pool.aclose()


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something in another process, which has no event to wait for; bounded by pytest's timeout."""
    while not is_so():  # noqa: ASYNC110 - the other process sets no trio.Event
        await trio.sleep(0.01)
