"""Groups of reviewers and their rules: a page for people, and the same to read for scripts.

Who changes them is a person who has just signed in and may give roles here: no API key can say who decides. Each change
takes the lock of the project's approvals, so a decision is made by the rules of before it or of after it.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gatewayd.control.approvals import reviewer_rows as rows
from gatewayd.control.approvals.requests import begin_change
from gatewayd.control.approvals.reviewers import ALL, ReviewerGroup, ReviewerRule, Reviewers
from gatewayd.control.approvals.shown import PEOPLE, Named
from gatewayd.control.moment import moment
from gatewayd.control.organisation.routes import ONE as ONE_MEMBER
from gatewayd.control.organisation.routes import Member
from gatewayd.control.people.may import who_may
from gatewayd.control.people.person import BY_EMAIL, Person, email_key, name_problem
from gatewayd.control.projects.create import name_key
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "approvals/pages/reviewers.html"
_NOTHING: Final = "there is nothing here"
_PATTERN: Final = 200

NEEDED_MOST: Final = 20
_NUMBERS: Final = frozenset(str(number) for number in range(1, NEEDED_MOST + 1))

# What is changed, given the transaction, what there is, and a fresh id; the act and its details.
Change = Callable[[Transaction, Reviewers, str], Awaitable[tuple[str, dict[str, str]]]]


class GroupForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class AddForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    email: str


class TakeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    person: str


class RuleForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`needed`: a number of people, or `all`."""

    group: str
    needed: str
    databases: Annotated[str, Meta(max_length=_PATTERN)] = "*"
    tables: Annotated[str, Meta(max_length=_PATTERN)] = "*"


class PersonShown(msgspec.Struct, frozen=True):
    """`may_approve` false: in the group, and asked for nothing, since the person's role does not allow it."""

    id: str
    name: str
    may_approve: bool


class GroupShown(msgspec.Struct, frozen=True):
    id: str
    name: str
    people: list[PersonShown]


class RuleShown(msgspec.Struct, frozen=True):
    """`needed` 0: all of the group. `problem`: why nobody can approve what this rule is about."""

    id: str
    databases: str
    tables: str
    group: str
    group_id: str
    needed: int
    problem: str | None


class ReviewersShown(msgspec.Struct, frozen=True):
    groups: list[GroupShown]
    rules: list[RuleShown]


async def shown(call: Call) -> ReviewersShown:
    """As they are now."""

    async def work(tx: Transaction) -> ReviewersShown:
        found = await rows.reviewers_of(tx, call.project.project_id)
        members = frozenset[str]().union(*(group.members for group in found.groups.values()))
        may = await who_may(tx, call.project, "project.approve", members)
        names = {each.id: each.name for each in await tx.rows(Named, PEOPLE, sorted(members))}
        groups = []
        for group in found.groups.values():
            people = [PersonShown(each, names.get(each, each), each in may) for each in group.members]
            people.sort(key=lambda each: (each.name.casefold(), each.id))
            groups.append(GroupShown(group.group_id, group.name, people))
        return ReviewersShown(groups, [_rule(each, found.groups[each.group_id], frozenset(may)) for each in found.rules])

    return await call.console.store.transaction(work)


def _rule(rule: ReviewerRule, group: ReviewerGroup, may: frozenset[str]) -> RuleShown:
    number = len(group.members & may)
    problem = None
    if number < max(rule.needed, 1):
        word = "nobody" if number == 0 else f"only {number}"
        problem = f"{word} of {group.name} may approve here: nobody can approve what this rule is about, it can only be denied"
    return RuleShown(rule.rule_id, rule.databases, rule.tables, group.name, rule.group_id, rule.needed, problem)


async def _page(call: Call, problem: str | None = None, status: int = 200) -> Answer:
    return page(call, _PAGE, status, found=await shown(call), problem=problem)


async def _reviewers(call: Call) -> Answer:
    return await _page(call)


async def _list(call: Call) -> Answer:
    return json(await shown(call))


async def _changed(call: Call, change: Change) -> Answer:
    """Do one change under the lock of the project's approvals, and record it."""
    now = moment(call.console)

    async def work(tx: Transaction) -> None:
        await begin_change(tx, call.project.project_id)
        act, details = await change(tx, await rows.reviewers_of(tx, call.project.project_id), now.fresh_id)
        person_id, project_id = call.person.person_id, call.project.project_id
        await now.record(tx, call.org_id, Act(act, person_id, project_id, None, details))

    try:
        await call.console.store.transaction(work)
    except Refusal as refusal:
        if refusal.status == 404:
            raise
        return await _page(call, refusal.text, refusal.status)
    return said(call, to(f"/projects/{call.project.project_id}/reviewers"), "saved")


async def _add_group(call: Call) -> Answer:
    name, project_id = call.sent(GroupForm).name.strip(), call.project.project_id
    wrong = name_problem(name)
    if wrong is not None:
        return await _page(call, f"name: {wrong}", 400)

    async def change(tx: Transaction, found: Reviewers, fresh_id: str) -> tuple[str, dict[str, str]]:
        if len(found.groups) >= rows.GROUPS_MOST:
            raise Refusal(409, f"a project has at most {rows.GROUPS_MOST} groups")
        if name_key(name) in {name_key(each.name) for each in found.groups.values()}:
            raise Refusal(409, "a group of that name is there already")
        await tx.run(rows.ADD_GROUP, project_id, fresh_id, name, name_key(name))
        return "reviewers.group_made", {"group": name}

    return await _changed(call, change)


async def _drop_group(call: Call) -> Answer:
    async def change(tx: Transaction, found: Reviewers, _fresh_id: str) -> tuple[str, dict[str, str]]:
        group = _group(call, found)
        if any(rule.group_id == group.group_id for rule in found.rules):
            raise Refusal(409, f"rules ask for {group.name}; remove them first, so that nothing is asked of nobody")
        await tx.run(rows.DROP_MEMBERS, call.project.project_id, group.group_id)
        await tx.run(rows.DROP_GROUP, call.project.project_id, group.group_id)
        return "reviewers.group_removed", {"group": group.name}

    return await _changed(call, change)


async def _add_person(call: Call) -> Answer:
    email, store = call.sent(AddForm).email, call.console.store
    person = await store.row(Person, BY_EMAIL, email_key(email))
    member = await store.row(Member, ONE_MEMBER, call.org_id, person.person_id) if person is not None else None
    if member is None:
        return await _page(call, "nobody of the organisation has this mail address; invite them first", 400)
    person_id, name = member.person_id, member.name

    async def change(tx: Transaction, found: Reviewers, _fresh_id: str) -> tuple[str, dict[str, str]]:
        group = _group(call, found)
        if person_id not in await who_may(tx, call.project, "project.approve", [person_id]):
            raise Refusal(409, f"{name} may not approve in this project; give them the role reviewer first")
        if len(group.members) >= rows.MEMBERS_MOST:
            raise Refusal(409, f"a group has at most {rows.MEMBERS_MOST} people")
        await tx.run(rows.ADD_MEMBER, call.project.project_id, group.group_id, person_id)
        return "reviewers.person_added", {"group": group.name, "person": person_id, "name": name}

    return await _changed(call, change)


async def _take_person(call: Call) -> Answer:
    person_id = call.sent(TakeForm).person

    async def change(tx: Transaction, found: Reviewers, _fresh_id: str) -> tuple[str, dict[str, str]]:
        group = _group(call, found)
        if person_id not in group.members:
            raise Refusal(404, _NOTHING)
        await tx.run(rows.DROP_MEMBER, call.project.project_id, group.group_id, person_id)
        return "reviewers.person_removed", {"group": group.name, "person": person_id}

    return await _changed(call, change)


async def _add_rule(call: Call) -> Answer:
    form, project_id = call.sent(RuleForm), call.project.project_id
    databases, tables = form.databases.strip(), form.tables.strip()
    needed = ALL if form.needed == "all" else int(form.needed) if form.needed in _NUMBERS else None
    wrong = pattern_problem(databases, tables)
    if needed is None:
        wrong = f"how many: found {form.needed[:40]!r}; expected 1 to {NEEDED_MOST}, or all"
    if wrong is not None or needed is None:
        return await _page(call, wrong, 400)

    async def change(tx: Transaction, found: Reviewers, fresh_id: str) -> tuple[str, dict[str, str]]:
        group = found.groups.get(form.group)
        if group is None:
            raise Refusal(400, "group: expected one of the groups of this project")
        if len(found.rules) >= rows.RULES_MOST:
            raise Refusal(409, f"a project has at most {rows.RULES_MOST} rules")
        await tx.run(rows.ADD_RULE, project_id, fresh_id, databases, tables, group.group_id, needed)
        return "reviewers.rule_made", {"databases": databases, "tables": tables, "group": group.name, "needed": form.needed}

    return await _changed(call, change)


async def _drop_rule(call: Call) -> Answer:
    async def change(tx: Transaction, found: Reviewers, _fresh_id: str) -> tuple[str, dict[str, str]]:
        rule = next((each for each in found.rules if each.rule_id == call.args["rule"]), None)
        if rule is None:
            raise Refusal(404, _NOTHING)
        await tx.run(rows.DROP_RULE, call.project.project_id, rule.rule_id)
        group, needed = found.groups[rule.group_id].name, str(rule.needed or "all")
        return "reviewers.rule_removed", {"databases": rule.databases, "tables": rule.tables, "group": group, "needed": needed}

    return await _changed(call, change)


def _group(call: Call, found: Reviewers) -> ReviewerGroup:
    group = found.groups.get(call.args["group"])
    if group is None:
        raise Refusal(404, _NOTHING)
    return group


def pattern_problem(databases: str, tables: str) -> str | None:
    """What is wrong with the patterns of a rule; None when nothing is."""
    for field, pattern in (("databases", databases), ("tables", tables)):
        if not pattern or not pattern.isprintable():
            return f"{field}: expected a name, in which * stands for any characters"
    if tables != "*" and "." not in tables:
        return f"tables: found {tables[:80]!r}; expected schema.table, such as public.orders or billing.*, or * for all"
    return None


_PAGES: Final = "/projects/<project>/reviewers"
ROUTES: Final = (
    Route("GET", _PAGES, _reviewers, door="person", right="project.approvals"),
    Route("POST", f"{_PAGES}/groups", _add_group, door="person", right="project.people", again=True, body=GroupForm),
    Route("POST", f"{_PAGES}/groups/<group>/remove", _drop_group, door="person", right="project.people", again=True),
    Route(
        "POST", f"{_PAGES}/groups/<group>/people", _add_person, door="person", right="project.people", again=True, body=AddForm
    ),
    Route(
        "POST", f"{_PAGES}/groups/<group>/people/remove", _take_person, door="person", right="project.people", again=True,
        body=TakeForm,
    ),
    Route("POST", f"{_PAGES}/rules", _add_rule, door="person", right="project.people", again=True, body=RuleForm),
    Route("POST", f"{_PAGES}/rules/<rule>/remove", _drop_rule, door="person", right="project.people", again=True),
    Route(
        "GET", "/api/v1/projects/<project>/reviewers", _list, door="key", right="project.approvals", answer=ReviewersShown,
        summary="groups of reviewers, and which writes ask for them",
    ),
)  # fmt: skip
