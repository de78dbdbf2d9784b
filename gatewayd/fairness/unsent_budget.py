"""How many bytes of answers wait for clients that do not read them, over all connections.

One answer may have some MiB, so connections times that would be more than a machine has. Over the budget the client that has
taken nothing for longest is dropped: a client that reads at all, however slowly, is dropped last.
"""

from typing import Final, final

import msgspec
import trio

from gatewayd.process_memory import Tide


class UnsentStatistics(msgspec.Struct, frozen=True):
    """Sums over all connections, of the same moment."""

    clients: int  # that take nothing just now
    held_bytes: int  # of answers to them


@final
class UnsentBudget:
    """`budget_bytes` for all answers whose clients do not read."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget: Final = budget_bytes
        self._held = 0
        self._tide: Final = Tide()
        self._waits: dict[trio.CancelScope, int] = {}  # in the order in which their clients last took something

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
        """The wait is over, or was given up. May be called again."""
        self._held -= self._waits.pop(wait, 0)

    def statistics(self) -> UnsentStatistics:
        return UnsentStatistics(len(self._waits), self._held)

    def connection_ended(self) -> None:
        """To be called when nothing refers to its answer any more, which is later than `end`."""
        if not self._held:
            self._tide.ebbs()
