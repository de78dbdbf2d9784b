"""The gate's page: bearers for engines without a link are made, changed and revoked there; a new text is shown once."""

from typing import Final

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.approvals import bearers
from gatewayd.control.approvals.bearers import MOST, Bearer, new_bearer
from gatewayd.control.approvals.gate_service import PREFIX
from gatewayd.control.moment import moment
from gatewayd.control.organisation.caps import check_cap
from gatewayd.control.people.person import name_problem
from gatewayd.control.store import directory
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

_PAGE: Final = "approvals/pages/gate.html"
_PATH: Final = "/projects/<project>/approval-gate"


class BearerForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


async def _shown(call: Call, status: int = 200, *, problem: str | None = None, text: str | None = None) -> Answer:
    found = await call.console.store.rows(Bearer, bearers.OF_PROJECT, call.project.project_id, MOST)
    url = f"{call.console.settings.public_url}{PREFIX}/{call.project.project_id}"
    return page(call, _PAGE, status, bearers=found, url=url, problem=problem, text=text)


async def _list(call: Call) -> Answer:
    return await _shown(call)


async def _make(call: Call) -> Answer:
    name = call.sent(BearerForm).name.strip()
    wrong = name_problem(name)
    if wrong is not None:
        return await _shown(call, 400, problem=wrong)
    console, project_id = call.console, call.project.project_id
    new, now = new_bearer(console), moment(console)

    async def work(tx: Transaction) -> None:
        check_cap("bearers of one project", len(await tx.rows(Bearer, bearers.OF_PROJECT, project_id, MOST)), MOST)
        await tx.run(bearers.ADD, project_id, now.fresh_id, name, new.lookup, new.shown, now.now_ms)
        await directory.add(tx, "approval_token", new.lookup, ProjectPlace(call.org_id, project_id, now.fresh_id))
        act = Act("approval_bearer.made", call.person.person_id, project_id, now.fresh_id, {"name": name})
        await now.record(tx, call.org_id, act)

    await console.store.transaction(work)
    return await _shown(call, text=new.text)


async def _rotate(call: Call) -> Answer:
    """Another text from now on; the one before is refused at once. The bearer's requests stay its own."""
    console, project_id, token_id = call.console, call.project.project_id, _bearer_of(call)
    new, now = new_bearer(console), moment(console)

    async def work(tx: Transaction) -> None:
        if not await tx.run(bearers.ROTATE, project_id, token_id, new.lookup, new.shown):
            raise Refusal(404, "there is nothing here")
        await directory.add(tx, "approval_token", new.lookup, ProjectPlace(call.org_id, project_id, token_id))
        await now.record(tx, call.org_id, Act("approval_bearer.rotated", call.person.person_id, project_id, token_id))

    await console.store.transaction(work)
    return await _shown(call, text=new.text)


async def _revoke(call: Call) -> Answer:
    console, project_id, token_id = call.console, call.project.project_id, _bearer_of(call)
    now = moment(console)

    async def work(tx: Transaction) -> None:
        if not await tx.run(bearers.REVOKE, project_id, token_id, now.now_ms):
            raise Refusal(404, "there is nothing here")
        await now.record(tx, call.org_id, Act("approval_bearer.revoked", call.person.person_id, project_id, token_id))

    await console.store.transaction(work)
    return to(f"/projects/{project_id}/approval-gate")


def _bearer_of(call: Call) -> str:
    token_id = call.args["bearer"]
    if not is_ulid(token_id):
        raise Refusal(404, "there is nothing here")
    return token_id


ROUTES: Final = (
    Route("GET", _PATH, _list, door="person", right="project.gateways"),
    Route("POST", _PATH, _make, door="person", right="project.gateways", again=True, body=BearerForm),
    Route("POST", f"{_PATH}/<bearer>/rotate", _rotate, door="person", right="project.gateways", again=True),
    Route("POST", f"{_PATH}/<bearer>/revoke", _revoke, door="person", right="project.gateways", again=True),
)
