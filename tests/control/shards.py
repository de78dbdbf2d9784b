"""A store over several databases that stand for the shards of an engine that distributes tables: each statement goes to the one
shard that its project (or organisation) hashes to, found from its text. A statement that would need two is an error here.

Tables that belong to nobody (EVERYWHERE) are on every shard, as such engines keep reference tables: written on all, read on one.
"""

import importlib
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import cache
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from gatewayd.control.store.connection import StoreConnection
from gatewayd.control.store.statement import Copy, Statement
from gatewayd.control.store.store import Store, Transaction
from tests.control.portable import Facts, owner_column

pglast: Any = importlib.import_module("pglast")
pg: Any = importlib.import_module("pglast.ast")
T = TypeVar("T")
Row = TypeVar("Row")
_DAY = re.compile(r"\b(audit_|audit_details_)[0-9]{8}\b")


class NeedsTwoShards(AssertionError):
    """A statement whose rows are not all on one shard."""


class Route(msgspec.Struct, frozen=True):
    """`owners`: the numbers of the parameters that say whose rows a statement is about; none: a table that is everywhere."""

    owners: frozenset[int]
    tables: frozenset[str]
    is_reading: bool


@cache
def route_of(text: str) -> Route:
    (raw,) = pglast.parse_sql(text)
    facts = Facts()
    facts(raw.stmt)
    is_reading = isinstance(raw.stmt, pg.SelectStmt) and not raw.stmt.lockingClause
    return Route(frozenset(facts.owners), frozenset(facts.owned), is_reading)


def shard_of(owner: object, count: int) -> int:
    return sha256(str(owner).encode()).digest()[0] % count


class ShardedTransaction(Transaction):
    """Committed on all shards one after the other; an engine would use its two-phase commit."""

    def __init__(self, connections: list[StoreConnection], ran: set[str]) -> None:
        super().__init__(connections[0], None)
        self._shards = [Transaction(each, None) for each in connections]
        self._ran = ran

    async def rows(self, shape: type[Row], statement: Statement, *args: object) -> list[Row]:
        return await self._on(statement, args, lambda shard: shard.rows(shape, statement, *args))

    async def value(self, statement: Statement, *args: object) -> Any:
        return await self._on(statement, args, lambda shard: shard.value(statement, *args))

    async def run(self, statement: Statement, *args: object) -> int:
        return await self._on(statement, args, lambda shard: shard.run(statement, *args))

    async def copy(self, into: Copy, rows: Iterable[tuple[object, ...]]) -> None:
        held = list(rows)
        owner = owner_column(_one_day(into.table))
        place = into.columns.index(owner) if owner is not None else 0
        shards = {shard_of(row[place], len(self._shards)) for row in held}
        if len(shards) > 1:
            raise NeedsTwoShards(into.table)
        for shard in shards:
            await self._shards[shard].copy(into, held)

    async def define(self, sql: str) -> None:
        for shard in self._shards:
            await shard.define(sql)

    async def _on(self, statement: Statement, args: tuple[object, ...], work: Callable[[Transaction], Awaitable[T]]) -> T:
        route = route_of(_one_day(statement.text))
        self._ran.add(_one_day(statement.text))
        if route.tables:
            shards = {shard_of(args[number - 1], len(self._shards)) for number in route.owners}
            if len(shards) != 1:
                raise NeedsTwoShards(statement.text)
            return await work(self._shards[shards.pop()])
        found = await work(self._shards[0])
        if not route.is_reading:
            for shard in self._shards[1:]:
                await work(shard)
        return found


class ShardedStore(Store):
    """`ran`: the texts of all statements so far, those on the audit's tables of a day as of one day."""

    def __init__(self, urls: list[str]) -> None:
        super().__init__(urls[0])
        self.stores = [Store(url) for url in urls]
        self.ran: set[str] = set()

    async def _once(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with AsyncExitStack() as stack:
            connections = [await stack.enter_async_context(each.connection()) for each in self.stores]
            for each in connections:
                await each.script("BEGIN")
            result = await work(ShardedTransaction(connections, self.ran))
            for each in connections:
                await each.script("COMMIT")
            return result

    def close(self) -> None:
        super().close()
        for each in self.stores:
            each.close()


def _one_day(text: str) -> str:
    """The tables of any day as those of the day that `keys` knows."""
    return _DAY.sub(r"\g<1>20261122", text)
