"""How many bytes of answers wait for clients that do not read them, over all connections.

One answer may have some MiB, so connections times that would be more than a machine has. Over the budget the client that has
taken nothing for longest is dropped: whoever reads at all, however slowly, comes last.
"""

from typing import Final, final

import msgspec
import trio

from gatewayd.process_memory import Tide


class UnsentStatistics(msgspec.Struct, frozen=True):
    clients: int  # that take nothing just now
    held_bytes: int  # of answers to them


@final
class UnsentBudget:
    def __init__(self, budget_bytes: int) -> None:
        self._budget: Final = budget_bytes
        self._held = 0
        self._tide: Final = Tide()
        self._waits: dict[trio.CancelScope, int] = {}  # the one whose client took something last stands last

    def begin(self, wait: trio.CancelScope, size: int) -> None:
        """`wait` begins for a client that has `size` bytes before it; `end` must follow. Cancels waits, this one at the worst,
        until the rest is within the budget."""
        self._waits[wait] = size
        self._held += size
        self._tide.rises(self._held)
        while self._held > self._budget:
            longest = next(iter(self._waits))
            self.end(longest)
            longest.cancel()

    def end(self, wait: trio.CancelScope) -> None:
        self._held -= self._waits.pop(wait, 0)

    def statistics(self) -> UnsentStatistics:
        return UnsentStatistics(len(self._waits), self._held)

    def connection_ended(self) -> None:
        """Its answer is not referred to any more, as it still is when `end` is called."""
        if not self._held:
            self._tide.ebbs()
