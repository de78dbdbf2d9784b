"""What people did, for people: newest first, with names in place of ids."""

from typing import Final

import msgspec

from gatewayd.control.people.person import NAME_OF
from gatewayd.control.projects.find import FIND, Project
from gatewayd.control.trail.record import NEWEST, Event
from gatewayd.control.trail.routes import number, signed_head
from gatewayd.control.web.answer import Answer
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

_PAGE: Final = "trail/pages/trail.html"
_ROWS: Final = 100


class EventShown(msgspec.Struct, frozen=True):
    """`details` None: erased. `project`: its name, or its id once it is gone."""

    seq: int
    ts_ms: int
    action: str
    who: str
    project: str | None
    details: dict[str, str | int] | None


async def _trail(call: Call) -> Answer:
    events = await call.console.store.rows(Event, NEWEST, call.org_id, number(call, "before", 1 << 62), _ROWS + 1)
    shown = events[:_ROWS]
    people = {each: await _person(call, each) for each in {event.person_id for event in shown}}
    projects = {each: await _project(call, each) for each in {event.project_id for event in shown}}
    lines = [
        EventShown(
            event.seq, event.ts_ms, event.action, people[event.person_id], projects[event.project_id],
            msgspec.json.decode(event.details, type=dict[str, str | int]) if event.details is not None else None,
        )
        for event in shown
    ]  # fmt: skip
    more = shown[-1].seq if len(events) > _ROWS else None
    return page(call, _PAGE, events=lines, more=more, head=await signed_head(call))


async def _person(call: Call, person_id: str | None) -> str:
    if person_id is None:
        return "the machine"
    return str(await call.console.store.value(NAME_OF, person_id) or person_id)


async def _project(call: Call, project_id: str | None) -> str | None:
    if project_id is None:
        return None
    found = await call.console.store.row(Project, FIND, call.org_id, project_id)
    return found.name if found is not None else project_id


ROUTES: Final = (Route("GET", "/trail", _trail, door="person", right="org.audit"),)
