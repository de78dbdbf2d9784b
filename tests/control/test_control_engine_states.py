"""One engine's states, on a clock that jumps: idle, replaced, ended, held off. Processes are stand-ins here."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

from gatewayd.control.engines.engine import IDLE_S, PATIENCE_S, Engine, EngineUnavailable, Wanted
from gatewayd.control.engines.process import EngineProcess, StartFailed
from gatewayd.control.engines.upstream import Upstream

SHOP = Wanted("org", "project", {"shop": "postgresql://one"})
MOVED = Wanted("org", "project", {"shop": "postgresql://two"})


class Process:
    """Ready after a second; ends when it is told to, or by itself."""

    def __init__(self, host: "Host", wanted: Wanted) -> None:
        self.upstream = Upstream(Path("/nonexistent"), "secret")
        self.wanted = wanted
        self.pid = len(host.processes) + 1
        self.gone = trio.Event()
        self.host = host
        host.running += 1
        assert host.running == 1, "two processes hold one folder"

    async def ready(self) -> None:
        await trio.sleep(1)
        if self.host.broken:
            raise StartFailed("it is broken")

    async def wait(self) -> int:
        await self.gone.wait()
        return 1

    async def end(self, grace_s: float) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(0.5)
        self.gone.set()
        self.host.running -= 1


class Host:
    def __init__(self, nursery: trio.Nursery) -> None:
        self.processes: list[Process] = []
        self.began: list[float] = []
        self.running = 0
        self.broken = False
        self.engine = Engine(self.start, grace_s=5)
        self.nursery = nursery

    async def start(self, wanted: Wanted) -> EngineProcess:
        self.processes.append(Process(self, wanted))
        self.began.append(trio.current_time())
        return cast(EngineProcess, self.processes[-1])

    async def call(self, wanted: Wanted = SHOP, for_s: float = 0.0) -> int:
        """The pid that answered."""
        with await self.engine.serving(wanted, self.nursery) as serving:
            await trio.sleep(for_s)
            return serving.pid


@pytest.fixture
async def host(autojump_clock: Any) -> AsyncIterator[Host]:
    async with trio.open_nursery() as nursery:
        yield Host(nursery)
        nursery.cancel_scope.cancel()


async def test_calls_share_a_start_and_then_its_process(host: Host, autojump_clock: Any) -> None:
    answers = []

    async def call() -> None:
        answers.append(await host.call())

    async with trio.open_nursery() as calls:
        for _ in range(5):
            calls.start_soon(call)
    assert [*answers, await host.call()] == [1] * 6


async def test_an_idle_engine_stops_and_the_next_call_starts_another(host: Host, autojump_clock: Any) -> None:
    await host.call()
    await trio.sleep(IDLE_S - 1)
    assert await host.call() == 1
    await trio.sleep(IDLE_S - 1)
    assert host.running == 1, "the call was a use"
    await trio.sleep(2)
    assert host.running == 0
    assert await host.call() == 2


async def test_a_call_in_progress_keeps_it_from_being_idle(host: Host, autojump_clock: Any) -> None:
    assert await host.call(for_s=3 * IDLE_S) == 1
    assert host.running == 1


async def test_a_call_that_comes_while_it_stops_waits_for_the_next(host: Host, autojump_clock: Any) -> None:
    await host.call()
    await trio.sleep(IDLE_S)
    await trio.testing.wait_all_tasks_blocked()
    assert host.running == 1, "it is ending"
    assert await host.call() == 2


async def test_another_address_ends_the_process_before_the_next_one_starts(host: Host, autojump_clock: Any) -> None:
    assert await host.call(SHOP) == 1
    assert await host.call(MOVED) == 2
    assert [each.wanted for each in host.processes] == [SHOP, MOVED]


async def test_who_waits_for_the_old_address_gets_the_new_engine(host: Host, autojump_clock: Any) -> None:
    answers: dict[str, int] = {}

    async def call(name: str, wanted: Wanted) -> None:
        answers[name] = await host.call(wanted)

    async with trio.open_nursery() as calls:
        calls.start_soon(call, "old", SHOP)
        await trio.sleep(0.5)
        calls.start_soon(call, "new", MOVED)
    assert answers["new"] == host.processes[-1].pid
    assert host.processes[-1].wanted == MOVED
    assert len(host.processes) <= 2


async def test_one_that_ends_by_itself_is_started_again_without_a_call_each_time_later(host: Host, autojump_clock: Any) -> None:
    await host.call()
    ended = []
    for _ in range(5):
        ended.append(trio.current_time())
        host.processes[-1].gone.set()
        await trio.sleep(20)
    pauses = [round(began - end) for began, end in zip(host.began[1:], ended, strict=True)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1] > 4) == (0, True)


async def test_a_start_that_fails_is_told_to_all_who_wait_and_then_held_off(host: Host, autojump_clock: Any) -> None:
    host.broken = True
    told: list[str] = []

    async def call() -> None:
        try:
            await host.call()
        except EngineUnavailable as unavailable:
            told.append(str(unavailable))

    async with trio.open_nursery() as calls:
        for _ in range(3):
            calls.start_soon(call)
    assert told == ["it is broken"] * 3
    assert len(host.processes) == 1
    while True:
        with pytest.raises(EngineUnavailable) as refused:
            await host.call()
        if refused.value.retry_after_s:
            break
    assert refused.value.retry_after_s > PATIENCE_S
    started = len(host.processes)
    with pytest.raises(EngineUnavailable):
        await host.call()
    assert len(host.processes) == started, "it is not tried at each call"
    host.broken = False
    await trio.sleep(refused.value.retry_after_s)
    assert await host.call() == started + 1


async def test_the_end_of_the_service_ends_the_process(autojump_clock: Any) -> None:
    async with trio.open_nursery() as nursery:
        host = Host(nursery)
        await host.call()
        nursery.cancel_scope.cancel()
    assert host.running == 0
