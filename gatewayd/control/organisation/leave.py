"""Somebody leaves an organisation, or may less than before: where they may have no agents any more, their agents' tokens end.

API keys and sessions look at the roles at every call, so nothing is to be done for them. Roles in projects and places
in groups of reviewers go with the membership: they would count again if the person were invited once more.
"""

from typing import Final

from gatewayd.control.approvals.reviewer_rows import DROP_PERSON
from gatewayd.control.console import Console
from gatewayd.control.moment import Moment
from gatewayd.control.people.rights import Role, in_project
from gatewayd.control.policies.issue import issue_bundle
from gatewayd.control.projects.find import DROP_ROLE, FIRST_ID, OF_ORGANISATION, ROLE, Project, ProjectRoleRow
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.token import REVOKE_OF

_AT_ONCE: Final = 200

END_MEMBERSHIP: Final = Statement("DELETE FROM memberships WHERE org_id = $1 AND person_id = $2")


async def leave(tx: Transaction, console: Console, org_id: str, person_id: str, now: Moment) -> int:
    """How many agents' tokens were revoked. Gateways learn of that by a bundle of each project that is concerned."""
    await tx.run(END_MEMBERSHIP, org_id, person_id)
    return await may_less(tx, console, org_id, person_id, None, now)


async def may_less(tx: Transaction, console: Console, org_id: str, person_id: str, role: Role | None, now: Moment) -> int:
    """Somebody's role in the organisation is now `role`, None: none. How many agents' tokens were revoked, in all projects."""
    revoked, after = 0, FIRST_ID
    while projects := await tx.rows(Project, OF_ORGANISATION, org_id, after, _AT_ONCE):
        for each in projects:
            if role is None:
                await tx.run(DROP_ROLE, each.project_id, person_id)
                await tx.run(DROP_PERSON, each.project_id, person_id)
            revoked += await may_less_in(tx, console, each, person_id, role, now)
        after = projects[-1].project_id
    return revoked


async def may_less_in(tx: Transaction, console: Console, project: Project, person_id: str, role: Role | None, now: Moment) -> int:
    """As `may_less`, in one project, whose own role is read."""
    own = await tx.row(ProjectRoleRow, ROLE, project.project_id, person_id)
    if role is not None and "project.tokens" in in_project(role, own.role if own is not None else None):
        return 0
    revoked = await tx.run(REVOKE_OF, project.project_id, person_id, now.now_ms)
    if revoked:
        await issue_bundle(
            tx, console, project.org_id, project.project_id, "tokens revoked", now_ms=now.now_ms, issuer=now.fresh_id
        )
    return revoked
