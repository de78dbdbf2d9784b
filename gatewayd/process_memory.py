"""Memory that lives as long as the process is no longer scanned by the collector, memory that each answer needs is kept, and
memory that only a flood needed is given back to the system. By default Python scans the first at each full collection, and glibc
gives back the second and keeps the third."""

import ctypes
import gc
from typing import Final, final

_WORTH_BYTES: Final = 4 * 1024 * 1024  # below it trimming costs more than it gives
_LARGEST_BLOCK_BYTES: Final = 4 * 1024 * 1024  # a str of an answer of 1 MiB with a character beyond U+FFFF: four bytes each
_M_TRIM_THRESHOLD: Final = -1  # malloc.h of glibc
_M_MMAP_THRESHOLD: Final = -3
_C: Final = ctypes.CDLL(None)


def settle() -> None:
    """To be called once, after the start. A full collection stops the process for 30 ms and more, mostly to scan the 70 000
    objects that exist by then."""
    gc.freeze()
    _keep_pages_of_answers()


def _keep_pages_of_answers() -> None:
    """Fixes glibc's thresholds. By default they follow the largest block freed so far, so an answer's pages went back to the
    system when it was sent and the next answer took 200 to 1000 fresh ones: 0.4 to 2 ms."""
    mallopt = getattr(_C, "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST_BLOCK_BYTES)


@final
class Tide:
    """The highest total since it was last zero."""

    def __init__(self) -> None:
        self._most = 0

    def rises(self, held: int) -> None:
        """Notes the total; only the highest counts."""
        self._most = max(self._most, held)

    def ebbs(self) -> None:
        """To be called when the total is zero again and nothing refers to the memory."""
        if self._most >= _WORTH_BYTES:
            trim()
        self._most = 0


def trim() -> None:
    """Gives every free page of the heap back to the system. By itself glibc keeps the whole heap while one block at its end is in
    use."""
    malloc_trim = getattr(_C, "malloc_trim", None)  # musl has none, and keeps less
    if malloc_trim is not None:
        malloc_trim(0)


def collect() -> None:
    """The same for Python's arenas, by a full collection, which also empties the free lists. Stops the process for some 10 ms."""
    gc.collect()
    trim()
