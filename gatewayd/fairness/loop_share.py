"""LoopShare: how many requests of agents begin in one pass of the event loop, so that a flood leaves time for calls that have
begun.

Reading, parsing and refusing a request costs about half of what a whole call does, and closing a connection not much less.
Without a bound, a loop with a thousand of them on its sockets does them all before it takes the next step of any admitted call
or of /health. What is over the bound waits unparsed, in order; what is over that is turned away.
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
    """`take`, or else `wait`, before each request. `run` serves for as long as requests come."""

    def __init__(self, a_pass: int, waiting: int) -> None:
        self._a_pass: Final = a_pass
        self._most: Final = waiting
        self._left = a_pass
        self._parked: deque[trio.lowlevel.Task] = deque()
        self._gate: trio.lowlevel.Task | None = None  # while it sleeps
        self._refused = 0

    def take(self) -> bool:
        """Whether one more may begin in this pass."""
        if not self._left:
            return False
        self._left -= 1
        if not self._left and self._gate is not None:
            trio.lowlevel.reschedule(self._gate)
            self._gate = None
        return True

    async def wait(self, *, is_leaving: bool = False) -> bool:
        """Waits for a later pass. False at once when too many wait already; a client that only disconnects waits all the same."""
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
        """Restores the share in the next pass after `take` has used it up; sleeps until then."""
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
        return LoopShareStatistics(len(self._parked), self._refused)

    async def _sleep(self) -> None:
        def abort(_: object) -> trio.lowlevel.Abort:
            self._gate = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._gate = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(abort)
