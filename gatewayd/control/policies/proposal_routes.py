"""Publications that wait for a second person: the page that shows one and takes the decision, and what scripts may read of them.

Only a session decides: there is no route for API keys that does, so a key that proposes can never confirm.
"""

from functools import partial
from typing import Annotated, Final, Literal

import msgspec
import trio
from msgspec import Meta

from gatewayd.audit.ids import is_ulid
from gatewayd.control.moment import moment
from gatewayd.control.people.may import who_may
from gatewayd.control.people.person import NAME_OF
from gatewayd.control.policies.issue import NEWEST_POLICY, PolicyVersion
from gatewayd.control.policies.proposals import LISTED, ONE, OPEN, Decision, Proposal, decide_in
from gatewayd.control.policies.publish import NOTE_CHARACTERS, NotPublished, Published
from gatewayd.control.policies.routes import checked, flips_of
from gatewayd.control.policies.text_diff import diff
from gatewayd.control.store.store import Transaction
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "policies/pages/proposal.html"


class ProposalForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sha256`: of the text that the page showed."""

    decision: Literal["confirm", "refuse"]
    sha256: str
    note: Annotated[str, Meta(max_length=NOTE_CHARACTERS)] = ""


class ProposalShown(msgspec.Struct, frozen=True):
    """`policy` only of one. `based_on`: the version in force when it was proposed; it is published on top of that one alone."""

    id: str
    state: str
    sha256: str
    note: str
    source: str
    based_on: int
    person: str
    made_ms: int
    decided_by: str | None
    decided_ms: int | None
    decided_note: str | None
    policy: str | None = None


class Proposals(msgspec.Struct, frozen=True):
    """What waits, the oldest first."""

    proposals: list[ProposalShown]


def _shown(found: Proposal, *, with_text: bool = False) -> ProposalShown:
    return ProposalShown(
        found.proposal_id, found.state, found.sha256.hex(), found.note, found.source, found.based_on, found.person_id,
        found.made_ms, found.decided_by, found.decided_ms, found.decided_note, found.yaml if with_text else None,
    )  # fmt: skip


async def _found(call: Call) -> Proposal:
    """Raises Refusal 404."""
    named = call.args["proposal"]
    found = await call.console.store.row(Proposal, ONE, call.project.project_id, named) if is_ulid(named) else None
    if found is None:
        raise Refusal(404, "there is nothing here")
    return found


async def _show(call: Call) -> Answer:
    return await _page(call, await _found(call))


async def _page(call: Call, found: Proposal, problem: str | None = None, status: int = 200) -> Answer:
    store, project = call.console.store, call.project
    newest = await store.row(PolicyVersion, NEWEST_POLICY, project.project_id)
    before = newest.yaml if newest is not None else ""
    may_publish = await store.transaction(lambda tx: who_may(tx, project, "project.policy"))
    flips = None
    if found.is_open and "flips" in call.incoming.query and call.may("project.policy"):
        try:
            flips = await flips_of(call, await checked(call, found.yaml))
        except NotPublished as refused:
            problem = f"It cannot be published any more: {refused}."
    return page(
        call, _PAGE, status, proposal=found, problem=problem, flips=flips, newest=newest.version if newest else 0,
        person=await store.value(NAME_OF, found.person_id), decider=await store.value(NAME_OF, found.decided_by),
        diff=await trio.to_thread.run_sync(partial(diff, before, found.yaml)),
        is_own=found.person_id == call.person.person_id, others=[each for each in may_publish if each != found.person_id],
        names=may_publish, author_may=found.person_id in may_publish,
    )  # fmt: skip


async def _decide(call: Call) -> Answer:
    form, found = call.sent(ProposalForm), await _found(call)
    assert call.session.person_id == call.person.person_id, "a session decides, nothing else"
    project_id, confirms = call.project.project_id, form.decision == "confirm"
    if form.sha256 != found.sha256.hex():
        return await _page(call, found, "Nothing was decided: you were shown another text. Look at this one.", 409)
    if confirms:
        try:
            await checked(call, found.yaml)
        except NotPublished as refused:
            return await _page(call, found, f"Not published: {refused}.", 409)
    decision = Decision(call.person.person_id, confirms, form.note, found.sha256)
    moments = (moment(call.console), moment(call.console))

    async def work(tx: Transaction) -> Published | None:
        return await decide_in(tx, call.console, call.org_id, project_id, found, decision, moments)

    try:
        done = await call.console.store.transaction(work)
    except Refusal as refusal:
        return await _page(call, await _found(call), f"Nothing was decided: {refusal.text}.", refusal.status)
    if done is None:
        return said(call, to(f"/projects/{project_id}/policy"), "proposal-refused")
    return said(call, to(f"/projects/{project_id}/policy/versions/{done.version}"), "published")


async def _list(call: Call) -> Answer:
    found = await call.console.store.rows(Proposal, OPEN, call.project.project_id, LISTED)
    return json(Proposals([_shown(each) for each in found]))


async def _one(call: Call) -> Answer:
    return json(_shown(await _found(call), with_text=True))


_ALL: Final = "/api/v1/projects/<project>/policy-proposals"
_PAGES: Final = "/projects/<project>/policy/proposals/<proposal>"
ROUTES: Final = (
    Route("GET", _PAGES, _show, door="person", right="project.read"),
    Route("POST", f"{_PAGES}/decide", _decide, door="person", right="project.policy", body=ProposalForm),
    Route(
        "GET", _ALL, _list, door="key", right="project.read", answer=Proposals,
        summary="publications that wait for a second person, oldest first",
    ),
    Route("GET", f"{_ALL}/<proposal>", _one, door="key", right="project.read", answer=ProposalShown, summary="one of them"),
)  # fmt: skip
