"""Making a project: a name and the names of its databases. Addresses come on its own pages."""

from typing import Final

import msgspec

from gatewayd.control.projects.change import NewProject, new_project
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

_PAGE: Final = "projects/pages/new.html"


class ProjectForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`databases`: names, between spaces, commas or lines."""

    name: str
    databases: str = "main"


async def _new(call: Call) -> Answer:
    return page(call, _PAGE, form=ProjectForm(""), problem=None)


async def _create(call: Call) -> Answer:
    form = call.sent(ProjectForm)
    names = tuple(form.databases.replace(",", " ").split())
    try:
        project_id = await new_project(call, NewProject(form.name, names))
    except Refusal as refusal:
        return page(call, _PAGE, refusal.status, form=form, problem=refusal.text)
    return to(f"/projects/{project_id}")


ROUTES: Final = (
    Route("GET", "/new-project", _new, door="person", right="project.create"),
    Route("POST", "/new-project", _create, door="person", right="project.create", body=ProjectForm),
)
