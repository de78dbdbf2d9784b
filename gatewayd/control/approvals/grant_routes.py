"""Grants for shapes over HTTP: approving with one, by a form of a page alone; revoking one; the list, for scripts to read."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gatewayd.audit.ids import is_ulid
from gatewayd.control.approvals.answer import read_ask
from gatewayd.control.approvals.decide import NOTE_CHARACTERS, DecidedElsewhere, WriteDecision, decide
from gatewayd.control.approvals.grants import LISTED, OF_PROJECT, REVOKE, GrantTerms, ShapeGrant
from gatewayd.control.moment import moment
from gatewayd.control.projects.terms import terms_of
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "approvals/pages/grants.html"

ASKED_OF: Final = Statement("SELECT approval_id, ask FROM approvals WHERE project_id = $1 AND approval_id = ANY($2)")


class _Example(msgspec.Struct, frozen=True):
    approval_id: str
    ask: str


class GrantForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Approve this request, and `times` further ones of its shape for so many minutes, each with this bound on rows."""

    rows_at_most: int
    times: int
    minutes: int
    note: Annotated[str, Meta(max_length=NOTE_CHARACTERS)] = ""


class ShapeGrants(msgspec.Struct, frozen=True):
    """The newest first."""

    grants: list[ShapeGrant]


async def _grant(call: Call) -> Answer:
    form, approval_id = call.sent(GrantForm), call.args["approval"]
    there = to(f"/projects/{call.project.project_id}/approvals/{approval_id}")
    grant = GrantTerms(form.minutes, form.times)
    try:
        await decide(call, approval_id, WriteDecision("approve", form.note, form.rows_at_most, grant))
    except DecidedElsewhere:
        return said(call, there, "decided elsewhere")
    return said(call, there, "granted")


async def _revoke(call: Call) -> Answer:
    await revoke_grant(call, call.args["grant"])
    return said(call, to(f"/projects/{call.project.project_id}/shape-grants"), "grant-revoked")


async def revoke_grant(call: Call, grant_id: str) -> None:
    """From now on nothing runs on it. Raises Refusal 404 for what is not there or was revoked already."""
    project_id, person_id, now = call.project.project_id, call.person.person_id, moment(call.console)

    async def work(tx: Transaction) -> None:
        if not is_ulid(grant_id) or not await tx.run(REVOKE, project_id, grant_id, now.now_ms, person_id):
            raise Refusal(404, "there is nothing here")
        await now.record(tx, call.org_id, Act("shape_grant.revoked", person_id, project_id, grant_id))

    await call.console.store.transaction(work)


async def _list(call: Call) -> Answer:
    return json(ShapeGrants(await call.console.store.rows(ShapeGrant, OF_PROJECT, call.project.project_id, LISTED)))


async def _page(call: Call) -> Answer:
    """Each with the statement that it was made for, while its request is kept."""
    store, project_id = call.console.store, call.project.project_id
    grants = await store.rows(ShapeGrant, OF_PROJECT, project_id, LISTED)
    found = await store.rows(_Example, ASKED_OF, project_id, sorted({each.approval_id for each in grants})) if grants else []
    examples = {each.approval_id: read_ask(each.ask) for each in found}
    may_be_made = terms_of(call.project.settings).shape_grants
    return page(
        call, _PAGE, grants=grants, examples=examples, now_ms=call.console.now_ms(), may_be_made=may_be_made
    )  # fmt: skip


ROUTES: Final = (
    Route("GET", "/projects/<project>/shape-grants", _page, door="person", right="project.approvals"),
    Route(
        "POST", "/projects/<project>/approvals/<approval>/grant", _grant, door="person", right="project.approve", body=GrantForm
    ),
    Route("POST", "/projects/<project>/shape-grants/<grant>/revoke", _revoke, door="person", right="project.approve"),
    Route(
        "GET", "/api/v1/projects/<project>/shape-grants", _list, door="key", right="project.approvals", answer=ShapeGrants,
        summary="grants for shapes of statements, newest first",
    ),
)  # fmt: skip
