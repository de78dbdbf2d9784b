"""A project is created, paused, resumed, set to other terms; over the API, and as functions for pages.

Pausing is a bundle with state `paused`: every gateway of the project refuses every call from its next poll on.
"""

from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.moment import moment
from gatewayd.control.people.person import name_problem
from gatewayd.control.policies.issue import issue_bundle
from gatewayd.control.projects.create import before_creation, create_project
from gatewayd.control.projects.find import FIND, Project
from gatewayd.control.projects.routes import ProjectShown
from gatewayd.control.projects.terms import ProjectTerms, loosened, terms_of, terms_text
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Redirect, Refusal, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.route import Route
from gatewayd.policy.file.name_forms import DATABASE, PUBLIC_URL

SET_STATE: Final = Statement(
    "UPDATE projects SET state = $3, state_note = $4 WHERE org_id = $1 AND project_id = $2 AND deleted_ms IS NULL AND state <> $3"
)
SET_TERMS: Final = Statement("UPDATE projects SET settings = $3 WHERE org_id = $1 AND project_id = $2 AND deleted_ms IS NULL")
_NOTE: Final = 500
_DATABASES: Final = 64
_HOURS: Final = 24 * 365
_DAY_MINUTES: Final = 24 * 60


class NewProject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`databases`: the names that the policy will use."""

    name: str
    databases: tuple[str, ...] = ("main",)


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    note: str = ""


async def new_project(call: Call, wanted: NewProject) -> str:
    """The id of the new project. Raises Refusal with what is wrong, CapReached."""
    wrong = name_problem(wanted.name)
    if wrong is not None:
        raise Refusal(400, f"name: {wrong}")
    names = wanted.databases
    if not 1 <= len(names) <= _DATABASES or len(set(names)) != len(names):
        raise Refusal(400, f"databases: expected 1 to {_DATABASES} different names")
    for name in names:
        try:
            DATABASE.parse(name)
        except ValueError as problem:
            raise Refusal(400, f"databases: {problem}") from None
    console, name = call.console, wanted.name.strip()
    made = before_creation(console, names)

    async def work(tx: Transaction) -> str:
        return await create_project(tx, console, call.org_id, call.person.person_id, name, names, made)

    return await console.store.transaction(work)


async def set_paused(call: Call, note: str, *, paused: bool) -> None:
    """Pause or resume; nothing happens when it is so already. Raises Refusal for a note that is too long."""
    await pause_project(call, call.project.project_id, note, paused=paused)


async def pause_project(call: Call, project_id: str, note: str, *, paused: bool) -> None:
    """As `set_paused`, of any project of the organisation."""
    if len(note) > _NOTE:
        raise Refusal(400, f"note: found {len(note)} characters; expected at most {_NOTE}")
    console, now, person_id = call.console, moment(call.console), call.person.person_id

    async def work(tx: Transaction) -> None:
        if not await tx.run(SET_STATE, call.org_id, project_id, "paused" if paused else "enforced", note or None):
            return
        reason = "paused" if paused else "resumed"
        await issue_bundle(tx, console, call.org_id, project_id, reason, now_ms=now.now_ms, issuer=now.fresh_id)
        await now.record(tx, call.org_id, Act(f"project.{reason}", person_id, project_id, None, {"note": note}))

    await console.store.transaction(work)


async def set_terms(call: Call, terms: ProjectTerms) -> None:
    """Raises Refusal naming the field: out of its range, or 403 for an API key that loosens who must agree; for a person who
    does that, Redirect to the sign-in where the last one is not of now."""
    wrong = terms_problem(terms)
    if wrong is not None:
        raise Refusal(400, wrong)
    console, now = call.console, moment(call.console)
    project_id, person_id = call.project.project_id, call.person.person_id

    async def work(tx: Transaction) -> None:
        project = await tx.row(Project, FIND, call.org_id, project_id)
        if project is None:
            raise Refusal(404, "there is nothing here")
        field = loosened(terms_of(project.settings), terms)
        if field is not None:
            _check_person(call, field)
        await tx.run(SET_TERMS, call.org_id, project_id, terms_text(terms))
        await issue_bundle(tx, console, call.org_id, project_id, "terms changed", now_ms=now.now_ms, issuer=now.fresh_id)
        await now.record(tx, call.org_id, Act("project.terms_changed", person_id, project_id, None, {"terms": terms_text(terms)}))

    await console.store.transaction(work)


def _check_person(call: Call, field: str) -> None:
    """Raises Refusal for an API key, Redirect where the person has to sign in again."""
    if call.is_key:
        raise Refusal(403, f"{field}: this loosens who must agree, so a person changes it, in the project's settings")
    if not call.session.is_fresh(call.console.now_ms()):
        raise Redirect(f"/again?next=/projects/{call.project.project_id}/settings")


def terms_problem(terms: ProjectTerms) -> str | None:
    """What is out of its range; None when nothing is."""
    ranges = (
        ("fresh_for_s", terms.fresh_for_s, 30, 30 * 86_400),
        ("retention_h", terms.retention_h, 1, _HOURS),
        ("approval_minutes", terms.approval_minutes, 1, _DAY_MINUTES),
    )
    for field, found, least, most in ranges:
        if not least <= found <= most:
            return f"{field}: found {found}; expected {least} to {most}"
    for url in terms.public_urls:
        try:
            PUBLIC_URL.parse(url)
        except ValueError as problem:
            return f"public_urls: {problem}"
    return None


async def current(console: Console, org_id: str, project_id: str) -> Project:
    """The project as it is now. Raises Refusal 404."""
    project = await console.store.row(Project, FIND, org_id, project_id)
    if project is None:
        raise Refusal(404, "there is nothing here")
    return project


async def _shown(call: Call, project_id: str, status: int = 200) -> Answer:
    project = await current(call.console, call.org_id, project_id)
    return json(ProjectShown(project.project_id, project.name, project.state, project.created_ms), status)


async def _create(call: Call) -> Answer:
    return await _shown(call, await new_project(call, call.sent(NewProject)), 201)


async def _pause(call: Call) -> Answer:
    await set_paused(call, call.sent(Pause).note, paused=True)
    return await _shown(call, call.project.project_id)


async def _resume(call: Call) -> Answer:
    await set_paused(call, call.sent(Pause).note, paused=False)
    return await _shown(call, call.project.project_id)


async def _terms(call: Call) -> Answer:
    return json(terms_of(call.project.settings))


async def _set_terms(call: Call) -> Answer:
    await set_terms(call, call.sent(ProjectTerms))
    return json(call.sent(ProjectTerms))


_ONE: Final = "/api/v1/projects/<project>"
ROUTES: Final = (
    Route(
        "POST",
        "/api/v1/projects",
        _create,
        door="key",
        right="project.create",
        body=NewProject,
        answer=ProjectShown,
        summary="create a project",
    ),
    Route("POST", f"{_ONE}/pause", _pause, door="key", right="project.pause", body=Pause, answer=ProjectShown, summary="pause"),
    Route(
        "POST", f"{_ONE}/resume", _resume, door="key", right="project.pause", body=Pause, answer=ProjectShown, summary="resume"
    ),
    Route("GET", f"{_ONE}/terms", _terms, door="key", right="project.read", answer=ProjectTerms, summary="terms of its bundles"),
    Route(
        "PUT",
        f"{_ONE}/terms",
        _set_terms,
        door="key",
        right="project.policy",
        body=ProjectTerms,
        answer=ProjectTerms,
        summary="set the terms of its bundles",
    ),
)
