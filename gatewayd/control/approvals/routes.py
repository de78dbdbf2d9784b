"""Approvals over HTTP: what waits, one request, what became of earlier ones, for scripts to read; and the decision, by a form of
a page alone. The pages themselves are apart."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gatewayd.audit.ids import is_ulid
from gatewayd.control.approvals.decide import NOTE_CHARACTERS, DecidedElsewhere, WriteDecision, decide
from gatewayd.control.approvals.needs import Needs, needs_of, stand
from gatewayd.control.approvals.shown import LAST_ID, OneRequest, ShownRequests, one, over, pending
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call, FormProblem
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said


class DecisionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`rows_at_most` is a number, or empty for no bound."""

    decision: Literal["approve", "deny"]
    note: Annotated[str, Meta(max_length=NOTE_CHARACTERS)] = ""
    rows_at_most: str = ""


class RequestWithNeeds(OneRequest, frozen=True):
    needs: Needs


async def _decide(call: Call) -> Answer:
    form, approval_id = call.sent(DecisionForm), call.args["approval"]
    rows = form.rows_at_most.strip()
    if rows and not (rows.isascii() and rows.isdigit() and len(rows) <= 15):
        raise FormProblem("rows_at_most: expected a number, or nothing for no bound")
    there = to(f"/projects/{call.project.project_id}/approvals/{approval_id}")
    try:
        is_decided = await decide(call, approval_id, WriteDecision(form.decision, form.note, int(rows) if rows else None))
    except DecidedElsewhere:
        return said(call, there, "decided elsewhere")
    return said(call, there, "decided" if is_decided else "approved in part")


async def _pending(call: Call) -> Answer:
    return json(await pending(call.console, call.project.project_id, cursor_of(call, "after", FIRST_ID)))


async def _over(call: Call) -> Answer:
    return json(await over(call.console, call.project.project_id, cursor_of(call, "before", LAST_ID)))


async def _one(call: Call) -> Answer:
    found = await one(call.console, call.project.project_id, call.args["approval"])
    if found is None:
        raise Refusal(404, "there is nothing here")
    needs = needs_of(await stand(call.console, call.project, found.request))
    return json(RequestWithNeeds(found.request, found.approved_before, found.tainted_by, needs))


def cursor_of(call: Call, name: str, first: str) -> str:
    """The id in the address that a page begins after or before; `first` where there is none. Raises Refusal."""
    given = call.incoming.query.get(name, first)
    if not is_ulid(given):
        raise Refusal(400, f"{name}: expected the `next` of the page before")
    return given


_ALL: Final = "/api/v1/projects/<project>/approvals"
_PAGES: Final = "/projects/<project>/approvals"
ROUTES: Final = (
    Route("POST", f"{_PAGES}/<approval>/decide", _decide, door="person", right="project.approve", body=DecisionForm),
    Route(
        "GET", _ALL, _pending, door="key", right="project.approvals", answer=ShownRequests,
        summary="writes that wait for a decision, oldest first",
    ),
    Route(
        "GET", f"{_ALL}/over", _over, door="key", right="project.approvals", answer=ShownRequests,
        summary="decided and expired requests, newest first",
    ),
    Route(
        "GET", f"{_ALL}/<approval>", _one, door="key", right="project.approvals", answer=RequestWithNeeds,
        summary="one request, with whom it asks and who has approved",
    ),
)  # fmt: skip
