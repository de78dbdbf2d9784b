"""Projects as the gate finds them: by organisation and id, with the role that a person has there."""

from typing import Final

import msgspec

from gatewayd.control.people.rights import Role
from gatewayd.control.store.statement import Statement

FIND: Final = Statement(
    "SELECT org_id, project_id, name, state, created_ms, retention_days, settings FROM projects"
    " WHERE org_id = $1 AND project_id = $2 AND deleted_ms IS NULL"
)
OF_ORGANISATION: Final = Statement(
    "SELECT org_id, project_id, name, state, created_ms, retention_days, settings FROM projects"
    " WHERE org_id = $1 AND project_id > $2 AND deleted_ms IS NULL ORDER BY project_id LIMIT $3"
)
ROLE: Final = Statement("SELECT role FROM project_roles WHERE project_id = $1 AND person_id = $2")
SET_ROLE: Final = Statement(
    "INSERT INTO project_roles (project_id, person_id, role, since_ms) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (project_id, person_id) DO UPDATE SET role = excluded.role, since_ms = excluded.since_ms"
)
DROP_ROLE: Final = Statement("DELETE FROM project_roles WHERE project_id = $1 AND person_id = $2")

FIRST_ID: Final = "0" * 26
"""Below every ULID: where a list by id begins."""


class Project(msgspec.Struct, frozen=True):
    org_id: str
    project_id: str
    name: str
    state: str
    created_ms: int
    retention_days: int
    settings: str


class ProjectRoleRow(msgspec.Struct, frozen=True):
    role: Role
