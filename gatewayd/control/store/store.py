"""The store: a pool of sessions, and transactions that are functions, so that each can run again.

    async def rename(tx: Transaction) -> bool:
        return await tx.run(RENAME_PROJECT, org_id, project_id, name) == 1

    renamed = await store.transaction(rename)

A transaction function may run several times (40001, 40P01, 0A000, a lost connection before COMMIT): it changes nothing but the
store, and makes ids and reads clocks outside of itself. Rows come as msgspec structs whose fields are the columns' names.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeVar

import msgspec
import trio
from asyncpg.exceptions import PostgresError

from gatewayd.control.store.connection import StoreConnection, connect
from gatewayd.control.store.failures import OutcomeUnknown, StoreLocked, StoreUnavailable, is_again, is_locked, is_lost
from gatewayd.control.store.statement import Copy, Statement

Isolation = Literal["READ COMMITTED", "SERIALIZABLE"]

RUNS: Final = 12
_PAUSE_S: Final = 0.005
_PAUSE_MOST_S: Final = 0.25

T = TypeVar("T")
Row = TypeVar("Row")
Disturb = Callable[[], None]


class StoreStatistics(msgspec.Struct, frozen=True):
    in_use: int
    waiting: int
    runs_again: int  # since start: transactions that ran once more


class Transaction:
    """What a transaction function is given. Not for use after it has returned."""

    def __init__(self, connection: StoreConnection, disturb: Disturb | None) -> None:
        self._connection = connection
        self._disturb = disturb

    async def rows(self, shape: type[Row], statement: Statement, *args: object) -> list[Row]:
        """Each row as a `shape`, whose fields name columns."""
        self._disturbed()
        return [msgspec.convert(dict(record), shape) for record in await self._connection.fetch(statement, *args)]

    async def row(self, shape: type[Row], statement: Statement, *args: object) -> Row | None:
        """The first row, None where there is none."""
        found = await self.rows(shape, statement, *args)
        return found[0] if found else None

    async def value(self, statement: Statement, *args: object) -> Any:
        """The first column of the first row, None where there is no row."""
        self._disturbed()
        records = await self._connection.fetch(statement, *args)
        return records[0][0] if records else None

    async def run(self, statement: Statement, *args: object) -> int:
        """How many rows the statement touched: the answer of a conditional UPDATE."""
        self._disturbed()
        return await self._connection.execute(statement, *args)

    async def copy(self, into: Copy, rows: Iterable[tuple[object, ...]]) -> None:
        """COPY at most COPY_ROWS rows and about 4 MiB in."""
        self._disturbed()
        await self._connection.copy(into, rows)

    async def copy_in(self, table: str, columns: Sequence[str], rows: bytes) -> None:
        """Rows of a backup, about 4 MiB of them."""
        self._disturbed()
        await self._connection.copy_in(table, columns, rows)

    async def define(self, sql: str) -> None:
        """Statements of data definition, as migrations and the audit's day tables need them."""
        self._disturbed()
        await self._connection.script(sql)

    def _disturbed(self) -> None:
        if self._disturb is not None:
            self._disturb()


class Store:
    """`isolation` and `disturb` are for tests: the suite runs under SERIALIZABLE, too, with a `disturb` that is called before
    each statement and each COMMIT, and raises 40001 at random."""

    def __init__(
        self,
        dsn: str,
        *,
        size: int = 10,
        wait_s: float = 10.0,
        isolation: Isolation = "READ COMMITTED",
        disturb: Disturb | None = None,
    ) -> None:
        self._dsn = dsn
        self._begin = f"BEGIN ISOLATION LEVEL {isolation}"
        self._wait_s = wait_s
        self._disturb = disturb
        self._idle: list[StoreConnection] = []
        self._slots = trio.CapacityLimiter(size)
        self._runs_again = 0

    def statistics(self) -> StoreStatistics:
        slots = self._slots.statistics()
        return StoreStatistics(slots.borrowed_tokens, slots.tasks_waiting, self._runs_again)

    async def transaction(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in a transaction and commit, again where that may help.

        Raises what `work` raises (the transaction is rolled back then), StoreUnavailable (StoreLocked where another transaction
        holds what this one wants), or OutcomeUnknown when the connection
        was lost in COMMIT. Cancellation: rolled back, or the outcome is unknown when COMMIT was on its way.
        """
        pause_s = _PAUSE_S
        for run in range(1, RUNS + 1):
            try:
                return await self._once(work)
            except OutcomeUnknown:
                raise
            except (PostgresError, OSError, StoreUnavailable) as error:
                if is_locked(error):
                    raise StoreLocked("what the transaction wants is locked by another one") from error
                lost = is_lost(error) or isinstance(error, StoreUnavailable)
                if not is_again(error) and not (lost and run < 3):
                    if lost:
                        raise StoreUnavailable(_words(error)) from error
                    raise
                if run == RUNS:
                    raise StoreUnavailable(f"the transaction met others {RUNS} times") from error
            self._runs_again += 1
            await trio.sleep(random.uniform(0.5, 1.0) * pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MOST_S)
        raise AssertionError("the last run returns or raises")

    async def rows(self, shape: type[Row], statement: Statement, *args: object) -> list[Row]:
        """One reading statement by itself."""
        return await self.transaction(lambda tx: tx.rows(shape, statement, *args))

    async def row(self, shape: type[Row], statement: Statement, *args: object) -> Row | None:
        return await self.transaction(lambda tx: tx.row(shape, statement, *args))

    async def value(self, statement: Statement, *args: object) -> Any:
        return await self.transaction(lambda tx: tx.value(statement, *args))

    async def run(self, statement: Statement, *args: object) -> int:
        """One writing statement by itself."""
        return await self.transaction(lambda tx: tx.run(statement, *args))

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[StoreConnection]:
        """A session of the pool, in no transaction. Raises StoreUnavailable when none becomes free in `wait_s`."""
        with trio.move_on_after(self._wait_s) as waiting:
            await self._slots.acquire_on_behalf_of(token := object())
        if waiting.cancelled_caught:
            raise StoreUnavailable(f"no connection to the store became free within {self._wait_s:g} s")
        try:
            connection = await self._ready()
            try:
                yield connection
            finally:
                if connection.is_ready:
                    self._idle.append(connection)
                else:
                    connection.terminate()
        finally:
            self._slots.release_on_behalf_of(token)

    def close(self) -> None:
        """End the idle sessions. Those in use end with their users."""
        while self._idle:
            self._idle.pop().terminate()

    async def _ready(self) -> StoreConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_ready:
                return connection
            connection.terminate()
        return await connect(self._dsn)

    async def _once(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self.connection() as connection:
            # What goes wrong leaves the session in its transaction: it is not ready then, and the pool ends it. A ROLLBACK
            # would save a connect of 3 ms on a road that is rarely taken.
            await connection.script(self._begin)
            result = await work(Transaction(connection, self._disturb))
            if self._disturb is not None:
                self._disturb()
            try:
                await connection.script("COMMIT")
            except (PostgresError, OSError, StoreUnavailable) as error:
                if is_lost(error) or isinstance(error, StoreUnavailable):
                    raise OutcomeUnknown("the connection to the store was lost while a change was being committed") from error
                raise
            return result


def _words(error: BaseException) -> str:
    state = getattr(error, "sqlstate", None)
    if isinstance(error, StoreUnavailable):
        return str(error)
    return f"the store cannot be used now (SQLSTATE {state})" if state else "the connection to the store was lost"
