"""Projects as far as everybody needs them: the list that a person or a key may see. What a project is made of adds to this."""

from typing import Final

import msgspec

from gatewayd.control.projects.visible import visible
from gatewayd.control.web.answer import Answer, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

_HOME: Final = "projects/pages/projects.html"


class ProjectShown(msgspec.Struct, frozen=True):
    id: str
    name: str
    state: str
    created_ms: int


class Projects(msgspec.Struct, frozen=True):
    projects: list[ProjectShown]


class Me(msgspec.Struct, frozen=True):
    """Whose key it is, and what it may in the organisation."""

    person: str
    email: str
    organisation: str
    rights: list[str]


async def home(call: Call) -> Answer:
    found = await visible(call) if call.has_organisation else []
    return page(call, _HOME, projects=found)


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
