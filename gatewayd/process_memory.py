"""Memory that stays for good is looked at no more, what each answer needs is kept, and what a flood needed is handed back: left
to themselves, Python goes through all of the first now and then, and glibc hands back the second and keeps the third."""

import ctypes
import gc
from typing import Final, final

_WORTH_BYTES: Final = 4 * 1024 * 1024  # below it trimming costs more than it gives
_LARGEST_BLOCK_BYTES: Final = 4 * 1024 * 1024  # a str of an answer of 1 MiB with a character beyond U+FFFF: four bytes each
_M_TRIM_THRESHOLD: Final = -1  # malloc.h of glibc
_M_MMAP_THRESHOLD: Final = -3
_C: Final = ctypes.CDLL(None)


def settle() -> None:
    """To be called once the start is over: a full collection stops everything, and the 70 000 objects that were loaded by then
    are most of what it would go through, 30 ms and more."""
    gc.freeze()
    _keep_pages_of_answers()


def _keep_pages_of_answers() -> None:
    """glibc's own thresholds follow the largest block freed so far, and an answer takes several of that size: its pages went back
    when it was sent, and the next one began with 200 to 1000 fresh ones, 0.4 to 2 ms."""
    mallopt = getattr(_C, "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST_BLOCK_BYTES)


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
    malloc_trim = getattr(_C, "malloc_trim", None)  # musl has none, and keeps less
    if malloc_trim is not None:
        malloc_trim(0)


def collect() -> None:
    """The same for Python's own arenas: a full collection empties its free lists too. Stops everything for some 10 ms."""
    gc.collect()
    trim()
