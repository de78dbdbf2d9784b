"""The memory for answers that clients do not read, over all connections.

An answer may have some MiB, and a machine has not that much memory for every connection. Over the budget, the client that has
read nothing for the longest time is dropped; a client that reads at all, however slowly, is dropped last.
"""

from typing import Final, final

import msgspec
import trio

from gatewayd.process_memory import Tide


class UnsentStatistics(msgspec.Struct, frozen=True):
    """Sums over all connections, of the same moment."""

    clients: int  # that read nothing just now
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
        """Adds `wait`, the scope of a write of `size` bytes that the client does not read; `end` must follow. Cancels the oldest
        waits, if necessary this one, until the sum is within the budget."""
        self._waits[wait] = size
        self._held += size
        self._tide.rises(self._held)
        while self._held > self._budget:
            longest = next(iter(self._waits))
            self.end(longest)
            longest.cancel()

    def end(self, wait: trio.CancelScope) -> None:
        """Removes `wait`. May be called again."""
        self._held -= self._waits.pop(wait, 0)

    def statistics(self) -> UnsentStatistics:
        """The sums now."""
        return UnsentStatistics(len(self._waits), self._held)

    def connection_ended(self) -> None:
        """To be called when nothing refers to the connection's answer any more, which is later than `end`."""
        if not self._held:
            self._tide.ebbs()
