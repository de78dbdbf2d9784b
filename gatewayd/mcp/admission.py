"""How many tool calls run at once, how many may wait, and whose turn it is (issue of overload: a stated limit, fair per caller).

Callers take turns: a slot that becomes free goes to the caller served longest ago, so a flood by one delays the others by
one call each. Nothing here knows what a call is.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final, Literal, final

import msgspec
import trio

Refusal = Literal["too_many_calls", "shutting_down"]


class CallLimits(msgspec.Struct, frozen=True):
    """`running` is above one pool's ten connections, so that decisions and audit writes overlap with execution."""

    running: int = 32
    running_per_caller: int = 16
    waiting: int = 512
    waiting_per_caller: int = 128


class AdmissionStatistics(msgspec.Struct, frozen=True):
    running: int
    waiting: int
    admitted: int  # since start
    refused: int  # since start
    draining: bool


@final
class Admission:
    """Slots for calls. `enter` either takes one, waits in the caller's own queue for one, or refuses at once."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits: Final = limits
        self._running: dict[Hashable, int] = {}
        self._total = 0
        self._queues: OrderedDict[Hashable, deque[trio.lowlevel.Task]] = OrderedDict()
        self._waiting = 0
        self._admitted = 0
        self._refused = 0
        self._draining = False

    def drain(self) -> None:
        """From now on new calls are refused; those that run or wait already keep their places."""
        self._draining = True

    async def enter(self, caller: Hashable) -> Refusal | None:
        """None: a slot is taken and `leave` must follow. No checkpoint when a slot is free; cancelled while waiting: no slot."""
        limits = self._limits
        if self._draining:
            self._refused += 1
            return "shutting_down"
        mine = self._running.get(caller, 0)
        if self._total < limits.running and mine < limits.running_per_caller:
            self._take(caller)
            return None
        queue = self._queues.get(caller)
        if self._waiting >= limits.waiting or (queue is not None and len(queue) >= limits.waiting_per_caller):
            self._refused += 1
            return "too_many_calls"
        task = trio.lowlevel.current_task()
        if queue is None:
            queue = self._queues[caller] = deque()
        queue.append(task)
        self._waiting += 1

        def abort(_: object) -> trio.lowlevel.Abort:
            self._forget(caller, task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        return None

    def leave(self, caller: Hashable) -> None:
        left = self._running[caller] - 1
        if left:
            self._running[caller] = left
        else:
            del self._running[caller]
        self._total -= 1
        if self._queues:
            self._admit_next()

    def statistics(self) -> AdmissionStatistics:
        return AdmissionStatistics(self._total, self._waiting, self._admitted, self._refused, self._draining)

    def _take(self, caller: Hashable) -> None:
        self._running[caller] = self._running.get(caller, 0) + 1
        self._total += 1
        self._admitted += 1

    def _admit_next(self) -> None:
        for caller in self._queues:
            if self._running.get(caller, 0) < self._limits.running_per_caller:
                queue = self._queues[caller]
                task = queue.popleft()
                self._waiting -= 1
                if queue:
                    self._queues.move_to_end(caller)
                else:
                    del self._queues[caller]
                self._take(caller)
                trio.lowlevel.reschedule(task)
                return

    def _forget(self, caller: Hashable, task: trio.lowlevel.Task) -> None:
        queue = self._queues[caller]
        queue.remove(task)
        self._waiting -= 1
        if not queue:
            del self._queues[caller]
