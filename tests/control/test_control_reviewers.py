"""Which people a held write needs: rules by database and table, groups, several approvals, and their change while one waits."""

from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import replace

from gatewayd.approvals.messages import Approved, GateAsk, GateDenied, Pending
from gatewayd.control.approvals import answer as answers
from gatewayd.control.approvals import reviewer_rows as rows
from gatewayd.control.approvals.decide import DecidedElsewhere, WriteDecision, decide
from gatewayd.control.approvals.grants import LISTED, OF_PROJECT, GrantTerms, ShapeGrant
from gatewayd.control.approvals.needs import Needs, needs_of, stand
from gatewayd.control.approvals.reviewers import ALL, ReviewerGroup, ReviewerRule, Reviewers, asked_of, fits, matches
from gatewayd.control.approvals.shown import one
from gatewayd.control.console import Console
from gatewayd.control.moment import moment
from gatewayd.control.organisation.leave import leave
from gatewayd.control.organisation.routes import SET_ROLE
from gatewayd.control.projects.find import FIND, Project
from gatewayd.control.projects.terms import ProjectTerms
from gatewayd.control.store.statement import Statement
from gatewayd.control.trail.record import NEWEST, Event
from gatewayd.control.web.answer import Refusal
from gatewayd.policy.decide.decision import TABLES
from tests.control.approval_world import World, make_world

DISABLE = Statement("UPDATE people SET disabled_ms = 1 WHERE person_id = $1")
ASK = GateAsk("q", "shop", "DELETE", None, "DELETE", ("public.orders",), "", None, None, None, "", "row_changes", "")
MINUTE = 60_000


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("*", "", True), ("*", "anything", True), ("a", "a", True), ("a", "ab", False), ("a*", "ab", True), ("*b", "ab", True),
        ("a*b", "ab", True), ("a*b", "b", False), ("ab*ba", "aba", False), ("a*b*c", "a-b-b-c", True), ("a*b*c", "a-c", False),
        ("billing.*", "billing.x", True), ("billing.*", "billings.x", False), ("A", "a", False), ("a.b", "a-b", False),
        ("[ab]", "a", False), ("**", "x", True),
    ],
)  # fmt: skip
def test_a_pattern_is_about_the_whole_name(pattern: str, name: str, found: bool) -> None:
    assert fits(pattern, name) is found


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    assert not fits("*a" * 100 + "b", "a" * 20_000)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, False),
        ({"tables_touched": ("public.orders", "billing.invoices")}, True),
        ({"tables_touched": ("billing.invoices",), "database": "other"}, False),
        ({"write_class": "schema_changes"}, True),
        ({"write_class": "whole_table_writes"}, False),
        ({"tables_touched": ()}, True),
        ({"tables_touched": ("invoices",)}, True),
        ({"tables_touched": tuple(f"public.t{number}" for number in range(TABLES))}, True),
        ({"tables_touched": tuple(f"public.t{number}" for number in range(TABLES - 1))}, False),
    ],
)
def test_a_rule_is_about_its_tables_and_about_what_is_not_known_to_leave_them_alone(changes: dict[str, Any], found: bool) -> None:
    assert matches(ReviewerRule("r", "shop", "billing.*", "g", 1), replace(ASK, **changes)) is found


def group(name: str, *members: str) -> ReviewerGroup:
    return ReviewerGroup(name, name, frozenset(members))


def approved(rules: list[tuple[str, int]], groups: list[ReviewerGroup], may: str, voted: str) -> tuple[bool, bool]:
    """Whether it is approved, and whether it can be."""
    within = {each.group_id: each for each in groups}
    found = asked_of(ASK, Reviewers(within, [ReviewerRule(name, "*", "*", name, number) for name, number in rules]), may, voted)
    return found.is_approved(voted), all(each.can_be_met for each in found.demands)


def test_every_rule_counts_and_only_who_may_approve_now() -> None:
    ab, bc, nobody = group("ab", "a", "b"), group("bc", "b", "c"), group("nobody")
    assert approved([], [], "abc", "a") == (True, True)
    assert approved([], [], "bc", "a") == (False, True)
    assert approved([("ab", 1)], [ab], "abc", "c") == (False, True)
    assert approved([("ab", 1)], [ab], "abc", "a") == (True, True)
    assert approved([("ab", 1), ("bc", 1)], [ab, bc], "abc", "a") == (False, True)
    assert approved([("ab", 1), ("bc", 1)], [ab, bc], "abc", "b") == (True, True)  # one word may be of two groups
    assert approved([("ab", 2)], [ab], "abc", "a") == (False, True)
    assert approved([("ab", 2)], [ab], "abc", "ab") == (True, True)
    assert approved([("ab", 2)], [ab], "ac", "ab") == (False, False)  # b may approve no more
    assert approved([("ab", ALL)], [ab], "abc", "a") == (False, True)
    assert approved([("ab", ALL)], [ab], "ac", "a") == (True, True)  # b's own request: all the others
    assert approved([("ab", ALL)], [ab], "c", "c") == (False, False)
    assert approved([("nobody", 1)], [nobody], "abc", "abc") == (False, False)
    assert approved([("nobody", ALL)], [nobody], "abc", "abc") == (False, False)
    assert approved([("ab", 1), ("ab", 2)], [ab], "abc", "a") == (False, True)  # the stricter of two about one group


class Site(msgspec.Struct):
    """A world with groups. Agnes owns the token; all are admins."""

    world: World
    groups: dict[str, str]

    async def add_group(self, name: str, *members: str) -> None:
        world, self.groups[name] = self.world, self.world.console.new_id()
        await world.console.store.run(rows.ADD_GROUP, world.project, self.groups[name], name, name)
        for member in members:
            await world.console.store.run(rows.ADD_MEMBER, world.project, self.groups[name], world.people[member])

    async def add_rule(self, group_name: str, needed: int, tables: str = "*") -> str:
        rule_id = self.world.console.new_id()
        where = (self.world.project, rule_id, "*", tables, self.groups[group_name], needed)
        await self.world.console.store.run(rows.ADD_RULE, *where)
        return rule_id

    async def opened(self, ask: GateAsk) -> str:
        found = await answers.answer(self.world.console, self.world.asker, ask)
        assert isinstance(found, Pending)
        return found.approval_id

    async def again(self, ask: GateAsk) -> object:
        """What the same write is answered when its agent runs it once more."""
        return await answers.answer(self.world.console, self.world.asker, replace(ask, query_id=self.world.console.new_id()))

    async def approve(self, who: str, approval_id: str, note: str = "", rows_at_most: int | None = None) -> bool:
        return await decide(await self.world.call(who), approval_id, WriteDecision("approve", note, rows_at_most))

    async def refused(self, who: str, approval_id: str, **more: Any) -> tuple[int, str]:
        with pytest.raises(Refusal) as refusal:
            await decide(await self.world.call(who), approval_id, WriteDecision("approve", **more))
        return refusal.value.status, refusal.value.text

    async def needs(self, approval_id: str) -> Needs:
        world = self.world
        found = await one(world.console, world.project, approval_id)
        project = await world.console.store.row(Project, FIND, world.org, world.project)
        assert found is not None
        assert project is not None
        return needs_of(await stand(world.console, project, found.request))

    async def acts(self) -> list[str]:
        events = await self.world.console.store.rows(Event, NEWEST, self.world.org, 1 << 62, 100)
        return [each.action for each in reversed(events) if each.action.startswith("approval.")]


@pytest.fixture
async def site(console: Console) -> Site:
    return Site(await make_world(console), {})


async def test_several_approve_and_the_verdict_names_them_all(site: Site) -> None:
    await site.add_group("dbas", "Ben", "Cleo")
    await site.add_rule("dbas", 2)
    ask = site.world.ask()
    approval_id = await site.opened(ask)
    assert await site.approve("Ben", approval_id, "fine", 9) is False
    assert isinstance(await site.again(ask), Pending)
    assert [(each.needed, each.approved, each.asked) for each in (await site.needs(approval_id)).demands] == [
        (2, ["Ben"], ["Cleo"])
    ]
    assert await site.approve("Ben", approval_id, "fine", 8) is False  # nobody counts twice
    assert await site.approve("Cleo", approval_id, "so be it", 7) is True
    together = Approved(by="Ben, Cleo", note="Ben: fine; Cleo: so be it", rows_at_most=7, approval_id=approval_id)
    assert await site.again(ask) == together
    assert isinstance(await site.again(ask), Pending)  # one approval, one run
    assert await site.acts() == ["approval.given", "approval.given", "approval.approved"]


async def test_only_who_is_asked_approves_and_anybody_denies(site: Site) -> None:
    await site.add_group("finance", "Cleo")
    await site.add_rule("finance", 1, "billing.*")
    ask = site.world.ask("DELETE FROM billing.invoices WHERE id = 1", tables_touched=("billing.invoices",))
    approval_id, other = await site.opened(ask), await site.opened(site.world.ask())
    assert await site.refused("Ben", approval_id) == (
        403, "this write is approved by 1 of finance; your word does not count there, but you may deny it"
    )  # fmt: skip
    assert (await site.needs(approval_id)).votes == []  # and leaves nothing behind
    assert await site.approve("Ben", other) is True  # no rule is about it
    await decide(await site.world.call("Ben"), approval_id, WriteDecision("deny", "no"))
    assert await site.again(ask) == GateDenied(by="Ben", note="no", approval_id=approval_id)
    with pytest.raises(DecidedElsewhere):
        await site.approve("Cleo", approval_id)


async def test_one_denial_ends_what_others_have_approved(site: Site) -> None:
    await site.add_group("dbas", "Ben", "Cleo")
    await site.add_rule("dbas", ALL)
    ask = site.world.ask()
    approval_id = await site.opened(ask)
    await site.approve("Ben", approval_id)
    await decide(await site.world.call("Cleo"), approval_id, WriteDecision("deny", "no"))
    assert await site.again(ask) == GateDenied(by="Cleo", note="no", approval_id=approval_id)


async def test_of_two_last_approvals_at_once_one_decides_and_both_are_named(site: Site) -> None:
    await site.add_group("dbas", "Ben", "Cleo")
    await site.add_rule("dbas", 2)
    ask = site.world.ask()
    approval_id, found = await site.opened(ask), []

    async def person(name: str) -> None:
        found.append(await site.approve(name, approval_id))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(person, "Ben")
        nursery.start_soon(person, "Cleo")
    assert sorted(found) == [False, True]
    verdict = await site.again(ask)
    assert isinstance(verdict, Approved)
    assert sorted((verdict.by or "").split(", ")) == ["Ben", "Cleo"]
    assert isinstance(await site.again(ask), Pending)


async def test_one_s_own_request_is_approved_by_the_others_of_the_group(site: Site) -> None:
    await site.add_group("all", "Agnes", "Ben")
    await site.add_rule("all", ALL)
    approval_id = await site.opened(site.world.ask())
    assert (await site.refused("Agnes", approval_id))[0] == 403
    assert [(each.needed, each.asked) for each in (await site.needs(approval_id)).demands] == [(1, ["Ben"])]
    assert await site.approve("Ben", approval_id) is True
    await site.world.set_terms(ProjectTerms(self_approval=True))
    other = await site.opened(site.world.ask("DELETE FROM orders WHERE id = 8"))
    assert await site.approve("Agnes", other) is False
    await site.world.set_terms(ProjectTerms())  # her word counts no more, though it was given when it did
    assert [(each.needed, each.approved) for each in (await site.needs(other)).demands] == [(1, [])]
    assert await site.approve("Ben", other) is True


async def test_a_rule_that_is_changed_holds_for_what_waits_and_approves_nothing_by_itself(site: Site) -> None:
    await site.add_group("dbas", "Ben", "Cleo")
    two = await site.add_rule("dbas", 2)
    ask = site.world.ask()
    approval_id = await site.opened(ask)
    assert await site.approve("Ben", approval_id) is False
    await site.world.console.store.run(rows.DROP_RULE, site.world.project, two)
    await site.add_rule("dbas", 1)
    assert isinstance(await site.again(ask), Pending)
    assert await site.approve("Ben", approval_id) is True  # once more, now that one is enough
    other = await site.opened(site.world.ask("DELETE FROM orders WHERE id = 8"))
    await site.add_group("finance", "Cleo")
    await site.add_rule("finance", 1)
    assert await site.approve("Ben", other) is False  # a rule that came while it waited
    assert await site.approve("Cleo", other) is True


@pytest.mark.parametrize("how", ["leaves", "demoted", "disabled", "taken out"])
async def test_who_is_no_reviewer_any_more_counts_no_more(site: Site, how: str) -> None:
    await site.add_group("dbas", "Ben", "Cleo")
    await site.add_rule("dbas", 2)
    ask, world = site.world.ask(), site.world
    approval_id, console, ben = await site.opened(ask), world.console, world.people["Ben"]
    called = await world.call("Ben")  # let in before, decides after
    assert await site.approve("Ben", approval_id) is False
    match how:
        case "leaves":
            now = moment(console)
            await console.store.transaction(lambda tx: leave(tx, console, world.org, ben, now))
        case "demoted":
            await console.store.run(SET_ROLE, world.org, ben, "auditor")
        case "disabled":
            await console.store.run(DISABLE, ben)
        case _:
            await console.store.run(rows.DROP_MEMBER, world.project, site.groups["dbas"], ben)
    assert await site.approve("Cleo", approval_id) is False
    needs = await site.needs(approval_id)
    assert [(each.needed, each.approved, each.can_be_met) for each in needs.demands] == [(2, ["Cleo"], False)]
    assert [(each.person, each.counts) for each in needs.votes] == [("Ben", False), ("Cleo", True)]
    with pytest.raises(Refusal) as refused:
        await decide(called, approval_id, WriteDecision("approve"))
    assert refused.value.status == 403
    assert isinstance(await site.again(ask), Pending)


async def test_an_approval_of_several_is_over_with_the_request(site: Site) -> None:
    await site.add_group("dbas", "Ben", "Cleo")
    await site.add_rule("dbas", 2)
    approval_id = await site.opened(site.world.ask())
    await site.approve("Ben", approval_id)
    await site.world.console.store.run(EXPIRE, site.world.project)
    with pytest.raises(DecidedElsewhere):
        await site.approve("Cleo", approval_id)
    anew = await site.opened(replace(site.world.ask(), intent="anew"))
    assert (await site.needs(anew)).votes == []  # nothing of the one before counts


EXPIRE = Statement("UPDATE approvals SET expires_ms = asked_ms WHERE project_id = $1")


async def test_a_grant_for_a_shape_is_one_person_s_word_and_holds_while_it_would_be_enough(site: Site) -> None:
    world, terms = site.world, GrantTerms(minutes=60, times=9)
    await world.set_terms(ProjectTerms(shape_grants=True))
    await site.add_group("dbas", "Ben", "Cleo")
    first = await site.opened(world.ask("DELETE FROM orders WHERE id = 1"))
    rule = await site.add_rule("dbas", 2)
    assert (await site.refused("Ben", first, rows_at_most=3, grant=terms))[0] == 409
    await site.approve("Cleo", first)
    assert (await site.refused("Ben", first, rows_at_most=3, grant=terms))[0] == 409  # the other agreed to one run, not to nine
    assert await world.console.store.rows(ShapeGrant, OF_PROJECT, world.project, LISTED) == []
    await world.console.store.run(rows.DROP_RULE, world.project, rule)
    await decide(await world.call("Ben"), first, WriteDecision("approve", "", 3, terms))
    assert isinstance(await site.again(world.ask("DELETE FROM orders WHERE id = 2")), Approved)
    rule = await site.add_rule("dbas", 2)
    assert isinstance(await site.again(world.ask("DELETE FROM orders WHERE id = 3")), Pending)
    await world.console.store.run(rows.DROP_RULE, world.project, rule)
    assert isinstance(await site.again(world.ask("DELETE FROM orders WHERE id = 4")), Approved)
    await world.console.store.run(SET_ROLE, world.org, world.people["Ben"], "auditor")
    assert isinstance(await site.again(world.ask("DELETE FROM orders WHERE id = 5")), Pending)
