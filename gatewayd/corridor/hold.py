"""Held writes: which calls wait for a decision, how long, how many at once, and what ends a wait (docs/approvals.md, The hold).

A held call occupies neither a database session nor a slot of a running call. It may be cancelled at any await: the wait then ends
and the request stays with the gate. Nothing is decided here; the gate's answer is returned to the pipeline.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Literal, Protocol

import msgspec
import trio

from gatewayd.approvals.gate import Gate, Unavailable
from gatewayd.approvals.messages import Approved, Expired, GateAnswer, GateAsk, GateDenied, Outcome, Pending, Preview, Wait
from gatewayd.approvals.outcomes import OutcomeReporter
from gatewayd.corridor.counted import CountedWrites

HELD: Final = 256
HELD_OF_ONE: Final = 8
ASK_BEYOND_HOLD_S: Final = 5.0
"""How long after `hold_s` the gate may still answer the first question."""
WAIT_BEYOND_HOLD_S: Final = 1.0
PROGRESS_S: Final = 5.0
LAST_ASK_S: Final = 2.0
"""How long a request in progress may still take when the hold is ended. Without its answer the client has no id to poll with."""
_PROGRESS_SEND_S: Final = 30.0
_PAUSE_S: Final = 0.25  # between two waits at a gate that answers `pending` too soon

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
Ended = Literal["undecided", "stopping", "crowded", "silent"]
"""Why a hold ended without a decision: its time is over, the gateway is stopping or paused, too many calls are held, or the gate
accepted the request and then stopped answering."""


class PlaceOfCall(Protocol):
    """The slot of a running call (`fairness/admission.py`)."""

    def give_up(self) -> None:
        """Frees the slot while the call is held."""

    async def take_back(self) -> None:
        """Returns when there is a slot again, however long that takes: an approved write must not be refused for load."""


class Client(msgspec.Struct, frozen=True):
    """The client that waits for a call's answer. `address` identifies a client without a token; `progress` is set if the client
    asked for progress notifications."""

    address: str = ""
    progress: Progress | None = None
    place: PlaceOfCall | None = None


NOBODY: Final = Client()


class StillUndecided(msgspec.Struct, frozen=True):
    """The hold ended before a decision; the request stays with the gate."""

    pending: Pending
    why: Ended


class GateSilent(msgspec.Struct, frozen=True):
    """The gate gave no answer, or an invalid one."""

    reason: str
    retry_after_s: int | None = None


HoldOutcome = Approved | GateDenied | Expired | StillUndecided | GateSilent
HeldOutcome = Literal["approved", "denied", "expired", "pending", "unavailable", "cancelled"]
HELD_OUTCOMES: Final[dict[type, HeldOutcome]] = {
    Approved: "approved",
    GateDenied: "denied",
    Expired: "expired",
    StillUndecided: "pending",
    GateSilent: "unavailable",
}


class HoldStatistics(msgspec.Struct, frozen=True):
    """The number of calls that are held now."""

    held: int


class _Hold:
    """One held call. `end` may be called during any of its steps."""

    __slots__ = ("_deadline_s", "_scope", "key", "why")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.why: Ended = "undecided"
        self._scope: trio.CancelScope | None = None
        self._deadline_s = 0.0

    def end(self, why: Ended) -> None:
        self.why = why
        if self._scope is not None:
            self._scope.deadline = min(self._scope.deadline, trio.current_time() + self._deadline_s)

    def step(self, *, within_s: float, last_s: float) -> trio.CancelScope:
        """The cancel scope of the next step: `within_s` seconds, and `last_s` from the moment when the hold is ended."""
        self._deadline_s = last_s
        left_s = within_s if self.why == "undecided" else min(within_s, last_s)
        self._scope = trio.CancelScope(deadline=trio.current_time() + left_s)
        return self._scope


class HeldWrites:
    """The gate and all calls that wait for it. The daemon creates one and runs `reporter.run` beside it."""

    def __init__(self, gate: Gate, *, held: int = HELD, held_of_one: int = HELD_OF_ONE) -> None:
        self.gate: Final = gate
        self.reporter: Final = OutcomeReporter(gate)
        self.on_end: Callable[[HeldOutcome, float], None] = _ignore
        """Called with the outcome and the seconds of each hold that ends."""
        self._most = held
        self._most_of_one = held_of_one
        self._queues: dict[Hashable, list[_Hold]] = {}
        self._count = 0
        self._is_draining = False
        self._spent: dict[str, str] = {}  # approval_id -> query_id
        self._counted = CountedWrites()

    def drain(self) -> None:
        """Ends all holds, present and future."""
        self._is_draining = True
        self.end_all()

    def end_all(self) -> None:
        """Ends the present holds: each call answers at once that nobody has decided yet."""
        for queue in list(self._queues.values()):
            for hold in list(queue):
                self._leave(hold)
                hold.end("stopping")

    def statistics(self) -> HoldStatistics:
        return HoldStatistics(self._count)

    async def decided(
        self, ask: GateAsk, hold_s: float, client: Client, count: Callable[[], Awaitable[Preview]] | None
    ) -> HoldOutcome:
        """The decision about `ask`, if there is one within `hold_s`. Raises only Cancelled.

        `count` makes the preview, if the policy wants one; it is called once for each new request. When this returns Approved,
        the client has its slot again.
        """
        began = trio.current_time()
        outcome: HeldOutcome = "cancelled"
        found: HoldOutcome | None = None
        hold = self._enter(ask.mcp_token_id or client.address)
        is_waiting = hold is not None and hold_s > 0
        if hold is not None and client.place is not None:
            client.place.give_up()
        try:
            async with trio.open_nursery() as nursery:
                if client.progress is not None and is_waiting:
                    nursery.start_soon(_tell, client.progress, began, hold_s)
                found = await self._decided(ask, began + hold_s if is_waiting else began, hold, count)
                nursery.cancel_scope.cancel()
            if isinstance(found, Approved) and client.place is not None:
                if hold is not None:
                    self._leave(hold)
                await client.place.take_back()
            outcome = HELD_OUTCOMES[type(found)]
            return found
        except trio.Cancelled:
            if isinstance(found, Approved):  # the approval is used up, and nothing ran
                self.reporter.report(Outcome(ask.query_id, "failed"))
            raise
        finally:
            if hold is not None:
                self._leave(hold)
            self.on_end(outcome, trio.current_time() - began)

    # -- one hold

    async def _decided(
        self, ask: GateAsk, until: float, hold: _Hold | None, count: Callable[[], Awaitable[Preview]] | None
    ) -> HoldOutcome:
        hold, is_crowded = hold or _Hold(None), hold is None
        if is_crowded:
            hold.why = "crowded"
        elif self._is_draining:
            hold.why = "stopping"
        ask = msgspec.structs.replace(ask, preview=await self._preview(ask, hold, count))
        answer = await self._asked(ask, until, hold)
        while isinstance(answer, Pending):
            self._counted.pending(ask, answer.expires_at)
            left_s = until - trio.current_time()
            if left_s <= 0 or hold.why != "undecided":
                return StillUndecided(answer, hold.why)
            asked_at = trio.current_time()
            later = await self._waited(Wait(answer.approval_id, ask.query_id, ask.mcp_token_id, round(left_s, 3)), left_s, hold)
            if isinstance(later, StillUndecided | None):
                return later or StillUndecided(answer, hold.why)
            answer = later
            if isinstance(answer, Pending) and trio.current_time() - asked_at < _PAUSE_S:
                with hold.step(within_s=_PAUSE_S, last_s=0):
                    await trio.sleep_forever()
        if isinstance(answer, GateSilent):
            return answer
        if isinstance(answer, Approved):
            self._counted.forget(ask)
            return self._spend(answer, ask.query_id)
        return answer

    async def _preview(self, ask: GateAsk, hold: _Hold, count: Callable[[], Awaitable[Preview]] | None) -> Preview | None:
        if count is None:
            return None
        known = self._counted.get(ask)
        if known is not None:
            return known
        if hold.why != "undecided":
            return Preview(None, why="too many writes wait to be counted")
        with hold.step(within_s=ASK_BEYOND_HOLD_S, last_s=0):
            found = await count()
            self._counted.keep(ask, found)
            return found
        return Preview(None, why="the database was too busy to count")

    async def _asked(self, ask: GateAsk, until: float, hold: _Hold) -> GateAnswer | GateSilent:
        """Sends the request. If the answer is lost it is sent once more, which is safe: the gate keeps claims by query_id."""
        ask = msgspec.structs.replace(ask, hold_s=max(0.0, round(until - trio.current_time(), 3)))
        ends = max(until, trio.current_time()) + ASK_BEYOND_HOLD_S
        for is_last in (False, True):
            with hold.step(within_s=max(ends - trio.current_time(), 0), last_s=LAST_ASK_S) as scope:
                try:
                    return await self.gate.ask(ask, max(ends - trio.current_time(), 0))
                except Unavailable as failure:
                    if is_last or not failure.is_lost or ends - trio.current_time() <= 0:
                        return GateSilent(failure.reason, failure.retry_after_s)
            if scope.cancelled_caught:
                break
        return GateSilent("it did not answer in time")

    async def _waited(self, wait: Wait, left_s: float, hold: _Hold) -> GateAnswer | StillUndecided | None:
        """The gate's answer to one wait, or None if none came and waiting again is useless."""
        for is_last in (False, True):
            with hold.step(within_s=left_s + WAIT_BEYOND_HOLD_S, last_s=0) as scope:
                try:
                    return await self.gate.wait(wait, left_s + WAIT_BEYOND_HOLD_S)
                except Unavailable as failure:
                    if is_last or not failure.is_lost:
                        hold.why = "silent" if hold.why == "undecided" else hold.why
                        return None
            if scope.cancelled_caught:
                return None
        return None

    def _spend(self, approved: Approved, query_id: str) -> HoldOutcome:
        """Accepts an approval with an id once only, even if the gate gives it to several queries."""
        if approved.approval_id is not None:
            if self._spent.setdefault(approved.approval_id, query_id) != query_id:
                return GateSilent("its answer does not count: this approval was used before")
            if len(self._spent) > 4096:
                del self._spent[next(iter(self._spent))]
        return approved

    # -- the bounds

    def _enter(self, key: Hashable) -> _Hold | None:
        """Adds a hold, or returns None if the caller's bound is reached. At the bound for all callers, the newest hold of the
        longest queue ends in its place."""
        mine = self._queues.get(key, [])
        if len(mine) >= self._most_of_one:
            return None
        if self._count >= self._most:
            longest = max(self._queues.values(), key=len)
            if len(longest) <= len(mine) + 1:
                return None
            pushed = longest[-1]
            self._leave(pushed)
            pushed.end("crowded")
        hold = _Hold(key)
        self._queues.setdefault(key, []).append(hold)
        self._count += 1
        return hold

    def _leave(self, hold: _Hold) -> None:
        queue = self._queues.get(hold.key, [])
        if hold in queue:
            queue.remove(hold)
            self._count -= 1
            if not queue:
                del self._queues[hold.key]


async def _tell(progress: Progress, began: float, hold_s: float) -> None:
    """Sends progress every few seconds. A message that is being written is not cancelled: that would end the connection."""
    while True:
        await trio.sleep(PROGRESS_S)
        waited_s = trio.current_time() - began
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _PROGRESS_SEND_S):
            await progress(round(waited_s, 1), hold_s, "this write waits for a person's approval")


def _ignore(_outcome: HeldOutcome, _seconds: float) -> None:
    return
