"""Somebody leaves an organisation: with the membership end their roles in its projects and the tokens that they gave to agents.

API keys and sessions look at the membership at every call, so nothing is to be done for them. Roles in projects have to go: they
would count again if the person were invited once more.
"""

from typing import Final

from gatewayd.control.console import Console
from gatewayd.control.moment import Moment
from gatewayd.control.policies.issue import issue_bundle
from gatewayd.control.projects.find import DROP_ROLE, FIRST_ID, OF_ORGANISATION, Project
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.token import REVOKE_OF

_AT_ONCE: Final = 200

END_MEMBERSHIP: Final = Statement("DELETE FROM memberships WHERE org_id = $1 AND person_id = $2")


async def leave(tx: Transaction, console: Console, org_id: str, person_id: str, now: Moment) -> int:
    """How many agents' tokens were revoked. Gateways learn of that by a bundle of each project that is concerned."""
    await tx.run(END_MEMBERSHIP, org_id, person_id)
    revoked, after = 0, FIRST_ID
    while projects := await tx.rows(Project, OF_ORGANISATION, org_id, after, _AT_ONCE):
        for each in projects:
            revoked += await _leave_project(tx, console, each, person_id, now)
        after = projects[-1].project_id
    return revoked


async def _leave_project(tx: Transaction, console: Console, project: Project, person_id: str, now: Moment) -> int:
    await tx.run(DROP_ROLE, project.project_id, person_id)
    revoked = await tx.run(REVOKE_OF, project.project_id, person_id, now.now_ms)
    if revoked:
        await issue_bundle(
            tx, console, project.org_id, project.project_id, "tokens revoked", now_ms=now.now_ms, issuer=now.fresh_id
        )
    return revoked
