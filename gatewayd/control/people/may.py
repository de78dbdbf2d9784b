"""Who may do something in a project now, looked up in the transaction that rests on it: roles change while something waits."""

from collections.abc import Collection
from typing import Final

import msgspec

from gatewayd.control.people.rights import Right, Role, in_project
from gatewayd.control.projects.find import Project, ProjectRoleRow
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

PEOPLE_MOST: Final = 1000

SOME: Final = Statement(
    "SELECT m.person_id, p.name, m.role FROM memberships AS m JOIN people AS p ON p.person_id = m.person_id"
    " WHERE m.org_id = $1 AND m.person_id = ANY($2) AND p.disabled_ms IS NULL ORDER BY m.person_id"
)
ALL: Final = Statement(
    "SELECT m.person_id, p.name, m.role FROM memberships AS m JOIN people AS p ON p.person_id = m.person_id"
    " WHERE m.org_id = $1 AND p.disabled_ms IS NULL ORDER BY m.person_id LIMIT $2"
)
ROLES_OF: Final = Statement("SELECT person_id, role FROM project_roles WHERE project_id = $1 AND person_id = ANY($2)")


class _Somebody(msgspec.Struct, frozen=True):
    person_id: str
    name: str
    role: Role


class _InProject(ProjectRoleRow, frozen=True):
    person_id: str


async def who_may(tx: Transaction, project: Project, right: Right, among: Collection[str] | None = None) -> dict[str, str]:
    """Names by person id of those who have this right in the project now; None: of the whole organisation, up to PEOPLE_MOST.
    Who has left, and whose account is disabled, may nothing."""
    if among is None:
        found = await tx.rows(_Somebody, ALL, project.org_id, PEOPLE_MOST)
    else:
        found = await tx.rows(_Somebody, SOME, project.org_id, sorted(among)) if among else []
    own = await tx.rows(_InProject, ROLES_OF, project.project_id, [each.person_id for each in found]) if found else []
    roles = {each.person_id: each.role for each in own}
    return {each.person_id: each.name for each in found if right in in_project(each.role, roles.get(each.person_id))}
