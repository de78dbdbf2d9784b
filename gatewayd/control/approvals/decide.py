"""A person decides about a held write: one conditional UPDATE, so of two deciders at once one has decided.

Only a session decides: never an API key, never a GET. Who may not approve what their own token asked for may still deny it. Where
rules ask for several people, each approval is kept until there are enough; one denial ends the request.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from gatewayd.approvals.messages import GateAsk
from gatewayd.approvals.rules import status_of
from gatewayd.audit.ids import is_ulid
from gatewayd.control.approvals import requests
from gatewayd.control.approvals.answer import read_ask, until_known
from gatewayd.control.approvals.grants import ADD as ADD_GRANT
from gatewayd.control.approvals.grants import GrantTerms, shape_of, terms_problem
from gatewayd.control.approvals.requests import begin_change
from gatewayd.control.approvals.reviewer_rows import VOTE, VOTES, alone_approves, stand_of
from gatewayd.control.approvals.reviewers import Asked, Vote
from gatewayd.control.approvals.shown import ONE, StoredRequest
from gatewayd.control.moment import Moment, moment
from gatewayd.control.projects.find import FIND as FIND_PROJECT
from gatewayd.control.projects.find import Project
from gatewayd.control.projects.terms import ProjectTerms, terms_of
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Refusal
from gatewayd.control.web.call import Call

NOTE_CHARACTERS: Final = 2000
_NOTHING: Final = "there is nothing here"


class DecidedElsewhere(Refusal):
    """It came too late: somebody has decided, or the time is over."""


class WriteDecision(msgspec.Struct, frozen=True):
    """`rows_at_most`: more rows than that, and the write is rolled back; None: no bound. Only for `approve`."""

    decision: Literal["approve", "deny"]
    note: str = ""
    rows_at_most: int | None = None
    grant: GrantTerms | None = None
    """With an approval: a grant for the request's shape, too."""


async def decide(call: Call, approval_id: str, wanted: WriteDecision) -> bool:
    """Decide in the name of the person of this call's session. False: the approval is kept, and others are still asked.

    Raises Refusal: 404 for what is not there, 403 for one's own request where the project forbids that and for a write that
    others approve, 409 for what is decided already or has expired and while the project is paused, 400 for a bound on a denial.
    """
    assert call.session.person_id == call.person.person_id, "a session decides, nothing else"
    if wanted.decision == "deny" and wanted.rows_at_most is not None:
        raise Refusal(400, "rows_at_most: a denial has no bound")
    wrong = terms_problem(wanted.grant, wanted.rows_at_most) if wanted.grant is not None else None
    if wrong is not None:
        raise Refusal(400, wrong)
    if not is_ulid(approval_id):
        raise Refusal(404, _NOTHING)
    deciding = _Deciding(call, approval_id, wanted, moment(call.console))
    return await until_known(call.console.store, deciding.decide)


class _Deciding:
    """One decision, with all that its transaction needs of the outside."""

    def __init__(self, call: Call, approval_id: str, wanted: WriteDecision, now: Moment) -> None:
        self._call: Final = call
        self._approval_id: Final = approval_id
        self._wanted: Final = wanted
        self._now: Final = now
        self._note: Final = wanted.note.strip() or None

    async def decide(self, tx: Transaction) -> bool:
        call, wanted = self._call, self._wanted
        await begin_change(tx, call.project.project_id)
        project = await tx.row(Project, FIND_PROJECT, call.org_id, call.project.project_id)
        if project is None:
            raise Refusal(404, _NOTHING)
        if wanted.decision == "deny":
            made = _Made("denied", call.person.name, self._note, None)
            await self._close(tx, project, made, may_be_own=True)
            return True
        if project.state == "paused":
            raise Refusal(409, "the project is paused, so nothing is approved; deny it, or resume the project first")
        return await self._approve(tx, project, terms_of(project.settings))

    async def _approve(self, tx: Transaction, project: Project, terms: ProjectTerms) -> bool:
        """One person's word; with it the request may be approved, or others are still asked."""
        person, now_ms, wanted = self._call.person, self._now.now_ms, self._wanted
        found = await tx.row(StoredRequest, ONE, project.project_id, self._approval_id)
        if found is not None and self._is_this(found, "approved"):
            return True
        if found is None or not found.is_open(now_ms):
            raise _why_not(found, person.person_id, now_ms)
        ask = read_ask(found.ask)
        if any(vote.vote_id == self._now.fresh_id for vote in await tx.rows(Vote, VOTES, project.project_id, self._approval_id)):
            return False  # this very word, whose COMMIT was not heard of
        word = (person.person_id, person.name, self._note, wanted.rows_at_most, now_ms, terms.self_approval, self._now.fresh_id)
        if not await tx.run(VOTE, project.project_id, self._approval_id, *word):
            raise _why_not(found, person.person_id, now_ms)
        stand = await stand_of(tx, project, terms, self._approval_id, ask, found.requester)
        if person.person_id not in stand.asked.may:
            needed = _needed(stand.asked)
            raise Refusal(403, f"this write is approved by {needed}; your word does not count there, but you may deny it")
        if stand.is_approved:
            if wanted.grant is not None:
                await self._grant(tx, project, terms, found, ask)
            await self._close(tx, project, _together(stand.counting), may_be_own=terms.self_approval)
            return True
        if wanted.grant is not None:
            raise Refusal(409, f"there is no grant for a shape of this statement: it is approved by {_needed(stand.asked)}")
        details = {"note": self._note or "", "rows_at_most": _text(wanted.rows_at_most), "needs": _needed(stand.asked)}
        act = Act("approval.given", person.person_id, project.project_id, self._approval_id, details)
        await self._now.record(tx, project.org_id, act)
        return False

    async def _close(self, tx: Transaction, project: Project, made: "_Made", *, may_be_own: bool) -> None:
        """The decision itself: one conditional UPDATE."""
        person, wanted, project_id = self._call.person, self._wanted, project.project_id
        values = (made.state, person.person_id, made.by, self._now.now_ms, made.note, made.rows_at_most)
        if not await tx.run(requests.DECIDE, project_id, self._approval_id, *values, may_be_own):
            found = await tx.row(StoredRequest, ONE, project_id, self._approval_id)
            if found is not None and self._is_this(found, made.state):
                return
            raise _why_not(found, person.person_id, self._now.now_ms)
        await tx.run(requests.DROP_PENDING, project_id, self._approval_id)
        details = {"note": self._note or "", "rows_at_most": _text(made.rows_at_most)}
        if made.by != person.name:
            details["together"] = made.by
        if wanted.grant is not None:
            details |= {"grant": self._now.fresh_id, "minutes": str(wanted.grant.minutes), "times": str(wanted.grant.times)}
        act = Act(f"approval.{made.state}", person.person_id, project_id, self._approval_id, details)
        await self._now.record(tx, project.org_id, act)

    async def _grant(
        self, tx: Transaction, project: Project, terms: ProjectTerms, found: StoredRequest, ask: GateAsk
    ) -> None:  # fmt: skip
        """Beside the approval: a grant for the shape of its statement. Raises Refusal where there can be none."""
        person, wanted, now = self._call.person, self._wanted, self._now
        assert wanted.grant is not None
        shape = shape_of(ask)
        if not terms.shape_grants:
            raise Refusal(403, "this project's terms allow no grants for shapes of statements")
        if shape is None:
            why = "its agent has read foreign text" if ask.contained else "it is no plain change of rows, or too long"
            raise Refusal(409, f"there is no grant for a shape of this statement: {why}")
        if not await alone_approves(tx, project, terms, ask, found.requester, person.person_id):
            raise Refusal(409, "there is no grant for a shape of this statement: it takes more people than one to approve it")
        await tx.run(
            ADD_GRANT, project.project_id, now.fresh_id, shape, found.asker, ask.database, ask.policy_hash, found.approval_id,
            wanted.rows_at_most, wanted.grant.times, now.now_ms + wanted.grant.minutes * 60_000, person.person_id, person.name,
            now.now_ms, self._note,
        )  # fmt: skip

    def _is_this(self, found: StoredRequest, state: str) -> bool:
        """Whether it is this very decision, whose COMMIT was not heard of."""
        return (found.state, found.decider, found.decided_ms) == (state, self._call.person.person_id, self._now.now_ms)


class _Made(msgspec.Struct, frozen=True):
    """A decision as agents and the audit are told it."""

    state: Literal["approved", "denied"]
    by: str
    note: str | None
    rows_at_most: int | None


def _together(votes: Sequence[Vote]) -> _Made:
    """All who approved by their names; the strictest of their bounds; their notes, with names where there are several."""
    if len(votes) == 1:
        return _Made("approved", votes[0].person_name, votes[0].note, votes[0].rows_at_most)
    notes = "; ".join(f"{each.person_name}: {each.note}" for each in votes if each.note)
    bounds = [each.rows_at_most for each in votes if each.rows_at_most is not None]
    by = ", ".join(each.person_name for each in votes)
    return _Made("approved", by[:NOTE_CHARACTERS], notes[:NOTE_CHARACTERS] or None, min(bounds, default=None))


def _needed(asked: Asked) -> str:
    """`2 of DBAs and 1 of Finance`."""
    return " and ".join(f"{each.needed} of {each.group}" for each in asked.demands) or "somebody else"


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _why_not(found: StoredRequest | None, person_id: str, now_ms: int) -> Refusal:
    if found is None:
        return Refusal(404, _NOTHING)
    if found.is_open(now_ms) and found.requester == person_id:
        return Refusal(403, "your own token asked for this; in this project somebody else approves it")
    if found.state == "pending":
        return DecidedElsewhere(409, "this request has expired; the agent asks again when it runs the statement again")
    return DecidedElsewhere(
        409, f"this was decided already: {status_of(found, now_ms).status}, by {found.decided_by or 'somebody'}"
    )
