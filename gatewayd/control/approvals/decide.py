"""A person decides about a held write: one conditional UPDATE, so of two deciders at once one has decided.

Only a session decides: never an API key, never a GET. Who may not approve what their own token asked for may still deny it.
"""

from typing import Final, Literal

import msgspec

from gatewayd.approvals.rules import status_of
from gatewayd.audit.ids import is_ulid
from gatewayd.control.approvals import requests
from gatewayd.control.approvals.answer import read_ask, until_known
from gatewayd.control.approvals.grants import ADD as ADD_GRANT
from gatewayd.control.approvals.grants import GrantTerms, shape_of, terms_problem
from gatewayd.control.approvals.requests import begin_change
from gatewayd.control.approvals.shown import ONE, StoredRequest
from gatewayd.control.moment import Moment, moment
from gatewayd.control.projects.find import FIND as FIND_PROJECT
from gatewayd.control.projects.find import Project
from gatewayd.control.projects.terms import terms_of
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Refusal
from gatewayd.control.web.call import Call

NOTE_CHARACTERS: Final = 2000
_NOTHING: Final = "there is nothing here"
_STATES: Final = {"approve": "approved", "deny": "denied"}


class WriteDecision(msgspec.Struct, frozen=True):
    """`rows_at_most`: more rows than that, and the write is rolled back; None: no bound. Only for `approve`."""

    decision: Literal["approve", "deny"]
    note: str = ""
    rows_at_most: int | None = None
    grant: GrantTerms | None = None
    """With an approval: a grant for the request's shape, too."""


async def decide(call: Call, approval_id: str, wanted: WriteDecision) -> None:
    """Decide in the name of the person of this call's session.

    Raises Refusal: 404 for what is not there, 403 for one's own request where the project forbids that, 409 for what is decided
    already or has expired, 400 for a bound on a denial.
    """
    assert call.session.person_id == call.person.person_id, "a session decides, nothing else"
    if wanted.decision == "deny" and wanted.rows_at_most is not None:
        raise Refusal(400, "rows_at_most: a denial has no bound")
    wrong = terms_problem(wanted.grant, wanted.rows_at_most) if wanted.grant is not None else None
    if wrong is not None:
        raise Refusal(400, wrong)
    if not is_ulid(approval_id):
        raise Refusal(404, _NOTHING)
    console, project_id, person = call.console, call.project.project_id, call.person
    now, note = moment(console), wanted.note.strip() or None
    state = _STATES[wanted.decision]

    async def work(tx: Transaction) -> None:
        project = await tx.row(Project, FIND_PROJECT, call.org_id, project_id)
        if project is None:
            raise Refusal(404, _NOTHING)
        terms = terms_of(project.settings)
        may_be_own = wanted.decision == "deny" or terms.self_approval
        await begin_change(tx, project_id)
        values = (state, person.person_id, person.name, now.now_ms, note, wanted.rows_at_most)
        if not await tx.run(requests.DECIDE, project_id, approval_id, *values, may_be_own):
            found = await tx.row(StoredRequest, ONE, project_id, approval_id)
            if found is not None and (found.state, found.decider, found.decided_ms) == (state, person.person_id, now.now_ms):
                return  # this very decision, whose COMMIT was not heard of
            raise _why_not(found, person.person_id, now.now_ms)
        await tx.run(requests.DROP_PENDING, project_id, approval_id)
        if wanted.grant is not None:
            await _grant(tx, call, approval_id, wanted, now, is_allowed=terms.shape_grants)
        details = {"note": note or "", "rows_at_most": "" if wanted.rows_at_most is None else str(wanted.rows_at_most)}
        if wanted.grant is not None:
            details |= {"grant": now.fresh_id, "minutes": str(wanted.grant.minutes), "times": str(wanted.grant.times)}
        await now.record(tx, call.org_id, Act(f"approval.{state}", person.person_id, project_id, approval_id, details))

    await until_known(console.store, work)


async def _grant(tx: Transaction, call: Call, approval_id: str, wanted: WriteDecision, now: Moment, *, is_allowed: bool) -> None:
    """Beside the approval: a grant for the shape of its statement. Raises Refusal where there can be none: nothing is decided."""
    found = await tx.row(StoredRequest, ONE, call.project.project_id, approval_id)
    assert found is not None, "it was just approved"
    assert wanted.grant is not None
    ask = read_ask(found.ask)
    shape = shape_of(ask)
    if not is_allowed:
        raise Refusal(403, "this project's terms allow no grants for shapes of statements")
    if shape is None:
        raise Refusal(409, "there is no grant for a shape of this statement: it is no plain change of rows, or too long")
    await tx.run(
        ADD_GRANT, call.project.project_id, now.fresh_id, shape, found.asker, ask.database, ask.policy_hash, approval_id,
        wanted.rows_at_most, wanted.grant.times, now.now_ms + wanted.grant.minutes * 60_000, call.person.person_id,
        call.person.name, now.now_ms, wanted.note.strip() or None,
    )  # fmt: skip


def _why_not(found: StoredRequest | None, person_id: str, now_ms: int) -> Refusal:
    if found is None:
        return Refusal(404, _NOTHING)
    if found.is_open(now_ms) and found.requester == person_id:
        return Refusal(403, "your own token asked for this; in this project somebody else approves it")
    if found.state == "pending":
        return Refusal(409, "this request has expired; the agent asks again when it runs the statement again")
    return Refusal(409, f"this was decided already: {status_of(found, now_ms).status}, by {found.decided_by or 'somebody'}")
