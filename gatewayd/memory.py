"""Memory handed back to the system after a flood: left to themselves, Python and glibc keep what the flood once needed."""

import gc


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
