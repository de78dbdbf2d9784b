"""How many tool calls run at once, how many may wait and for how long, and which one runs next. The limits are fair to callers.

A call is refused if too many wait already, or when it has waited too long. If the queue is full, the newest call of the caller
with the longest queue is refused, so that a flood is refused and not its victims.
"""

from collections.abc import Hashable
from typing import Final, Literal, final

import msgspec
import trio

from gatewayd.fairness.fair_slots import FairSlots

LARGE_BYTES: Final = 32 * 1024  # smaller arguments never wait for memory

CallRefusal = Literal["too_many_calls", "shutting_down"]


class CallLimits(msgspec.Struct, frozen=True):
    """The limits. `running` is above one pool's ten connections, so that decisions and audit writes overlap with execution. All
    running calls share one event loop, so `running_per_caller` bounds how long one caller delays another's call. `waiting_bytes`
    bounds the large arguments of waiting calls; one caller's may not exceed what it leaves free."""

    running: int = 32
    running_per_caller: int = 4
    waiting: int = 256
    waiting_per_caller: int = 128
    waiting_bytes: int = 32 * 1024 * 1024
    waiting_s: float = 5.0


class AdmissionStatistics(msgspec.Struct, frozen=True):
    """Counts of one admission, all of the same moment."""

    running: int
    waiting: int
    admitted: int  # since start
    refused: int  # since start
    draining: bool


@final
class Admission:
    """Slots for calls. `enter` either takes one, waits in the caller's own queue for one, or refuses."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits: Final = limits
        self._turns: Final = FairSlots(limits.running, limits.running_per_caller)
        self._waiting_bytes: dict[Hashable, int] = {}
        self._admitted = 0
        self._refused = 0
        self._draining = False

    def drain(self) -> None:
        """Refuses new calls from now on. Calls that run or wait keep their places."""
        self._draining = True

    async def enter(self, caller: Hashable, size_bytes: int = 0) -> CallRefusal | None:
        """None: a slot is taken and `leave` must follow. No checkpoint when a slot is free; cancelled while waiting: no slot."""
        if self._draining:
            self._refused += 1
            return "shutting_down"
        if self._turns.take(caller) or (self._may_wait(caller, size_bytes) and await self._wait(caller, size_bytes)):
            self._admitted += 1
            return None
        self._refused += 1
        return "too_many_calls"

    def leave(self, caller: Hashable) -> None:
        """Gives the slot of `caller` back."""
        self._turns.leave(caller)

    async def come_back(self, caller: Hashable) -> None:
        """Waits for a slot for a call that gave up its slot while it was held; `leave` must follow. The call is never refused,
        not even while draining. Cancelled: no slot."""
        while not self._turns.take(caller):
            if await self._turns.wait(caller):
                return

    def statistics(self) -> AdmissionStatistics:
        """The counts now."""
        turns = self._turns
        return AdmissionStatistics(turns.taken, turns.waiting, self._admitted, self._refused, self._draining)

    def _may_wait(self, caller: Hashable, size_bytes: int) -> bool:
        limits, turns = self._limits, self._turns
        mine = turns.waiting_of(caller)
        if mine >= limits.waiting_per_caller or not self._fits(caller, size_bytes):
            return False
        return turns.waiting < limits.waiting or turns.push_out(longer_than=mine + 1)

    def _fits(self, caller: Hashable, size_bytes: int) -> bool:
        left = self._limits.waiting_bytes - sum(self._waiting_bytes.values()) - size_bytes
        return size_bytes < LARGE_BYTES or self._waiting_bytes.get(caller, 0) + size_bytes <= left

    async def _wait(self, caller: Hashable, size_bytes: int) -> bool:
        counted = size_bytes if size_bytes >= LARGE_BYTES else 0
        if counted:
            self._waiting_bytes[caller] = self._waiting_bytes.get(caller, 0) + counted
        try:
            with trio.move_on_after(self._limits.waiting_s):
                return await self._turns.wait(caller)
        finally:
            if counted:
                self._forget_bytes(caller, counted)
        return False

    def _forget_bytes(self, caller: Hashable, size_bytes: int) -> None:
        self._waiting_bytes[caller] -= size_bytes
        if not self._waiting_bytes[caller]:
            del self._waiting_bytes[caller]
