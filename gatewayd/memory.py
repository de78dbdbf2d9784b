"""Memory that stays for good is looked at no more, and memory that a flood needed is handed back: left to themselves, Python goes
through all of the one now and then, and with glibc keeps the other."""

import gc
from typing import Final, final

_WORTH_BYTES: Final = 4 * 1024 * 1024  # below it trimming costs more than it gives


def settle() -> None:
    """To be called once the start is over: a full collection stops everything, and the 70 000 objects that were loaded by then
    are most of what it would go through, 30 ms and more."""
    gc.freeze()


@final
class Tide:
    """How much was held at once since nothing was."""

    def __init__(self) -> None:
        self._most = 0

    def rises(self, held: int) -> None:
        self._most = max(self._most, held)

    def ebbs(self) -> None:
        """Nothing is held or referred to any more."""
        if self._most >= _WORTH_BYTES:
            trim()
        self._most = 0


def trim() -> None:
    """glibc keeps the whole heap for one block in use at its end; this gives back every page of it that is free."""
    import ctypes  # rarely needed: start-up time

    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none, and keeps less
    if malloc_trim is not None:
        malloc_trim(0)


def collect() -> None:
    """The same for Python's own arenas: a full collection empties its free lists too. Stops everything for some 10 ms."""
    gc.collect()
    trim()
