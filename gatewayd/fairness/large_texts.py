"""Large texts are analysed in one worker thread, by turns between the callers (decision 3.1).

One, because Python runs one thread at a time: a second would make nothing faster, and the loop would wait for each of them.
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
"""From here on a text may cost more than 5 ms of a loop that others wait for: analysing 16 KiB takes 15 to 110 ms, its masks
up to 160 (measured with other work on the same cores). Handing it to the thread and back costs about 0.2 ms."""
SWITCH_S: Final = 0.0005  # how long the loop waits for the interpreter's lock; Python's default is ten times that
NO_FULL_COLLECTION: Final = 1_000_000_000

_TURNS: Final = FairSlots(1)


def is_large(sql: str) -> bool:
    """Whether what looks at this text leaves the loop."""
    return len(sql) > LARGE_BYTES


async def in_thread(ask: Callable[[], T], caller: Hashable = None, *, shielded: bool = False) -> T:
    """What `ask` returns. Cancelled while it waits for its turn, unless `shielded`: nothing was done. Once begun it is not
    cancelled."""
    with trio.CancelScope(shield=shielded):
        if not _TURNS.take(caller):
            await _TURNS.wait(caller)
        try:
            with trio.CancelScope(shield=True):
                return await trio.to_thread.run_sync(partial(_considerately, ask))
        finally:
            _TURNS.leave(caller)
    raise AssertionError("a scope that nobody cancels swallows nothing")


def _considerately(ask: Callable[[], T]) -> T:
    """Releases the interpreter's lock often, and does without full collections: a tree of a million nodes would cause several,
    each stops the process for a quarter of a second, and they find nothing because trees have no cycles."""
    thresholds, interval_s = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(thresholds[0], thresholds[1], NO_FULL_COLLECTION)
    sys.setswitchinterval(SWITCH_S)
    try:
        return ask()
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval_s)
