"""Slots, queues and turns."""

from collections import Counter

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gatewayd.fairness.admission import Admission, CallLimits


async def test_a_free_slot_costs_no_checkpoint() -> None:
    admission = Admission(CallLimits(running=1))
    with trio.CancelScope() as scope:
        scope.cancel()
        assert await admission.enter("a") is None  # a checkpoint would raise Cancelled
        admission.leave("a")
    assert not scope.cancelled_caught
    assert admission.statistics().running == 0


async def test_callers_take_turns() -> None:
    admission = Admission(CallLimits(running=1, waiting=100, waiting_per_caller=100))
    served: list[str] = []

    async def call(caller: str) -> None:
        assert await admission.enter(caller) is None
        served.append(caller)
        await trio.lowlevel.checkpoint()
        admission.leave(caller)

    assert await admission.enter("first") is None
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(call, "flood")
        await wait_all_tasks_blocked()
        for _ in range(3):
            nursery.start_soon(call, "quiet")
        await wait_all_tasks_blocked()
        admission.leave("first")
    assert served[:6] == ["flood", "quiet"] * 3
    assert Counter(served) == {"flood": 10, "quiet": 3}
    assert admission.statistics().waiting == admission.statistics().running == 0


async def test_one_caller_does_not_take_every_slot() -> None:
    admission = Admission(CallLimits(running=4))
    entered: list[str] = []

    async def call(caller: str) -> None:
        await admission.enter(caller)
        entered.append(caller)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(call, "greedy")
        await wait_all_tasks_blocked()
        assert entered == ["greedy"] * 2
        nursery.start_soon(call, "other")
        await wait_all_tasks_blocked()
        assert entered == ["greedy", "greedy", "other"]
        admission.leave("other")  # its slot is free, and still not for the greedy one
        await wait_all_tasks_blocked()
        assert admission.statistics().running == 2
        admission.leave("greedy")
        admission.leave("greedy")
    assert entered.count("greedy") == 4


async def test_full_queues_refuse_at_once() -> None:
    admission = Admission(CallLimits(running=1, waiting=3, waiting_per_caller=1))
    await admission.enter("a")
    async with trio.open_nursery() as nursery:
        for caller in ("a", "b", "c"):
            nursery.start_soon(admission.enter, caller)
        await wait_all_tasks_blocked()
        assert await admission.enter("a") == "too_many_calls"  # its own queue
        assert await admission.enter("d") == "too_many_calls"  # everybody's
        assert admission.statistics().refused == 2
        nursery.cancel_scope.cancel()
    assert admission.statistics().waiting == 0


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    admission = Admission(CallLimits(running=1))
    await admission.enter("a")
    with trio.move_on_after(0) as scope:
        await admission.enter("b")
    assert scope.cancelled_caught
    admission.leave("a")
    assert admission.statistics().running == admission.statistics().waiting == 0
    assert await admission.enter("b") is None


async def test_draining_refuses_new_calls_and_keeps_the_waiting() -> None:
    admission = Admission(CallLimits(running=1))
    await admission.enter("a")
    waited: list[str | None] = []

    async def wait() -> None:
        waited.append(await admission.enter("b"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        admission.drain()
        assert await admission.enter("c") == "shutting_down"
        admission.leave("a")
    assert waited == [None]


async def test_a_full_queue_makes_room_at_the_cost_of_the_longest() -> None:
    admission = Admission(CallLimits(running=1, waiting=3))
    await admission.enter("first")
    ended: list[tuple[str, str | None]] = []

    async def call(caller: str) -> None:
        ended.append((caller, await admission.enter(caller)))

    async with trio.open_nursery() as nursery:
        for caller in ("flood", "flood", "flood"):
            nursery.start_soon(call, caller)
        await wait_all_tasks_blocked()
        nursery.start_soon(call, "quiet")
        await wait_all_tasks_blocked()
        assert ended == [("flood", "too_many_calls")]  # the latest of the flood, not the quiet one
        nursery.start_soon(call, "flood")
        await wait_all_tasks_blocked()
        assert ended == [("flood", "too_many_calls")] * 2  # it pushes out nobody, least of all itself
        assert admission.statistics().waiting == 3
        nursery.cancel_scope.cancel()
    assert admission.statistics().waiting == 0


async def test_nobody_waits_for_ever(autojump_clock: MockClock) -> None:
    admission = Admission(CallLimits(running=1, waiting_s=5))
    await admission.enter("slow")
    began = trio.current_time()
    assert await admission.enter("patient") == "too_many_calls"
    assert trio.current_time() - began == 5
    assert admission.statistics().waiting == 0
    assert admission.statistics().refused == 1
    admission.leave("slow")
    assert await admission.enter("patient") is None


async def test_large_arguments_wait_within_a_bound_of_memory() -> None:
    admission = Admission(CallLimits(running=1, waiting_bytes=1_000_000))
    await admission.enter("first")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admission.enter, "large", 400_000)
        await wait_all_tasks_blocked()
        assert await admission.enter("large", 400_000) == "too_many_calls"  # it would hold more than it leaves free
        nursery.start_soon(admission.enter, "other", 250_000)
        nursery.start_soon(admission.enter, "small", 1000)
        await wait_all_tasks_blocked()
        assert await admission.enter("third", 400_000) == "too_many_calls"  # everybody's
        assert admission.statistics().waiting == 3
        nursery.cancel_scope.cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admission.enter, "large", 500_000)  # what left gave its bytes back
        await wait_all_tasks_blocked()
        assert admission.statistics().waiting == 1
        nursery.cancel_scope.cancel()


def test_leaving_without_a_slot_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Admission(CallLimits()).leave("nobody")
