"""Approvals over the store: the rules in their order, decisions, and what two at once make of one request."""

from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import replace

from gatewayd.approvals.messages import (
    Approved,
    Expired,
    GateAnswer,
    GateAsk,
    GateDenied,
    Outcome,
    Pending,
    Preview,
    StatusAsked,
    Wait,
)
from gatewayd.approvals.rules import OPEN_OF_ONE, NotAsked, TooManyOpen
from gatewayd.control.approvals import answer as answers
from gatewayd.control.approvals.answer import GateClosed
from gatewayd.control.approvals.decide import WriteDecision, decide
from gatewayd.control.approvals.grant_routes import revoke_grant
from gatewayd.control.approvals.grants import LISTED, OF_PROJECT, GrantTerms, ShapeGrant
from gatewayd.control.approvals.requests import Asker
from gatewayd.control.approvals.shown import one, over, pending, pending_count
from gatewayd.control.approvals.sweep import sweep
from gatewayd.control.approvals.times import ApprovalTimes, set_times
from gatewayd.control.approvals.waiting import waited
from gatewayd.control.console import Console
from gatewayd.control.gateways.exchanges import Presence
from gatewayd.control.projects.terms import ProjectTerms
from gatewayd.control.store.statement import Statement
from gatewayd.control.web.answer import Refusal
from tests.control.approval_world import World, make_world
from tests.control.clock import MINUTE, Clock

DELETE = "DELETE FROM orders WHERE id = 7"
TRAIL = Statement("SELECT action, person_id FROM org_events WHERE org_id = $1 ORDER BY seq")
PAUSE = Statement("UPDATE projects SET state = 'paused' WHERE org_id = $1 AND project_id = $2")


class Did(msgspec.Struct):
    action: str
    person_id: str | None


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def world(settings: Any, store: Any, clock: Clock) -> World:
    return await make_world(Console(settings, store, clock=clock))


async def asked(world: World, ask: GateAsk, asker: Asker | None = None) -> GateAnswer:
    return await answers.answer(world.console, asker or world.asker, ask)


async def opened(world: World, ask: GateAsk) -> str:
    answer = await asked(world, ask)
    assert isinstance(answer, Pending)
    return answer.approval_id


async def status(world: World, approval_id: str, token: str | None = "") -> str:
    token = world.token if token == "" else token
    return (await answers.status(world.console, world.asker, StatusAsked(approval_id, token))).status


async def approve(world: World, approval_id: str, by: str = "Ben", rows: int | None = None) -> None:
    await decide(await world.call(by), approval_id, WriteDecision("approve", "fine", rows))


async def test_an_approval_is_claimed_once_and_told_again_to_the_query_that_claimed_it(world: World) -> None:
    ask = world.ask()
    approval_id = await opened(world, ask)
    assert await status(world, approval_id) == "pending"
    await approve(world, approval_id, rows=3)
    assert await status(world, approval_id) == "approved"
    second = replace(ask, query_id=world.console.new_id())
    claimed = Approved(by="Ben", note="fine", rows_at_most=3, approval_id=approval_id)
    assert await asked(world, second) == claimed
    assert await asked(world, second) == claimed  # its answer was lost
    assert await status(world, approval_id) == "consumed"
    third = await asked(world, replace(ask, query_id=world.console.new_id()))
    assert isinstance(third, Pending)
    assert third.approval_id != approval_id
    await answers.note_outcome(world.console, world.asker, Outcome(second.query_id, "executed", 1))
    await answers.note_outcome(world.console, world.asker, Outcome(second.query_id, "failed"))
    assert await status(world, approval_id) == "executed"
    with pytest.raises(NotAsked):
        await asked(world, replace(second, sql="DELETE FROM orders"))


async def test_one_character_another_token_or_another_origin_is_another_request(world: World) -> None:
    ask = world.ask()
    approval_id = await opened(world, ask)
    await approve(world, approval_id)
    again = replace(ask, query_id=world.console.new_id())
    others = replace(again, sql=ask.sql + " "), replace(again, intent=None), replace(again, effect="ef")
    for other in (*others, replace(again, mcp_token_id=None), replace(again, database="billing")):
        found = await asked(world, other)
        assert isinstance(found, Pending)
        assert found.approval_id != approval_id
    elsewhere = Asker(world.org, world.project, world.console.new_id())
    assert isinstance(await asked(world, ask, elsewhere), Pending)
    assert await status(world, approval_id, "another token") == "not_found"
    assert (await answers.status(world.console, elsewhere, StatusAsked(approval_id, world.token))).status == "not_found"
    with pytest.raises(NotAsked):
        await answers.wait_answer(world.console, elsewhere, Wait(approval_id, world.console.new_id(), world.token))
    assert isinstance(await asked(world, ask), Approved)


async def test_a_denial_repeats_until_it_expires_and_nobody_is_asked_again(world: World, clock: Clock) -> None:
    ask = world.ask()
    approval_id = await opened(world, ask)
    await decide(await world.call("Ben"), approval_id, WriteDecision("deny", "not today"))
    for _ in range(2):
        found = await asked(world, replace(ask, query_id=world.console.new_id()))
        assert found == GateDenied(by="Ben", note="not today", approval_id=approval_id)
    assert await pending_count(world.console, world.project) == 0
    clock.ms += 30 * MINUTE
    assert isinstance(await asked(world, replace(ask, query_id=world.console.new_id())), Pending)


async def test_an_expiry_is_said_once_and_an_approval_that_expired_is_not_claimed(world: World, clock: Clock) -> None:
    ask = world.ask()
    approval_id = await opened(world, ask)
    clock.ms += 30 * MINUTE
    again = replace(ask, query_id=world.console.new_id())
    assert await asked(world, again) == Expired(approval_id=approval_id)
    assert await asked(world, again) == Expired(approval_id=approval_id)  # its answer was lost
    with pytest.raises(Refusal) as refused:
        await approve(world, approval_id)
    assert refused.value.status == 409
    second = await opened(world, replace(ask, query_id=world.console.new_id()))
    await approve(world, second)
    clock.ms += 30 * MINUTE
    assert await status(world, second) == "expired"
    assert isinstance(await asked(world, replace(ask, query_id=world.console.new_id())), Expired)


async def test_of_two_questions_at_once_one_opens_and_of_two_claims_one_runs(world: World) -> None:
    ask = world.ask()
    found: list[GateAnswer] = []

    async def ask_again() -> None:
        found.append(await asked(world, replace(ask, query_id=world.console.new_id())))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(ask_again)
    ids = {each.approval_id for each in found if isinstance(each, Pending)}
    assert len(found) == 6
    assert len(ids) == 1
    await approve(world, ids.pop())
    found.clear()
    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(ask_again)
    assert sum(isinstance(each, Approved) for each in found) == 1
    assert len({each.approval_id for each in found if isinstance(each, Pending)}) == 1


async def test_of_two_deciders_at_once_one_has_decided(world: World) -> None:
    approval_id = await opened(world, world.ask())
    refusals: list[int] = []

    async def person(name: str, decision: WriteDecision) -> None:
        try:
            await decide(await world.call(name), approval_id, decision)
        except Refusal as refused:
            refusals.append(refused.status)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(person, "Ben", WriteDecision("approve"))
        nursery.start_soon(person, "Cleo", WriteDecision("deny"))
    assert refusals == [409]
    acts = [each.action for each in await world.console.store.rows(Did, TRAIL, world.org)]
    assert sum(each.startswith("approval.") for each in acts) == 1


async def test_nobody_approves_what_their_own_token_asked_for_unless_the_project_says_so(world: World) -> None:
    approval_id = await opened(world, world.ask())
    with pytest.raises(Refusal) as refused:
        await approve(world, approval_id, by="Agnes")
    assert refused.value.status == 403
    assert await status(world, approval_id) == "pending"
    await world.set_terms(ProjectTerms(self_approval=True))
    await approve(world, approval_id, by="Agnes")
    other = await opened(world, world.ask("DELETE FROM orders WHERE id = 8"))
    await world.set_terms(ProjectTerms())
    await decide(await world.call("Agnes"), other, WriteDecision("deny"))
    assert await status(world, other) == "denied"


async def test_a_token_has_at_most_so_many_open_requests(world: World, clock: Clock) -> None:
    for number in range(OPEN_OF_ONE):
        await opened(world, world.ask(f"DELETE FROM orders WHERE id = {number}"))
    with pytest.raises(TooManyOpen) as full:
        await asked(world, world.ask("DELETE FROM orders WHERE id = 99"))
    assert full.value.retry_after_s == 30 * 60
    assert isinstance(await asked(world, world.ask("DELETE FROM orders WHERE id = 3")), Pending)  # joins
    assert isinstance(await asked(world, world.ask(mcp_token_id=None)), Pending)  # somebody else's
    clock.ms += 30 * MINUTE
    await opened(world, world.ask("DELETE FROM orders WHERE id = 99"))


async def test_a_paused_project_approves_nothing(world: World) -> None:
    ask = world.ask()
    approval_id, other = await opened(world, ask), await opened(world, world.ask("DELETE FROM orders"))
    await approve(world, approval_id)
    await world.console.store.run(PAUSE, world.org, world.project)
    with pytest.raises(GateClosed):
        await asked(world, ask)
    assert await status(world, approval_id) == "approved"
    with pytest.raises(Refusal, match="paused") as refused:
        await approve(world, other)
    assert refused.value.status == 409
    await decide(await world.call("Ben"), other, WriteDecision("deny"))
    assert await status(world, other) == "denied"


async def test_people_see_what_waits_the_oldest_first_and_what_was_decided(world: World, clock: Clock) -> None:
    console, ids = world.console, []
    for number in range(3):
        clock.ms += 1
        ids.append(await opened(world, world.ask(f"DELETE FROM orders WHERE id = {number}")))
    listed = (await pending(console, world.project)).requests
    assert [each.id for each in listed] == ids
    first = listed[0]
    assert (first.token, first.requester, first.requester_id) == ("claude's", "Agnes", world.people["Agnes"])
    assert first.ask.preview is not None
    assert first.ask.preview.rows == 1
    assert await pending_count(console, world.project) == 3
    await approve(world, ids[0], rows=2)
    assert [each.id for each in (await pending(console, world.project, ids[1])).requests] == ids[2:]
    (decided,) = (await over(console, world.project)).requests
    assert (decided.id, decided.status, decided.decided_by, decided.rows_at_most) == (ids[0], "approved", "Ben", 2)
    found = await one(console, world.project, ids[2])
    assert found is not None
    assert found.approved_before is not None
    assert (found.request.id, found.approved_before.id) == (ids[2], ids[0])
    assert await one(console, console.new_id(), ids[2]) is None
    assert await one(console, world.project, "nothing") is None


async def test_each_database_may_have_a_time_of_its_own(world: World, clock: Clock) -> None:
    await set_times(await world.call("Ben"), ApprovalTimes({"shop": 5}))
    for database, minutes in (("shop", 5), ("billing", 30)):
        found = await asked(world, world.ask(database=database))
        assert isinstance(found, Pending)
        assert found.expires_at == clock.ms + minutes * MINUTE


async def test_the_sweep_removes_what_has_ended_and_changes_no_answer(world: World, clock: Clock) -> None:
    denied, ask = await opened(world, world.ask("DELETE FROM a")), world.ask()
    await decide(await world.call("Ben"), denied, WriteDecision("deny"))
    expired = await opened(world, ask)
    await sweep(world.console)
    assert await status(world, expired) == "pending"
    clock.ms += 30 * MINUTE
    await sweep(world.console)
    assert await status(world, expired) == "expired"
    assert isinstance(await asked(world, replace(ask, query_id=world.console.new_id())), Expired)
    assert sorted(each.status for each in (await over(world.console, world.project)).requests) == ["denied", "expired"]
    clock.ms += 92 * 24 * 60 * MINUTE
    await sweep(world.console)
    assert (await over(world.console, world.project)).requests == []


async def test_a_grant_for_a_shape_approves_what_differs_in_constants_alone_within_its_limits(world: World, clock: Clock) -> None:
    grant = WriteDecision("approve", "tidying", 3, GrantTerms(minutes=60, times=2))
    first = await opened(world, world.ask("DELETE FROM orders WHERE id = 1"))
    with pytest.raises(Refusal) as refused:
        await decide(await world.call("Ben"), first, grant)
    assert refused.value.status == 403  # off unless the project says so
    assert await status(world, first) == "pending"
    await world.set_terms(ProjectTerms(shape_grants=True))
    await decide(await world.call("Ben"), first, grant)
    again = world.ask("DELETE  FROM orders WHERE id = 2 -- another")
    granted = Approved(by="Ben", note="tidying", rows_at_most=3)
    assert await asked(world, again) == granted
    assert await asked(world, again) == granted  # its answer was lost: not counted twice
    for other in (
        world.ask("DELETE FROM orders WHERE id > 2"),
        world.ask("DELETE FROM orders WHERE id = 2", policy_hash="cd" * 32),
        world.ask("DELETE FROM orders WHERE id = 2", database="billing"),
        world.ask("DELETE FROM orders WHERE id = 2", effect="another table has the name"),
        world.ask("DELETE FROM orders WHERE id = 2", mcp_token_id=None),
        world.ask("DELETE FROM orders WHERE id = 3", preview=Preview(4)),
        world.ask("DELETE FROM orders WHERE id = 4", write_class="whole_table_writes"),
        world.ask("DELETE FROM orders WHERE id = 4", contained=True),  # by now its agent has read foreign text
    ):
        assert isinstance(await asked(world, other), Pending)
    assert isinstance(await asked(world, world.ask("DELETE FROM orders WHERE id = 5")), Approved)
    assert isinstance(await asked(world, world.ask("DELETE FROM orders WHERE id = 6")), Pending)  # both times are used
    assert isinstance(await asked(world, world.ask("DELETE FROM orders WHERE id = 1")), Approved)  # its own approval


async def test_a_grant_for_a_shape_ends_with_its_time_its_revocation_and_the_project_s_terms(world: World, clock: Clock) -> None:
    await world.set_terms(ProjectTerms(shape_grants=True))

    async def granted(table: str) -> None:
        approval_id = await opened(world, world.ask(f"DELETE FROM {table} WHERE id = 1"))
        await decide(await world.call("Ben"), approval_id, WriteDecision("approve", "", 3, GrantTerms(5, 10)))

    for table in ("a", "b", "c"):
        await granted(table)
        assert isinstance(await asked(world, world.ask(f"DELETE FROM {table} WHERE id = 2")), Approved)
    grants = await world.console.store.rows(ShapeGrant, OF_PROJECT, world.project, LISTED)
    of_a = next(each for each in grants if each.made_ms == clock.ms and each.used == 1)
    assert len(grants) == 3
    await revoke_grant(await world.call("Cleo"), of_a.shape_grant_id)
    with pytest.raises(Refusal):
        await revoke_grant(await world.call("Cleo"), of_a.shape_grant_id)
    found = [await asked(world, world.ask(f"DELETE FROM {table} WHERE id = 3")) for table in ("a", "b", "c")]
    assert sorted(type(each).__name__ for each in found) == ["Approved", "Approved", "Pending"]
    await world.set_terms(ProjectTerms())
    assert isinstance(await asked(world, world.ask("DELETE FROM b WHERE id = 4")), Pending)
    await world.set_terms(ProjectTerms(shape_grants=True))
    clock.ms += 5 * MINUTE
    assert isinstance(await asked(world, world.ask("DELETE FROM b WHERE id = 5")), Pending)


@pytest.mark.parametrize(
    ("rows", "minutes", "times"), [(None, 5, 1), (0, 5, 1), (3, 0, 1), (3, 5, 0), (3, 5, 1001), (3, 10081, 1)]
)
async def test_a_grant_has_limits(world: World, rows: int | None, minutes: int, times: int) -> None:
    await world.set_terms(ProjectTerms(shape_grants=True))
    approval_id = await opened(world, world.ask())
    with pytest.raises(Refusal) as refused:
        await decide(await world.call("Ben"), approval_id, WriteDecision("approve", "", rows, GrantTerms(minutes, times)))
    assert refused.value.status == 400
    assert await status(world, approval_id) == "pending"


class Line:
    """What `Presence` needs of an exchange: `leaves` is cancelled when the other side is found to have left."""

    def __init__(self, leaves: trio.CancelScope | None = None) -> None:
        self._leaves = leaves

    def look(self) -> None:
        if self._leaves is not None:
            self._leaves.cancel()


async def test_a_gateway_that_has_left_claims_nothing_and_a_replica_that_ends_holds_nobody(world: World) -> None:
    ask, stop = world.ask(), trio.Event()
    approval_id = await opened(world, ask)
    wait = Wait(approval_id, world.console.new_id(), world.token, 60)
    stop.set()
    ending: Any = Line()
    assert isinstance(await waited(world.console, world.asker, wait, Presence(ending, stop)), Pending)
    await approve(world, approval_id)
    with trio.CancelScope() as scope:
        gone: Any = Line(scope)
        await waited(world.console, world.asker, wait, Presence(gone, trio.Event()))
    assert scope.cancelled_caught
    assert await status(world, approval_id) == "approved"
    assert isinstance(await waited(world.console, world.asker, wait, Presence(ending, trio.Event())), Approved)
