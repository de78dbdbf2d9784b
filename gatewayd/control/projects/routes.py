"""Projects as far as everybody needs them: the list that a person or a key may see. What a project is made of adds to this."""

from typing import Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.audit.rollup import BY_DAY, DayCount
from gatewayd.control.gateways.fleet import SILENT_MS
from gatewayd.control.gateways.gateway import OF_PROJECT, Gateway
from gatewayd.control.projects.find import FIRST_ID, Project
from gatewayd.control.projects.visible import visible, visible_page
from gatewayd.control.store.days import day_number, day_of
from gatewayd.control.web.answer import Answer, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

_GATEWAYS: Final = 500
_LISTED: Final = 50
_HOME: Final = "projects/pages/projects.html"


class ProjectShown(msgspec.Struct, frozen=True):
    id: str
    name: str
    state: str
    created_ms: int


class Listed(msgspec.Struct, frozen=True):
    """One line of the first page. Counts are of today, UTC."""

    project: Project
    gateways: int
    enforcing: int
    calls: int
    denied: int


class Projects(msgspec.Struct, frozen=True):
    projects: list[ProjectShown]


class Me(msgspec.Struct, frozen=True):
    """Whose key it is, and what it may in the organisation."""

    person: str
    email: str
    organisation: str
    rights: list[str]


async def home(call: Call) -> Answer:
    after = call.incoming.query.get("after", "")
    place = after if is_ulid(after) else FIRST_ID
    found, more = await visible_page(call, place, _LISTED) if call.has_organisation else ([], None)
    return page(call, _HOME, projects=[await _listed(call, project) for project in found], more=more)


async def _listed(call: Call, project: Project) -> Listed:
    store, now_ms = call.console.store, call.console.now_ms()
    today = day_number(day_of(now_ms))
    gateways = await store.rows(Gateway, OF_PROJECT, project.project_id, FIRST_ID, _GATEWAYS)
    counts = await store.rows(DayCount, BY_DAY, project.project_id, "all", today, today)
    heard = [each for each in gateways if each.standing == "active" and now_ms - (each.seen_ms or 0) <= SILENT_MS]
    enforcing = sum(each.state == "enforcing" for each in heard)
    calls, denied = (counts[0].calls, counts[0].denied) if counts else (0, 0)
    return Listed(project, len(gateways), enforcing, calls, denied)


async def list_projects(call: Call) -> Answer:
    return json(Projects([ProjectShown(each.project_id, each.name, each.state, each.created_ms) for each in await visible(call)]))


async def one_project(call: Call) -> Answer:
    project = call.project
    return json(ProjectShown(project.project_id, project.name, project.state, project.created_ms))


async def me(call: Call) -> Answer:
    return json(Me(call.person.person_id, call.person.email, call.org_id, sorted(call.rights)))


ROUTES: Final = (
    Route("GET", "/", home, door="person"),
    Route("GET", "/api/v1/me", me, door="key", answer=Me, summary="whose key this is"),
    Route("GET", "/api/v1/projects", list_projects, door="key", right="org.read", answer=Projects, summary="projects"),
    Route(
        "GET", "/api/v1/projects/<project>", one_project, door="key", right="project.read", answer=ProjectShown,
        summary="one project",
    ),
)  # fmt: skip
