"""People of an organisation: list, invite, roles, remove."""

from typing import Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.moment import moment
from gatewayd.control.organisation.caps import check_cap
from gatewayd.control.organisation.leave import leave, may_less
from gatewayd.control.people.links import Kind, ProjectRole, new_link, store_link
from gatewayd.control.people.person import email_key, email_problem
from gatewayd.control.people.rights import ROLES, Role, may_change_role
from gatewayd.control.projects.find import FIND, FIRST_ID, Project
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, record
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PEOPLE: Final = "organisation/pages/people.html"
_MOST_PEOPLE: Final = 10_000
_LISTED: Final = 100

PEOPLE: Final = Statement(
    "SELECT m.person_id, p.email, p.name, m.role, m.since_ms FROM memberships AS m JOIN people AS p ON p.person_id = m.person_id"
    " WHERE m.org_id = $1 AND m.person_id > $2 ORDER BY m.person_id LIMIT $3"
)
ONE: Final = Statement(
    "SELECT m.person_id, p.email, p.name, m.role, m.since_ms FROM memberships AS m JOIN people AS p ON p.person_id = m.person_id"
    " WHERE m.org_id = $1 AND m.person_id = $2"
)
COUNT_PEOPLE: Final = Statement("SELECT count(*) FROM (SELECT 1 FROM memberships WHERE org_id = $1 LIMIT $2) AS few")
MEMBER: Final = Statement("SELECT role FROM memberships WHERE org_id = $1 AND person_id = $2 FOR UPDATE")
OWNERS: Final = Statement("SELECT person_id FROM memberships WHERE org_id = $1 AND role = 'owner' ORDER BY person_id FOR UPDATE")
SET_ROLE: Final = Statement("UPDATE memberships SET role = $3 WHERE org_id = $1 AND person_id = $2")
INVITATIONS: Final = Statement(
    "SELECT link_id, email, role, ends_ms FROM one_time_links WHERE org_id = $1 AND kind = 'invitation' AND ends_ms > $2"
    " ORDER BY link_id LIMIT 200"
)
WITHDRAW: Final = Statement("DELETE FROM one_time_links WHERE org_id = $1 AND link_id = $2 AND kind = 'invitation'")
PLAN: Final = Statement("SELECT plan FROM organisations WHERE org_id = $1")


class InviteForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`project_role` beside a project: what a member may there."""

    email: str
    role: str
    project: str = ""
    project_role: str = "member"


class RoleForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: str


class Member(msgspec.Struct, frozen=True):
    person_id: str
    email: str
    name: str
    role: Role
    since_ms: int


class People(msgspec.Struct, frozen=True):
    people: list[Member]


class Invitation(msgspec.Struct, frozen=True):
    link_id: str
    email: str | None
    role: str | None
    ends_ms: int


class _Held(msgspec.Struct, frozen=True):
    role: Role


class _Owner(msgspec.Struct, frozen=True):
    person_id: str


async def people(call: Call) -> Answer:
    return await _page(call)


async def list_people(call: Call) -> Answer:
    return json(People(await call.console.store.rows(Member, PEOPLE, call.org_id, FIRST_ID, _MOST_PEOPLE)))


async def invite(call: Call) -> Answer:
    """The link is shown once, to be sent by hand; mail goes out as well where it is configured."""
    form, console = call.sent(InviteForm), call.console
    role = _role(form.role)
    wrong = email_problem(form.email)
    if wrong is not None:
        return await _page(call, wrong, 400)
    if not may_change_role(call.membership.role, "member", role):
        raise Refusal(403, "only owners make owners")
    in_projects: tuple[ProjectRole, ...] = ()
    if form.project:
        if await console.store.row(Project, FIND, call.org_id, _ulid(form.project)) is None:
            raise Refusal(404, "there is nothing here")
        if _role(form.project_role) == "owner":
            raise Refusal(400, "a project has no owner; choose another role")
        in_projects = (ProjectRole(form.project, _role(form.project_role)),)
    kind: Kind = "invitation"
    new = new_link(
        console, kind, org_id=call.org_id, email=email_key(form.email), role=role, in_projects=in_projects,
        made_by=call.person.person_id,
    )  # fmt: skip
    event_id, salt, now_ms = console.new_id(), console.entropy(32), console.now_ms()

    async def work(tx: Transaction) -> None:
        caps = console.settings.plans.of(await tx.value(PLAN, call.org_id))
        if caps.people is not None:
            check_cap("people", await tx.value(COUNT_PEOPLE, call.org_id, caps.people), caps.people)
        await store_link(tx, new)
        act = Act("person.invited", call.person.person_id, target=new.link.link_id, details={"email": form.email, "role": role})
        await record(tx, call.org_id, act, event_id, salt, now_ms)

    await console.store.transaction(work)
    return await _page(call, link=new.address(console.settings.public_url))


async def withdraw(call: Call) -> Answer:
    console, link_id = call.console, _ulid(call.args["invitation"])
    event_id, salt, now_ms = console.new_id(), console.entropy(32), console.now_ms()

    async def work(tx: Transaction) -> None:
        if not await tx.run(WITHDRAW, call.org_id, link_id):
            raise Refusal(404, "there is nothing here")
        await record(tx, call.org_id, Act("invitation.withdrawn", call.person.person_id, target=link_id), event_id, salt, now_ms)

    await console.store.transaction(work)
    return said(call, to("/people"), "removed")


async def change_role(call: Call) -> Answer:
    await _change(call, _role(call.sent(RoleForm).role))
    return said(call, to("/people"), "saved")


async def remove(call: Call) -> Answer:
    await _change(call, None)
    return said(call, to("/people"), "removed")


async def _change(call: Call, after: Role | None) -> None:
    console, person_id = call.console, _ulid(call.args["person"])
    now = moment(console)

    async def work(tx: Transaction) -> None:
        held = await tx.row(_Held, MEMBER, call.org_id, person_id)
        if held is None:
            raise Refusal(404, "there is nothing here")
        if not may_change_role(call.membership.role, held.role, after):
            raise Refusal(403, "only owners make and unmake owners")
        if held.role == "owner" and after != "owner":
            owners = await tx.rows(_Owner, OWNERS, call.org_id)
            if len(owners) == 1:
                raise Refusal(409, "this is the last owner; make another one first")
        details: dict[str, str] = {"before": held.role, "after": after or ""}
        if after is None:
            revoked = await leave(tx, console, call.org_id, person_id, now)
        else:
            await tx.run(SET_ROLE, call.org_id, person_id, after)
            revoked = await may_less(tx, console, call.org_id, person_id, after, now)
        details["tokens_revoked"] = str(revoked)
        act = Act("person.removed" if after is None else "role.changed", call.person.person_id, target=person_id, details=details)
        await now.record(tx, call.org_id, act)

    await console.store.transaction(work)


async def _page(call: Call, problem: str | None = None, status: int = 200, link: str | None = None) -> Answer:
    store = call.console.store
    after = call.incoming.query.get("after", "")
    found = await store.rows(Member, PEOPLE, call.org_id, after if is_ulid(after) else FIRST_ID, _LISTED + 1)
    members, more = found[:_LISTED], found[_LISTED - 1].person_id if len(found) > _LISTED else None
    may_change = call.may("org.people")
    open_ones = await store.rows(Invitation, INVITATIONS, call.org_id, call.console.now_ms()) if may_change else []
    return page(
        call, _PEOPLE, status, members=members, invitations=open_ones, roles=ROLES, problem=problem, link=link,
        may_change=may_change, more=more,
    )  # fmt: skip


def _role(text: str) -> Role:
    if text not in ROLES:
        raise Refusal(400, f"no such role; expected one of {', '.join(ROLES)}")
    return text


def _ulid(text: str) -> str:
    if not is_ulid(text):
        raise Refusal(404, "there is nothing here")
    return text


ROUTES: Final = (
    Route("GET", "/people", people, door="person", right="org.read"),
    Route("POST", "/people/invite", invite, door="person", right="org.people", again=True, body=InviteForm),
    Route("POST", "/people/invitations/<invitation>/withdraw", withdraw, door="person", right="org.people", again=True),
    Route("POST", "/people/<person>/role", change_role, door="person", right="org.people", again=True, body=RoleForm),
    Route("POST", "/people/<person>/remove", remove, door="person", right="org.people", again=True),
    Route("GET", "/api/v1/people", list_people, door="key", right="org.read", answer=People, summary="people and their roles"),
)
