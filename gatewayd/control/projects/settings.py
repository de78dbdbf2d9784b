"""A project's terms for people, and who has a role in it."""

from typing import Final, Literal

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.moment import moment
from gatewayd.control.organisation.leave import may_less_in
from gatewayd.control.organisation.routes import ONE as ONE_MEMBER
from gatewayd.control.organisation.routes import Member
from gatewayd.control.people.person import BY_EMAIL, Person, email_key
from gatewayd.control.people.rights import ROLES, Role
from gatewayd.control.projects.change import set_terms
from gatewayd.control.projects.find import DROP_ROLE, SET_ROLE
from gatewayd.control.projects.terms import ProjectTerms, terms_of
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "projects/pages/settings.html"
PROJECT_ROLES: Final[tuple[Role, ...]] = tuple(role for role in ROLES if role != "owner")

ROLES_IN: Final = Statement("SELECT person_id, role FROM project_roles WHERE project_id = $1 ORDER BY person_id LIMIT 200")


class TermsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A box that is not ticked is not sent."""

    approval_minutes: int
    retention_h: int
    fresh_for_s: int
    on_stale: Literal["keep", "halt"]
    statements: Literal["full", "redacted", "none"]
    public_urls: str = ""
    self_approval: str = ""
    second_publisher: str = ""
    shape_grants: str = ""
    view_definitions: str = ""


class ProjectRoleForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    email: str
    role: str


class NoRoleForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    person: str


class _InProject(msgspec.Struct, frozen=True):
    person_id: str
    role: Role


async def _settings(call: Call) -> Answer:
    return await _page(call, terms_of(call.project.settings))


async def _page(call: Call, terms: ProjectTerms, problem: str | None = None, status: int = 200) -> Answer:
    store = call.console.store
    found = await store.rows(_InProject, ROLES_IN, call.project.project_id)
    within = [(await store.row(Member, ONE_MEMBER, call.org_id, each.person_id), each.role) for each in found]
    known = [(member, role) for member, role in within if member is not None]
    return page(call, _PAGE, status, terms=terms, within=known, roles=PROJECT_ROLES, problem=problem)


async def _set_terms(call: Call) -> Answer:
    form = call.sent(TermsForm)
    terms = msgspec.structs.replace(
        terms_of(call.project.settings),
        approval_minutes=form.approval_minutes,
        retention_h=form.retention_h,
        fresh_for_s=form.fresh_for_s,
        on_stale=form.on_stale,
        statements=form.statements,
        public_urls=tuple(form.public_urls.split()),
        self_approval=bool(form.self_approval),
        second_publisher=bool(form.second_publisher),
        shape_grants=bool(form.shape_grants),
        view_definitions=bool(form.view_definitions),
    )
    try:
        await set_terms(call, terms)
    except Refusal as refusal:
        return await _page(call, terms, refusal.text, refusal.status)
    return said(call, to(f"/projects/{call.project.project_id}/settings"), "saved")


async def _give_role(call: Call) -> Answer:
    form, store = call.sent(ProjectRoleForm), call.console.store
    role = next((each for each in PROJECT_ROLES if each == form.role), None)
    if role is None:
        raise Refusal(400, f"role: found {form.role[:40]!r}; expected one of {', '.join(PROJECT_ROLES)}")
    person = await store.row(Person, BY_EMAIL, email_key(form.email))
    member = await store.row(Member, ONE_MEMBER, call.org_id, person.person_id) if person is not None else None
    if member is None:
        text = "nobody of the organisation has this mail address; invite them first"
        return await _page(call, terms_of(call.project.settings), text, 400)
    return await _set_role(call, member, role)


async def _take_role(call: Call) -> Answer:
    person = call.sent(NoRoleForm).person
    member = await call.console.store.row(Member, ONE_MEMBER, call.org_id, person) if is_ulid(person) else None
    if member is None:
        raise Refusal(404, "there is nothing here")
    return await _set_role(call, member, None)


async def _set_role(call: Call, member: Member, role: Role | None) -> Answer:
    now, project_id = moment(call.console), call.project.project_id

    async def work(tx: Transaction) -> None:
        if role is None:
            await tx.run(DROP_ROLE, project_id, member.person_id)
        else:
            await tx.run(SET_ROLE, project_id, member.person_id, role, now.now_ms)
        revoked = await may_less_in(tx, call.console, call.project, member.person_id, member.role, now)
        details = {"name": member.name, "role": role or "none", "tokens_revoked": str(revoked)}
        act = Act("project.role_changed", call.person.person_id, project_id, member.person_id, details)
        await now.record(tx, call.org_id, act)

    await call.console.store.transaction(work)
    return said(call, to(f"/projects/{project_id}/settings"), "saved")


_PAGES: Final = "/projects/<project>/settings"
ROUTES: Final = (
    Route("GET", _PAGES, _settings, door="person", right="project.policy"),
    Route("POST", _PAGES, _set_terms, door="person", right="project.policy", body=TermsForm),
    Route("POST", f"{_PAGES}/people", _give_role, door="person", right="project.people", again=True, body=ProjectRoleForm),
    Route("POST", f"{_PAGES}/people/remove", _take_role, door="person", right="project.people", again=True, body=NoRoleForm),
)
