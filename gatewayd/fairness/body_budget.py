"""The memory for request bodies of all connections, from a body's first byte until its answer is written.

A body may have 8 MiB, and a machine has not that much memory for every connection. A large body over the budget is refused; it
does not wait, because one client that holds back its last byte would then block all others. Small bodies are always accepted.
"""

from typing import Final, final

from gatewayd.process_memory import Tide

SMALL_BYTES: Final = 32 * 1024


@final
class BodyBudget:
    """`budget_bytes` for all large request bodies at once."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget: Final = budget_bytes
        self._held = 0
        self._tide: Final = Tide()

    def grow(self, by: int) -> bool:
        """Takes `by` bytes; False, and nothing taken, when they do not fit."""
        if self._held + by > self._budget:
            return False
        self._held += by
        self._tide.rises(self._held)
        return True

    def give_back(self, size: int) -> None:
        """Gives `size` bytes back."""
        self._held -= size
        if not self._held:
            self._tide.ebbs()


@final
class BodyShare:
    """The part of the budget that one request holds. Call `give_back` when nothing refers to the body any more."""

    __slots__ = ("_bodies", "_size")

    def __init__(self, bodies: BodyBudget) -> None:
        self._bodies = bodies
        self._size = 0

    def grows(self, to: int) -> bool:
        """Takes what the body needs to grow to `to` bytes; False if the budget does not allow it."""
        if to <= SMALL_BYTES:
            return True
        if not self._bodies.grow(to - self._size):
            return False
        self._size = to
        return True

    def give_back(self) -> None:
        """Gives back what this request holds. May be called again."""
        if self._size:
            self._bodies.give_back(self._size)
