"""Large texts are analysed in one worker thread, which callers use in turns (decision 3.1).

One thread, because Python runs one at a time: a second one would make nothing faster and would delay the event loop further.
"""

import gc
import sys
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeVar

import trio

from gatewayd.fairness.fair_slots import FairSlots

T = TypeVar("T")

LARGE_BYTES: Final = 2048
"""From this length on a text may block the event loop for more than 5 ms: analysing 16 KiB takes 15 to 110 ms, and its masks up
to 160 (measured with other work on the same cores). Using the thread costs about 0.2 ms."""
SWITCH_S: Final = 0.0005  # how long the loop waits for the interpreter's lock; Python's default is ten times that
NO_FULL_COLLECTION: Final = 1_000_000_000

_TURNS: Final = FairSlots(1)


def is_large(sql: str) -> bool:
    """Whether work on this text belongs into the thread."""
    return len(sql) > LARGE_BYTES


async def in_thread(ask: Callable[[], T], caller: Hashable = None, *, shielded: bool = False) -> T:
    """Calls `ask` in the thread and returns its result. Unless `shielded`, it can be cancelled while it waits for its turn; `ask`
    was not called then. Once `ask` runs it is not cancelled."""
    with trio.CancelScope(shield=shielded):
        if not _TURNS.take(caller):
            await _TURNS.wait(caller)
        try:
            with trio.CancelScope(shield=True):
                return await trio.to_thread.run_sync(partial(_considerately, ask))
        finally:
            _TURNS.leave(caller)
    raise AssertionError("this scope is never cancelled")


def _considerately(ask: Callable[[], T]) -> T:
    """Releases the interpreter's lock often, and suspends full garbage collections. A parse tree of a million nodes would cause
    several, each of which stops the process for a quarter of a second and frees nothing, because trees have no cycles."""
    thresholds, interval_s = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(thresholds[0], thresholds[1], NO_FULL_COLLECTION)
    sys.setswitchinterval(SWITCH_S)
    try:
        return ask()
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval_s)
