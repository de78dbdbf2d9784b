"""Which projects a person or a key may know of."""

from typing import Final

from gatewayd.control.people.rights import in_project
from gatewayd.control.projects.find import FIRST_ID, OF_ORGANISATION, ROLE, Project, ProjectRoleRow
from gatewayd.control.web.call import Call

ALL: Final = 1000


async def visible(call: Call, of: int = ALL) -> list[Project]:
    """Those among the first `of` projects of the organisation that this person may know of, by id."""
    store = call.console.store
    found = await store.rows(Project, OF_ORGANISATION, call.org_id, FIRST_ID, of)
    if call.key_project is not None:
        found = [each for each in found if each.project_id == call.key_project]
    if call.membership.role != "member":
        return found
    mine = []
    for project in found:
        own = await store.row(ProjectRoleRow, ROLE, project.project_id, call.person.person_id)
        if in_project("member", own.role if own else None):
            mine.append(project)
    return mine
