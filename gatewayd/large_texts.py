"""Large texts are looked at in one worker thread, a caller's turn after the other's (contract 3.1).

One, because Python runs one thread at a time: a second would make nothing faster, and the loop would wait for each of them.
"""

from collections.abc import Callable, Hashable
from typing import Final, TypeVar

import trio

from gatewayd.turns import Turns

T = TypeVar("T")

_TURNS: Final = Turns(1)


async def in_thread(ask: Callable[[], T], caller: Hashable = None, *, shielded: bool = False) -> T:
    """What `ask` returns. Cancelled while it waits for its turn, unless `shielded`: nothing was done. Once begun it is not
    cancelled."""
    with trio.CancelScope(shield=shielded):
        if not _TURNS.take(caller):
            await _TURNS.wait(caller)
        try:
            with trio.CancelScope(shield=True):
                return await trio.to_thread.run_sync(ask)
        finally:
            _TURNS.leave(caller)
    raise AssertionError("a scope that nobody cancels swallows nothing")
