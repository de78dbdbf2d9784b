"""Who waits here for something that the store will say: one look at the store a tick serves them all.

Nothing here is needed by another replica: what is written anywhere is seen within a tick.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Generic, TypeVar, final

import trio

from gatewayd.control.store.failures import StoreUnavailable

W = TypeVar("W")


@final
class Waiting(Generic[W]):
    """`look` asks the store for these waiters, and tells each what concerns it."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s: Final = tick_s
        self._waiters: Final[set[W]] = set()
        self._arrived = trio.Event()

    def __len__(self) -> int:
        return len(self._waiters)

    @contextmanager
    def joined(self, waiter: W) -> Iterator[W]:
        """It waits while the block runs."""
        self._waiters.add(waiter)
        self._arrived.set()
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)

    async def run(self, look: Callable[[list[W]], Awaitable[None]]) -> None:
        """Never returns. Asks nothing while nobody waits, and asks whoever has come first at once."""
        while True:
            if not self._waiters:
                self._arrived = trio.Event()
                await self._arrived.wait()
            with suppress(StoreUnavailable):  # told by readiness; they wait on
                await look(list(self._waiters))
            await trio.sleep(self._tick_s)
