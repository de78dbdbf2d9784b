"""The wait for a decision: how long, how many, in whose place, and what ends it (docs/approvals.md, The hold)."""

from collections.abc import Callable

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.approvals.gate import Unavailable
from gatewayd.approvals.messages import Approved, Expired, GateAnswer, GateAsk, GateDenied, Outcome, Pending, Preview, Wait
from gatewayd.corridor.hold import HELD, HELD_OF_ONE, NOBODY, Client, GateSilent, HeldWrites, HoldOutcome, StillUndecided
from tests.approvals.desks import an_ask
from tests.approvals.gates import FAR, ToldGate, approve

Clock = trio.testing.MockClock


def pending(number: int = 1) -> Pending:
    return Pending(approval_id=f"request-{number}", expires_at=FAR)


class Place:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.free = trio.Event()
        self.free.set()

    def give_up(self) -> None:
        self.said.append("gave up")

    async def take_back(self) -> None:
        await self.free.wait()
        self.said.append("took back")


async def in_background(
    nursery: trio.Nursery, approvals: HeldWrites, ask: GateAsk, client: Client = NOBODY, hold_s: float = 20
) -> list[HoldOutcome]:
    """The list gets what is decided, once it is."""
    found: list[HoldOutcome] = []

    async def wait() -> None:
        found.append(await approvals.decided(ask, hold_s, client, None))

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    return found


async def test_undecided_after_hold_s(autojump_clock: Clock) -> None:
    gate, began = ToldGate(), trio.current_time()
    assert await HeldWrites(gate).decided(an_ask(), 20, NOBODY, None) == StillUndecided(pending(), "undecided")
    assert 20 <= trio.current_time() - began <= 21
    assert gate.asked[0].hold_s == gate.waits[0].wait_s == 20


async def test_hold_of_0_s_asks_and_does_not_wait(autojump_clock: Clock) -> None:
    gate, began = ToldGate(), trio.current_time()
    assert await HeldWrites(gate).decided(an_ask(), 0, NOBODY, None) == StillUndecided(pending(), "undecided")
    assert trio.current_time() == began
    assert gate.waits == []


async def test_a_gate_that_holds_the_first_question_has_five_seconds_more(autojump_clock: Clock) -> None:
    gate, began = ToldGate(), trio.current_time()

    async def late(_: GateAsk) -> GateAnswer:
        await trio.sleep(26)
        return Approved()

    gate.on_ask = late
    assert isinstance(await HeldWrites(gate).decided(an_ask(), 20, NOBODY, None), GateSilent)
    assert trio.current_time() - began == 25


async def test_a_gate_without_wait_is_not_waited_for(autojump_clock: Clock) -> None:
    gate, began = ToldGate(), trio.current_time()

    async def no_such_call(_: Wait) -> None:
        return None

    gate.on_wait = no_such_call
    assert await HeldWrites(gate).decided(an_ask(), 20, NOBODY, None) == StillUndecided(pending(), "undecided")
    assert trio.current_time() == began


async def test_a_gate_that_answers_pending_too_soon_is_asked_again_with_pauses(autojump_clock: Clock) -> None:
    gate = ToldGate()

    async def soon(_: Wait) -> GateAnswer:
        return pending() if len(gate.waits) < 5 else GateDenied(by="ben")

    gate.on_wait = soon
    began = trio.current_time()
    assert await HeldWrites(gate).decided(an_ask(), 20, NOBODY, None) == GateDenied(by="ben")
    assert trio.current_time() - began == 1


@pytest.mark.parametrize("at", ["ask", "wait"])
async def test_an_answer_that_was_lost_is_asked_for_once_more(at: str, autojump_clock: Clock) -> None:
    gate = ToldGate()
    calls = 0

    async def lossy(_: object) -> GateAnswer:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Unavailable("ReadError", is_lost=True)
        return Approved(by="ann")

    if at == "ask":
        gate.on_ask = lossy
    else:
        gate.on_wait = lossy
    assert await HeldWrites(gate).decided(an_ask(), 20, NOBODY, None) == Approved(by="ann")
    assert {ask.query_id for ask in gate.asked} | {wait.query_id for wait in gate.waits} == {"Q1"}


@pytest.mark.parametrize("is_lost", [True, False])
async def test_a_gate_that_falls_silent_leaves_the_request(is_lost: bool, autojump_clock: Clock) -> None:
    gate = ToldGate()

    async def away(_: Wait) -> GateAnswer:
        raise Unavailable("ReadError", is_lost=is_lost)

    gate.on_wait = away
    assert await HeldWrites(gate).decided(an_ask(), 20, NOBODY, None) == StillUndecided(pending(), "silent")
    assert len(gate.waits) == 1 + is_lost


async def test_an_approval_that_names_itself_is_taken_once(autojump_clock: Clock) -> None:
    gate = ToldGate()

    async def same(_: GateAsk) -> GateAnswer:
        return Approved(approval_id="A1")

    gate.on_ask = same
    approvals = HeldWrites(gate)
    assert isinstance(await approvals.decided(an_ask("Q1"), 20, NOBODY, None), Approved)
    assert isinstance(await approvals.decided(an_ask("Q2"), 20, NOBODY, None), GateSilent)
    assert isinstance(await approvals.decided(an_ask("Q1"), 20, NOBODY, None), Approved)


async def test_a_request_that_changes_its_id_goes_on_under_the_new_one(autojump_clock: Clock) -> None:
    """Two identical calls: the other one took the approval, so this one's request is a new one."""
    gate = ToldGate()

    async def taken(wait: Wait) -> GateAnswer:
        if wait.approval_id == "request-1":
            return pending(2)
        await trio.sleep_forever()
        raise AssertionError

    gate.on_wait = taken
    assert await HeldWrites(gate).decided(an_ask(), 20, NOBODY, None) == StillUndecided(pending(2), "undecided")


# -- places and bounds


async def test_the_place_is_given_up_and_taken_back_for_what_may_run(autojump_clock: Clock) -> None:
    place, gate = Place(), ToldGate()
    gate.on_wait = approve
    place.free = trio.Event()
    async with trio.open_nursery() as nursery:
        found = await in_background(nursery, HeldWrites(gate), an_ask(), Client(place=place))
        assert (found, place.said) == ([], ["gave up"])
        place.free.set()
    assert isinstance(found[0], Approved)
    assert place.said == ["gave up", "took back"]


@pytest.mark.parametrize("decision", [GateDenied(), Expired()])
async def test_what_may_not_run_takes_no_place(decision: GateAnswer, autojump_clock: Clock) -> None:
    place, gate = Place(), ToldGate()

    async def decide(_: Wait) -> GateAnswer:
        return decision

    gate.on_wait = decide
    assert await HeldWrites(gate).decided(an_ask(), 20, Client(place=place), None) == decision
    assert place.said == ["gave up"]


@pytest.mark.parametrize(
    ("ask", "client", "other"),
    [
        (an_ask(token_id="T1"), NOBODY, (an_ask(token_id="T2"), NOBODY)),
        (an_ask(), Client(address="10.0.0.1"), (an_ask(), Client(address="10.0.0.2"))),
        (an_ask(), NOBODY, (an_ask(token_id="T1"), NOBODY)),
    ],
    ids=["token", "address", "stdio"],
)
async def test_the_ninth_of_one_is_not_held(
    ask: GateAsk, client: Client, other: tuple[GateAsk, Client], autojump_clock: Clock
) -> None:
    approvals, place = HeldWrites(ToldGate()), Place()
    async with trio.open_nursery() as nursery:
        for _ in range(HELD_OF_ONE):
            assert await in_background(nursery, approvals, ask, client) == []
        ninth = await in_background(nursery, approvals, ask, msgspec.structs.replace(client, place=place))
        assert isinstance(ninth[0], StillUndecided)
        assert ninth[0].why == "crowded"
        assert place.said == []  # its question is short, and bounded by the places of running calls
        assert await in_background(nursery, approvals, *other) == []
        assert approvals.statistics().held == HELD_OF_ONE + 1
        nursery.cancel_scope.cancel()
    assert approvals.statistics().held == 0


async def test_past_256_the_newest_of_the_longest_queue_goes(autojump_clock: Clock) -> None:
    approvals = HeldWrites(ToldGate())
    async with trio.open_nursery() as nursery:
        crowd = [(number, await in_background(nursery, approvals, an_ask(token_id=f"T{number // 8}"))) for number in range(HELD)]
        assert approvals.statistics().held == HELD
        newcomer = await in_background(nursery, approvals, an_ask(token_id="new"))
        assert newcomer == []
        ended = [number for number, found in crowd if found]
        assert len(ended) == 1
        assert ended[0] % 8 == 7
        [gone] = crowd[ended[0]][1]
        assert isinstance(gone, StillUndecided)
        assert gone.why == "crowded"
        assert approvals.statistics().held == HELD
        nursery.cancel_scope.cancel()


async def test_where_all_queues_are_as_short_the_newcomer_goes(autojump_clock: Clock) -> None:
    approvals = HeldWrites(ToldGate(), held=4)
    async with trio.open_nursery() as nursery:
        for number in range(4):
            assert await in_background(nursery, approvals, an_ask(token_id=f"T{number}")) == []
        newcomer = await in_background(nursery, approvals, an_ask(token_id="new"))
        assert isinstance(newcomer[0], StillUndecided)
        nursery.cancel_scope.cancel()


# -- ends


async def test_draining_ends_all_at_once_and_holds_no_more(autojump_clock: Clock) -> None:
    gate = ToldGate()
    approvals = HeldWrites(gate)
    async with trio.open_nursery() as nursery:
        held = [await in_background(nursery, approvals, an_ask(f"Q{n}", token_id=f"T{n}")) for n in range(5)]
        began = trio.current_time()
        approvals.drain()
        await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == began
    assert all(found == [StillUndecided(pending(n + 1), "stopping")] for n, found in enumerate(held))
    assert await approvals.decided(an_ask("Q9"), 20, NOBODY, None) == StillUndecided(pending(6), "stopping")


async def test_draining_leaves_a_first_question_two_seconds(autojump_clock: Clock) -> None:
    gate = ToldGate()

    async def slow(_: GateAsk) -> GateAnswer:
        await trio.sleep(1)
        return pending()

    async def slower(_: GateAsk) -> GateAnswer:
        await trio.sleep(10)
        return Approved()

    for answer, expected in ((slow, StillUndecided(pending(), "stopping")), (slower, GateSilent("it did not answer in time"))):
        gate.on_ask = answer
        approvals = HeldWrites(gate)
        async with trio.open_nursery() as nursery:
            found = await in_background(nursery, approvals, an_ask())
            began = trio.current_time()
            approvals.drain()
        assert found == [expected]
        assert trio.current_time() - began <= 2


async def test_pausing_ends_those_that_wait_and_no_later_ones(autojump_clock: Clock) -> None:
    approvals = HeldWrites(ToldGate())
    async with trio.open_nursery() as nursery:
        first = await in_background(nursery, approvals, an_ask())
        approvals.end_all()
        await trio.testing.wait_all_tasks_blocked()
        assert isinstance(first[0], StillUndecided)
        assert await in_background(nursery, approvals, an_ask()) == []
        nursery.cancel_scope.cancel()


async def test_progress_every_five_seconds_to_who_asked_for_it(autojump_clock: Clock) -> None:
    said: list[tuple[float, float | None]] = []

    async def progress(value: float, total: float | None, _: str | None) -> None:
        said.append((value, total))

    await HeldWrites(ToldGate()).decided(an_ask(), 20, Client(progress=progress), None)
    assert said[:3] == [(5, 20), (10, 20), (15, 20)]


async def test_a_progress_message_under_way_is_not_cut(autojump_clock: Clock) -> None:
    """A cut one would end the client's connection, and with it the answer."""
    gate, said = ToldGate(), 0

    async def progress(_: float, __: float | None, ___: str | None) -> None:
        nonlocal said
        await trio.sleep(3)
        said += 1

    async def at_six(_: Wait) -> GateAnswer:
        await trio.sleep(6)
        return Approved()

    gate.on_wait = at_six
    began = trio.current_time()
    assert isinstance(await HeldWrites(gate).decided(an_ask(), 20, Client(progress=progress), None), Approved)
    assert (said, trio.current_time() - began) == (1, 8)


# -- cancellation, at each await


class _CancelAt(trio.abc.Instrument):
    def __init__(self, step: int) -> None:
        self.scope = trio.CancelScope()
        self._left = step

    def before_task_step(self, _: trio.lowlevel.Task) -> None:
        self._left -= 1
        if self._left == 0:
            self.scope.cancel()


@pytest.mark.parametrize("ends", ["approved", "undecided", "denied"])
async def test_cancelled_at_any_await_nothing_is_left(ends: str, autojump_clock: Clock) -> None:
    answers: dict[str, GateAnswer] = {"approved": Approved(), "undecided": pending(), "denied": GateDenied()}
    told: list[str] = []
    step, uncancelled = 0, 0
    while uncancelled < 2:
        step += 1
        gate, place = ToldGate(), Place()

        async def decide(_: Wait) -> GateAnswer:
            await trio.sleep(1)
            return answers[ends]

        async def take_back(place: Place = place) -> None:
            await trio.sleep(1)
            place.said.append("took back")

        async def progress(_: float, __: float | None, ___: str | None) -> None:
            await trio.lowlevel.checkpoint()

        async def count() -> Preview:
            await trio.sleep(1)
            return Preview(1)

        gate.on_wait = decide
        place.take_back = take_back  # type: ignore[method-assign]
        approvals = HeldWrites(gate)
        approvals.on_end = lambda outcome, _: told.append(outcome)
        client = Client(progress=progress, place=place)
        instrument = _CancelAt(step)
        trio.lowlevel.add_instrument(instrument)
        found = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(approvals.reporter.run)
            with instrument.scope:
                found = await approvals.decided(an_ask(), 7, client, count)
            trio.lowlevel.remove_instrument(instrument)
            nursery.cancel_scope.cancel()
        assert approvals.statistics().held == 0
        uncancelled = 0 if found is None else uncancelled + 1
        if found is None:
            assert told[-1] == "cancelled"
            # An approval that is spent and does not run is told as what it is.
            assert gate.outcomes in ([], [Outcome("Q1", "failed")])
        else:
            assert gate.outcomes == []
    assert step > 6
    assert told.count("cancelled") == step - 2


async def test_an_approval_after_its_client_left_is_told_as_not_run(autojump_clock: Clock) -> None:
    gate, place = ToldGate(), Place()
    gate.on_wait = approve
    place.free = trio.Event()
    approvals = HeldWrites(gate)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(approvals.reporter.run)
        with trio.CancelScope() as client_stays:

            def leave() -> None:
                client_stays.cancel()

            nursery.start_soon(_call_soon, leave)
            await approvals.decided(an_ask(), 20, Client(place=place), None)
        await gate.told.wait()
        nursery.cancel_scope.cancel()
    assert gate.outcomes == [Outcome("Q1", "failed")]


async def _call_soon(call: Callable[[], None]) -> None:
    await trio.sleep(1)
    call()


# -- what was counted


async def test_a_write_is_counted_once_for_each_request(autojump_clock: Clock) -> None:
    gate, counted = ToldGate(), 0
    approvals = HeldWrites(gate)

    async def count() -> Preview:
        nonlocal counted
        counted += 1
        return Preview(counted)

    for _ in range(3):
        await approvals.decided(an_ask(), 0, NOBODY, count)
    assert [ask.preview for ask in gate.asked] == [Preview(1)] * 3
    await approvals.decided(an_ask(sql="DELETE FROM  t"), 0, NOBODY, count)
    assert counted == 2
    gate.on_ask = approve
    await approvals.decided(an_ask(), 0, NOBODY, count)
    await approvals.decided(an_ask(), 0, NOBODY, count)
    assert gate.asked[-1].preview == Preview(3)  # the request is over: the next one is counted anew


async def test_a_count_that_takes_too_long_is_left_out(autojump_clock: Clock) -> None:
    gate = ToldGate()

    async def count() -> Preview:
        await trio.sleep_forever()
        raise AssertionError

    began = trio.current_time()
    await HeldWrites(gate).decided(an_ask(), 0, NOBODY, count)
    assert trio.current_time() - began == 5
    assert gate.asked[0].preview == Preview(None, why="the database was too busy to count")
