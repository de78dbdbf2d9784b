"""A store that meets conflicts: SERIALIZABLE, 40001 at random, and for each transaction function once, after its last statement.

Chance alone would leave out functions of one statement that a test calls once.
"""

import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import asyncpg

from gatewayd.control.store.store import Store, Transaction

T = TypeVar("T")


def injected(seed: int, of_a_hundred: int = 4) -> Callable[[], None]:
    """Raises 40001 for about one statement or COMMIT in 25: a transaction of 15 statements runs twice on the average."""
    dice = random.Random(seed)

    def disturb() -> None:
        if dice.randrange(100) < of_a_hundred:
            raise asyncpg.SerializationError("injected")

    return disturb


class DisturbedStore(Store):
    def __init__(self, dsn: str, seed: int) -> None:
        super().__init__(dsn, isolation="SERIALIZABLE", disturb=injected(seed))
        self._met: set[Any] = set()

    async def transaction(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        function = code_of(work)
        if function in self._met:
            return await super().transaction(work)
        self._met.add(function)
        runs = 0

        async def in_vain_at_first(tx: Transaction) -> T:
            nonlocal runs
            runs += 1
            result = await work(tx)
            if runs == 1:
                raise asyncpg.SerializationError("injected")
            return result

        return await super().transaction(in_vain_at_first)


def code_of(work: Callable[..., Any]) -> Any:
    """What tells one transaction function from another: not the closure, which is new for each call."""
    while isinstance(work, partial):
        work = work.func
    return getattr(work, "__code__", work)
