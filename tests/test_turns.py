"""Slots shared in turns: how many a caller may hold, and who is served next."""

from collections.abc import Hashable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gatewayd.fairness.fair_slots import FairSlots


def test_a_caller_holds_at_most_what_it_leaves_free() -> None:
    turns = FairSlots(10)
    held = {caller: sum(turns.take(caller) for _ in range(20)) for caller in ("a", "b", "c")}
    assert held == {"a": 5, "b": 3, "c": 1}
    assert turns.take("d")  # whoever comes next finds one
    assert not turns.take("e")
    assert turns.taken == 10


def test_a_caller_holds_at_most_so_many() -> None:
    turns = FairSlots(10, 2)
    assert [turns.take("a") for _ in range(3)] == [True, True, False]
    assert turns.take("b")


def test_the_gateway_itself_may_hold_all() -> None:
    turns = FairSlots(3)
    assert [turns.take(None) for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("size", [1, 2])
def test_one_slot_is_for_whoever_asks(size: int) -> None:
    turns = FairSlots(size)
    assert turns.take("a")
    turns.leave("a")
    assert turns.take("a")


async def test_a_free_slot_is_kept_for_others() -> None:
    turns = FairSlots(4)
    served: list[Hashable] = []

    async def wait(caller: Hashable) -> None:
        assert await turns.wait(caller)
        served.append(caller)

    async with trio.open_nursery() as nursery:
        assert turns.take("greedy")
        assert turns.take("greedy")
        nursery.start_soon(wait, "greedy")
        await wait_all_tasks_blocked()
        assert served == []
        assert turns.take("other")
        turns.leave("other")
        await wait_all_tasks_blocked()
        assert served == []  # it would hold three of four
        turns.leave("greedy")
        await wait_all_tasks_blocked()
        assert served == ["greedy"]


async def test_callers_are_served_in_turns_and_their_own_in_order() -> None:
    turns = FairSlots(1)
    served: list[str] = []

    async def work(caller: str, number: int) -> None:
        await turns.wait(caller)
        served.append(f"{caller}{number}")
        turns.leave(caller)

    assert turns.take("first")
    async with trio.open_nursery() as nursery:
        for caller, count in (("flood", 5), ("b", 2), ("c", 1)):
            for number in range(count):
                nursery.start_soon(work, caller, number)
                await wait_all_tasks_blocked()
        turns.leave("first")
    assert served == ["flood0", "b0", "c0", "flood1", "b1", "flood2", "flood3", "flood4"]
    assert turns.taken == turns.waiting == 0


async def test_one_leaving_may_let_several_in() -> None:
    """What the leaving one may hold again, and what its slot gives another."""
    turns = FairSlots(4)
    entered: list[str] = []

    async def wait(caller: str) -> None:
        await turns.wait(caller)
        entered.append(caller)

    assert [turns.take("a"), turns.take("a"), turns.take("b")] == [True] * 3
    async with trio.open_nursery() as nursery:
        for caller in ("b", "a"):
            nursery.start_soon(wait, caller)
        await wait_all_tasks_blocked()
        assert entered == []
        turns.leave("a")
        await wait_all_tasks_blocked()
        assert sorted(entered) in (["a"], ["b"])
        turns.leave(entered[0])
        await wait_all_tasks_blocked()
        assert sorted(entered) == ["a", "b"]


async def test_a_cancelled_wait_takes_nothing() -> None:
    turns = FairSlots(1)
    assert turns.take("a")
    with trio.move_on_after(0):
        await turns.wait("b")
    assert turns.waiting == 0
    turns.leave("a")
    assert turns.taken == 0


async def test_the_longest_queue_is_pushed_out_from_its_end() -> None:
    turns = FairSlots(1)
    ended: list[tuple[str, bool]] = []

    async def wait(name: str) -> None:
        ended.append((name, await turns.wait(name[0])))

    assert turns.take("x")
    async with trio.open_nursery() as nursery:
        for name in ("a1", "a2", "a3", "b1"):
            nursery.start_soon(wait, name)
            await wait_all_tasks_blocked()
        assert not turns.push_out(longer_than=3)
        assert turns.push_out(longer_than=2)
        await wait_all_tasks_blocked()
        assert ended == [("a3", False)]
        assert turns.waiting_of("a") == 2
        nursery.cancel_scope.cancel()
