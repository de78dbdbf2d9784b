"""LoopShare: how many agents' requests may begin in one pass of the event loop, so that a flood leaves time for running calls.

Reading, parsing and refusing a request costs about half as much as a whole call, and closing a connection not much less. Without
a bound, the loop would handle a thousand waiting requests before the next step of any admitted call or of /health. Requests over
the bound wait unparsed, in order; if too many wait, further ones are turned away.
"""

from collections import deque
from typing import Final, final

import msgspec
import trio


class LoopShareStatistics(msgspec.Struct, frozen=True):
    """Counts of one share, of the same moment."""

    waiting: int
    refused: int  # since start


@final
class LoopShare:
    """Call `take` before each request, and `wait` if it returns False. `run` must run meanwhile."""

    def __init__(self, a_pass: int, waiting: int) -> None:
        self._a_pass: Final = a_pass
        self._most: Final = waiting
        self._left = a_pass
        self._parked: deque[trio.lowlevel.Task] = deque()
        self._gate: trio.lowlevel.Task | None = None  # while it sleeps
        self._refused = 0

    def take(self) -> bool:
        """Takes a place in this pass; False if none is left."""
        if not self._left:
            return False
        self._left -= 1
        if not self._left and self._gate is not None:
            trio.lowlevel.reschedule(self._gate)
            self._gate = None
        return True

    async def wait(self, *, is_leaving: bool = False) -> bool:
        """Waits for a place in a later pass. Returns False at once if too many wait; a disconnect (`is_leaving`) waits in any
        case."""
        if len(self._parked) >= self._most and not is_leaving:
            self._refused += 1
            return False
        task = trio.lowlevel.current_task()
        self._parked.append(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._parked.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        return True

    async def run(self) -> None:
        """Refills the places once a pass, after `take` has used them up; sleeps otherwise."""
        while True:
            if self._left:
                await self._sleep()
            else:
                await trio.lowlevel.checkpoint()
            self._left = self._a_pass
            while self._parked and self._left:
                self._left -= 1
                trio.lowlevel.reschedule(self._parked.popleft())

    def statistics(self) -> LoopShareStatistics:
        """The counts now."""
        return LoopShareStatistics(len(self._parked), self._refused)

    async def _sleep(self) -> None:
        def abort(_: object) -> trio.lowlevel.Abort:
            self._gate = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._gate = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(abort)
