"""Which projects a person or a key may know of."""

from typing import Final

from gatewayd.control.people.rights import in_project
from gatewayd.control.projects.find import FIRST_ID, OF_ORGANISATION, ROLE, Project, ProjectRoleRow
from gatewayd.control.web.call import Call

ALL: Final = 1000


async def visible(call: Call, of: int = ALL) -> list[Project]:
    """Those among the first `of` projects of the organisation that this person may know of, by id."""
    return (await visible_page(call, FIRST_ID, of))[0]


async def visible_page(call: Call, after: str, of: int) -> tuple[list[Project], str | None]:
    """As `visible`, among the next `of` after an id; and the id after which there are more."""
    found = await call.console.store.rows(Project, OF_ORGANISATION, call.org_id, after, of + 1)
    more = found[of - 1].project_id if len(found) > of else None
    return [each for each in found[:of] if await _may_know(call, each)], more


async def every_visible(call: Call) -> list[Project]:
    """However many there are."""
    found, more = await visible_page(call, FIRST_ID, ALL)
    while more is not None:
        others, more = await visible_page(call, more, ALL)
        found += others
    return found


async def _may_know(call: Call, project: Project) -> bool:
    if call.key_project is not None and project.project_id != call.key_project:
        return False
    if call.membership.role != "member":
        return True
    own = await call.console.store.row(ProjectRoleRow, ROLE, project.project_id, call.person.person_id)
    return bool(in_project("member", own.role if own else None))
