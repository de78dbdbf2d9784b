"""How much of request bodies is held at once, from their first byte until their answer is written.

One message may have 8 MiB, so connections times that would be more than a machine has. Over the budget a large body is refused
and does not wait: a client that holds back its last byte would make all others wait. Small bodies are always taken."""

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
        """Whether the body may have so many bytes, of which it has fewer now."""
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
