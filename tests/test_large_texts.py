"""The thread for large texts: one at a time, callers in turns, and the loop is not held up."""

import gc
import sys
import threading

import trio
from trio.testing import wait_all_tasks_blocked

from gatewayd.fairness import large_texts
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement


async def test_callers_take_turns_and_one_works_at_a_time() -> None:
    served: list[str] = []
    working = 0
    first = threading.Event()

    def work(name: str) -> None:
        nonlocal working
        working += 1
        assert working == 1
        if name == "first":
            assert first.wait(60)
        served.append(name)
        working -= 1

    async def ask(name: str) -> None:
        await large_texts.in_thread(lambda: work(name), name.rstrip("0123456789"))

    async with trio.open_nursery() as nursery:
        for name in ("first", "flood1", "flood2", "flood3", "quiet1"):
            nursery.start_soon(ask, name)
            await trio.testing.wait_all_tasks_blocked()
        first.set()
    assert served == ["first", "flood1", "quiet1", "flood2", "flood3"]


async def test_a_cancelled_wait_does_nothing_and_a_shielded_one_goes_on() -> None:
    begun = threading.Event()
    end = threading.Event()
    done: list[str] = []

    def hold() -> None:
        begun.set()
        assert end.wait(60)

    async def ask(name: str, *, shielded: bool) -> None:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await large_texts.in_thread(lambda: done.append(name), name, shielded=shielded)

    scopes: list[trio.CancelScope] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(large_texts.in_thread, hold)
        await trio.to_thread.run_sync(begun.wait)
        nursery.start_soon(lambda: ask("plain", shielded=False))
        nursery.start_soon(lambda: ask("shielded", shielded=True))
        await wait_all_tasks_blocked()
        for scope in scopes:
            scope.cancel()
        await wait_all_tasks_blocked()
        end.set()
    assert done == ["shielded"]


async def test_a_large_tree_sets_off_no_full_collection() -> None:
    full: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            full.append(threading.get_ident())

    sql = "SELECT id FROM users WHERE " + " OR ".join(f"lower(name) = 'x{number}'" for number in range(7000))
    before = gc.get_threshold(), sys.getswitchinterval()
    idents: list[int] = []

    def work() -> object:
        idents.append(threading.get_ident())
        return analyze(sql)

    gc.callbacks.append(note)
    try:
        assert isinstance(await large_texts.in_thread(work), Statement)
    finally:
        gc.callbacks.remove(note)
    assert idents[0] not in full
    assert (gc.get_threshold(), sys.getswitchinterval()) == before
