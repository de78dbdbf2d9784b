"""Grants for shapes over HTTP: approving with one, by a form of a page alone; revoking one; the list, for scripts to read."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gatewayd.audit.ids import is_ulid
from gatewayd.control.approvals.decide import NOTE_CHARACTERS, WriteDecision, decide
from gatewayd.control.approvals.grants import LISTED, OF_PROJECT, REVOKE, GrantTerms, ShapeGrant
from gatewayd.control.moment import moment
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Refusal, json, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.route import Route


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
    await decide(call, approval_id, WriteDecision("approve", form.note, form.rows_at_most, GrantTerms(form.minutes, form.times)))
    return to(f"/projects/{call.project.project_id}/approvals/{approval_id}")


async def _revoke(call: Call) -> Answer:
    await revoke_grant(call, call.args["grant"])
    return to(f"/projects/{call.project.project_id}/approvals")


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


ROUTES: Final = (
    Route(
        "POST", "/projects/<project>/approvals/<approval>/grant", _grant, door="person", right="project.approve", body=GrantForm
    ),
    Route("POST", "/projects/<project>/shape-grants/<grant>/revoke", _revoke, door="person", right="project.approve"),
    Route(
        "GET", "/api/v1/projects/<project>/shape-grants", _list, door="key", right="project.approvals", answer=ShapeGrants,
        summary="grants for shapes of statements, newest first",
    ),
)  # fmt: skip
