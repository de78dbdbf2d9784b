"""A project's terms for people, and who has a role in it."""

from typing import Final, Literal

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.moment import moment
from gatewayd.control.organisation.routes import MEMBERS_MOST, PEOPLE, Member
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

ROLES_IN: Final = Statement("SELECT person_id, role FROM project_roles WHERE project_id = $1 ORDER BY person_id LIMIT 1000")


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
    """`role` empty: none any more."""

    person: str
    role: str = ""


class _InProject(msgspec.Struct, frozen=True):
    person_id: str
    role: Role


async def _settings(call: Call) -> Answer:
    return await _page(call, terms_of(call.project.settings))


async def _page(call: Call, terms: ProjectTerms, problem: str | None = None, status: int = 200) -> Answer:
    store = call.console.store
    members = await store.rows(Member, PEOPLE, call.org_id, MEMBERS_MOST)
    roles = {each.person_id: each.role for each in await store.rows(_InProject, ROLES_IN, call.project.project_id)}
    within = [(each, roles[each.person_id]) for each in members if each.person_id in roles]
    others = [(each.person_id, f"{each.name}, {each.email}") for each in members if each.person_id not in roles]
    return page(
        call, _PAGE, status, terms=terms, within=within, others=others, roles=PROJECT_ROLES, problem=problem
    )  # fmt: skip


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


async def _set_role(call: Call) -> Answer:
    form, console, project_id = call.sent(ProjectRoleForm), call.console, call.project.project_id
    role = next((each for each in PROJECT_ROLES if each == form.role), None)
    if form.role and role is None:
        raise Refusal(400, f"role: found {form.role[:40]!r}; expected one of {', '.join(PROJECT_ROLES)}")
    members = await console.store.rows(Member, PEOPLE, call.org_id, MEMBERS_MOST)
    person = next((each for each in members if is_ulid(form.person) and each.person_id == form.person), None)
    if person is None:
        raise Refusal(404, "there is nothing here")
    now, member = moment(console), person

    async def work(tx: Transaction) -> None:
        if role is None:
            await tx.run(DROP_ROLE, project_id, member.person_id)
        else:
            await tx.run(SET_ROLE, project_id, member.person_id, role, now.now_ms)
        act = Act(
            "project.role_changed",
            call.person.person_id,
            project_id,
            member.person_id,
            {"name": member.name, "role": role or "none"},
        )
        await now.record(tx, call.org_id, act)

    await console.store.transaction(work)
    return said(call, to(f"/projects/{project_id}/settings"), "saved")


_PAGES: Final = "/projects/<project>/settings"
ROUTES: Final = (
    Route("GET", _PAGES, _settings, door="person", right="project.policy"),
    Route("POST", _PAGES, _set_terms, door="person", right="project.policy", body=TermsForm),
    Route("POST", f"{_PAGES}/people", _set_role, door="person", right="project.people", again=True, body=ProjectRoleForm),
)
