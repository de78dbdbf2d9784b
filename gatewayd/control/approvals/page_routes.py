"""The pages in which people decide about held writes: what waits, one request, what became of earlier ones. No GET decides."""

from functools import partial
from typing import Final

import msgspec
import trio

from gatewayd.control.approvals.covered import DAYS, covered_by
from gatewayd.control.approvals.effect import bound_for, effect_of
from gatewayd.control.approvals.marked_statement import marked
from gatewayd.control.approvals.needs import Needs, needs_of, stand
from gatewayd.control.approvals.routes import cursor_of
from gatewayd.control.approvals.shown import LAST_ID, OneRequest, ShownRequests, one, over, pending
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.projects.terms import terms_of
from gatewayd.control.web.answer import Answer, Refusal
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

_LIST: Final = "approvals/pages/approvals.html"
_ONE: Final = "approvals/pages/approval.html"
_PAGES: Final = "/projects/<project>/approvals"


async def _pending(call: Call) -> Answer:
    found = await pending(call.console, call.project.project_id, cursor_of(call, "after", FIRST_ID))
    return _list(call, found, "after", is_over=False)


async def _over(call: Call) -> Answer:
    found = await over(call.console, call.project.project_id, cursor_of(call, "before", LAST_ID))
    return _list(call, found, "before", is_over=True)


def _list(call: Call, found: ShownRequests, cursor: str, *, is_over: bool) -> Answer:
    following = f"{call.incoming.path}?{cursor}={found.next}" if found.next is not None else None
    return page(call, _LIST, found=found, next=following, is_over=is_over, effect=effect_of)


async def _found(call: Call) -> OneRequest:
    found = await one(call.console, call.project.project_id, call.args["approval"])
    if found is None:
        raise Refusal(404, "there is nothing here")
    return found


async def _one(call: Call) -> Answer:
    found = await _found(call)
    request, before = found.request, found.approved_before
    # What is read here is somebody else's text, of up to a megabyte.
    statement = await trio.to_thread.run_sync(partial(marked, request.ask.sql, before.ask.sql if before is not None else None))
    terms, person_id = terms_of(call.project.settings), call.person.person_id
    is_own = request.requester_id is not None and request.requester_id == person_id and not terms.self_approval
    standing = await stand(call.console, call.project, request)
    needs = needs_of(standing)
    is_asked = not is_own and (not needs.demands or person_id in standing.asked.may)
    covered = None
    if request.status == "pending" and terms.shape_grants and is_asked and needs.people == 1 and call.may("project.approve"):
        covered = await covered_by(call.console, call.project.project_id, request.id)
    return page(
        call, _ONE, request=request, before=before, statement=statement, effect=effect_of(request.ask),
        bound=bound_for(request.ask), stands=_mark(found, needs), is_own=is_own, is_asked=is_asked, needs=needs,
        own_vote=next((each for each in needs.votes if each.person_id == person_id), None), covered=covered, days=DAYS,
        is_paused=call.project.state == "paused", tainted_by=found.tainted_by,
    )  # fmt: skip


def _mark(found: OneRequest, needs: Needs) -> str:
    """Another one when what the page shows has changed."""
    request = found.request
    votes = [each.voted_ms for each in needs.votes]
    return msgspec.json.encode([request.status, request.decided_ms, request.outcome, votes]).decode()


async def _statement(call: Call) -> Answer:
    """The whole statement, as a file: a page shows its beginning."""
    request = (await _found(call)).request
    headers = (("Content-Disposition", f'attachment; filename="{request.id}.sql"'),)
    return Answer(200, request.ask.sql.encode(errors="replace"), "text/plain; charset=utf-8", headers)


ROUTES: Final = (
    Route("GET", _PAGES, _pending, door="person", right="project.approvals"),
    Route("GET", f"{_PAGES}/over", _over, door="person", right="project.approvals"),
    Route("GET", f"{_PAGES}/<approval>", _one, door="person", right="project.approvals"),
    Route("GET", f"{_PAGES}/<approval>/statement", _statement, door="person", right="project.approvals"),
)
