"""FairSlots: slots that callers share fairly. A slot may be a running call, a database session or a thread.

A caller holds at most as many slots as it leaves free, so the next caller finds a free one; the more callers there are, the fewer
slots each may hold. A slot that becomes free goes to the waiting caller that was served longest ago. A caller is any hashable
value. None is the gateway itself, which may hold all slots and waits its turn like the others.

The alternative, a fixed share for each caller, either leaves slots unused or lets two callers take all of them.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final, final

import trio


class _Waiter:
    __slots__ = ("has_slot", "task")

    def __init__(self, task: trio.lowlevel.Task) -> None:
        self.task = task
        self.has_slot = False


@final
class FairSlots:
    """`size` slots, of which a caller never holds more than `most`. Each slot from `take` or `wait` is returned by `leave` with
    the same caller."""

    def __init__(self, size: int, most: int | None = None) -> None:
        self._size: Final = size
        self._most: Final = size if most is None else most
        self._held: dict[Hashable, int] = {}
        self._queues: OrderedDict[Hashable, deque[_Waiter]] = OrderedDict()
        self.taken = 0
        self.waiting = 0

    def take(self, caller: Hashable) -> bool:
        """A slot at once, if `caller` may have one now."""
        if not self._may_hold_more(caller):
            return False
        self._held[caller] = self._held.get(caller, 0) + 1
        self.taken += 1
        return True

    async def wait(self, caller: Hashable) -> bool:
        """Waits for a slot, after the same caller's earlier waits. Returns False if `push_out` ended the wait. Cancelled: no slot
        is taken."""
        queue = self._queues.get(caller)
        if queue is None:
            queue = self._queues[caller] = deque()
        waiter = _Waiter(trio.lowlevel.current_task())
        queue.append(waiter)
        self.waiting += 1

        def abort(_: object) -> trio.lowlevel.Abort:
            self._forget(caller, waiter)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        return waiter.has_slot

    def leave(self, caller: Hashable) -> None:
        """Gives back one slot of `caller`; it goes to the waiting caller that was served longest ago."""
        left = self._held[caller] - 1
        if left:
            self._held[caller] = left
        else:
            del self._held[caller]
        self.taken -= 1
        while self._queues and self._serve_next():
            pass

    def waiting_of(self, caller: Hashable) -> int:
        """How many waits `caller` has."""
        queue = self._queues.get(caller)
        return 0 if queue is None else len(queue)

    def push_out(self, longer_than: int) -> bool:
        """Ends the latest wait of the caller with most waits, if it has more than `longer_than`; whether one was ended."""
        caller, queue = max(self._queues.items(), key=lambda each: len(each[1]), default=(None, deque[_Waiter]()))
        if len(queue) <= longer_than:
            return False
        waiter = queue[-1]
        self._forget(caller, waiter)
        trio.lowlevel.reschedule(waiter.task)
        return True

    def _may_hold_more(self, caller: Hashable) -> bool:
        free = self._size - self.taken
        if caller is None:
            return free > 0
        return self._held.get(caller, 0) < min(free, self._most)

    def _serve_next(self) -> bool:
        for caller, queue in self._queues.items():
            if self.take(caller):
                waiter = queue.popleft()
                waiter.has_slot = True
                self.waiting -= 1
                if queue:
                    self._queues.move_to_end(caller)
                else:
                    del self._queues[caller]
                trio.lowlevel.reschedule(waiter.task)
                return True
        return False

    def _forget(self, caller: Hashable, waiter: _Waiter) -> None:
        queue = self._queues[caller]
        queue.remove(waiter)
        self.waiting -= 1
        if not queue:
            del self._queues[caller]
