"""Keeps one database's catalog fresh (decision 12): decides when to read it again, swaps the snapshot, logs when the database
does not answer.

One task a database, `run`; everything else here only moves the moment of the next read. Reading itself is `read_catalog.py`.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import trio

from gatewayd import log
from gatewayd.catalog import Catalog, unread
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.execute.failure import NO_CONNECTION_FREE
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.postgres.pool import Pool

UNKNOWN_S: Final = 5.0
"""Unknown names ask for at most one read in this time."""
UNKNOWN_WAIT_S: Final = 3.0
"""How long an unknown name waits for the read: a database that hangs must not hang the decision, which nothing can cancel."""
RETRY_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
IDLE_S: Final = 300.0
"""In every mode: others change views and partitions behind the gateway's back,
and a stale catalog may let a statement through that the fresh one would not."""


class RefreshStatistics(msgspec.Struct, frozen=True):
    """Counts of one refresher, all of the same moment."""

    reads: int  # that gave a catalog, changed or not
    failures: int
    last_read_s: float
    """How long the last of `reads` took."""
    revision: int
    relations: int
    answers: bool
    """Whether the last read succeeded."""


class CatalogRefresher:
    """`catalog` is the current snapshot: the unread one until the first read succeeds, the last one while the database is away.

    A read that finds nothing changed keeps the snapshot, so that decisions remembered for it stay good.
    """

    def __init__(self, name: str, pool: Pool, read: Callable[[Pool, int], Awaitable[Catalog]] = read_catalog) -> None:
        self.catalog = unread(name)
        self._name = name
        self._pool = pool
        self._read = read
        self._due = -math.inf  # seconds of Trio's clock, like all times here
        self._sooner = trio.Event()
        self._begun = 0
        self._ended = 0
        self._one_ended = trio.Event()
        self._began_at = -math.inf
        self._ddl_since_begun = False
        self._failures_in_a_row = 0
        self._told: tuple[str, str] | None = None
        self._reads = 0
        self._failures = 0
        self._last_read_s = 0.0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """The service. It is started before the first read: the daemon starts even when a database is down."""
        task_status.started()
        while True:
            await self._wait_until_due()
            await self._refresh()

    def wrote(self, ddl: bool) -> None:
        """A write was executed. Both kinds are seen by a read that begins after this call."""
        self._ddl_since_begun |= ddl
        self._ask(trio.current_time() if ddl else self._began_at + self._pool.bounds.row_writes_s)

    def suspect(self) -> None:
        """A call lost its connection: look soon whether the database answers, and say so."""
        self._ask(self._began_at + self._pool.bounds.row_writes_s)

    async def unknown(self) -> None:
        """A statement names something that `catalog` does not hold: wait for a read under way or due, at most UNKNOWN_WAIT_S."""
        reading = self._begun > self._ended
        if not reading and not self._ddl_since_begun:
            if trio.current_time() < self._began_at + UNKNOWN_S:
                return
            self._ask(trio.current_time())
        wanted = self._begun + (0 if reading and not self._ddl_since_begun else 1)
        with trio.move_on_after(UNKNOWN_WAIT_S):
            while self._ended < wanted:
                await self._one_ended.wait()

    async def read_once(self) -> None:
        """Returns when `catalog` has been read, however long that takes."""
        while not self.catalog.is_read:
            await self._one_ended.wait()

    async def changed(self) -> None:
        """What `catalog` says has turned out not to be so: wait for a read that begins now, at most UNKNOWN_WAIT_S."""
        self.wrote(ddl=True)
        await self.unknown()

    def statistics(self) -> RefreshStatistics:
        """The counts now."""
        return RefreshStatistics(
            reads=self._reads,
            failures=self._failures,
            last_read_s=self._last_read_s,
            revision=self.catalog.revision,
            relations=len(self.catalog.relations),
            answers=self.catalog.is_read and not self._failures_in_a_row,
        )

    def _ask(self, at: float) -> None:
        if at < self._due:
            self._due = at
            self._sooner.set()

    async def _wait_until_due(self) -> None:
        while self._due > trio.current_time():
            self._sooner = trio.Event()
            with trio.move_on_at(self._due):
                await self._sooner.wait()

    async def _refresh(self) -> None:
        self._begun += 1
        self._began_at = trio.current_time()
        self._ddl_since_begun = False
        self._due = math.inf  # what is asked for from here on is not in this read's snapshot
        try:
            await self._take(await self._read(self._pool, self.catalog.revision + 1))
        except ExecutionFailed as failure:
            self._failures += 1
            self._tell(failure)
            self._ask(trio.current_time() + RETRY_S[min(self._failures_in_a_row, len(RETRY_S) - 1)])
            self._failures_in_a_row += 1
        else:
            self._ask(trio.current_time() + IDLE_S)
        finally:
            self._ended = self._begun
            self._one_ended.set()
            self._one_ended = trio.Event()

    async def _take(self, catalog: Catalog) -> None:
        first = not self.catalog.is_read
        if first or not await _is_same(self.catalog, catalog):
            self.catalog = catalog
        self._reads += 1
        self._last_read_s = trio.current_time() - self._began_at
        self._failures_in_a_row = 0
        if self._told is not None:
            self._told = None
            log.info(log.DATABASE_REACHABLE, database=self._name)
        (log.info if first else log.debug)(
            log.CATALOG_LOADED,
            database=self._name,
            revision=self.catalog.revision,
            relations=len(catalog.relations),
            read_ms=round(self._last_read_s * 1000),
        )

    def _tell(self, failure: ExecutionFailed) -> None:
        if failure.sqlstate == NO_CONNECTION_FREE and self._pool.statistics().in_use:
            return  # agents use all connections: the database is busy, not unreachable
        told = (failure.sqlstate, failure.message)
        if told != self._told:
            self._told = told
            log.error(log.DATABASE_UNREACHABLE, database=self._name, code=failure.sqlstate, error=failure.message)


async def _is_same(old: Catalog, new: Catalog) -> bool:
    """Whether two snapshots differ in nothing but their revision. Lets other tasks run often."""
    if _small_parts(old) != _small_parts(new) or len(old.relations) != len(new.relations):
        return False
    for number, (key, relation) in enumerate(new.relations.items()):
        if old.relations.get(key) != relation:
            return False
        if number % 200 == 0:
            await trio.lowlevel.checkpoint()
    return True


def _small_parts(catalog: Catalog) -> tuple[object, ...]:
    everywhere = catalog.database, catalog.server_version, catalog.everywhere_mark
    return *everywhere, catalog.operators, catalog.functions, catalog.types
