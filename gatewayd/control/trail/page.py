"""What people did, for people: newest first, with names in place of ids."""

from typing import Final
from urllib.parse import urlencode

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.control.organisation.routes import PEOPLE, Member
from gatewayd.control.people.person import NAMES, Named
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.projects.visible import visible
from gatewayd.control.store.statement import Statement
from gatewayd.control.trail.record import Event
from gatewayd.control.trail.routes import number, signed_head
from gatewayd.control.web.answer import Answer, Refusal
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

_PAGE: Final = "trail/pages/trail.html"
_ROWS: Final = 100
_OFFERED: Final = 1000
_ACTION_CHARACTERS: Final = 100


FOUND: Final = Statement(
    "SELECT seq, event_id, ts_ms, action, person_id, project_id, envelope, details, salt, leaf FROM org_events"
    " WHERE org_id = $1 AND seq < $2 AND ($3 = '' OR action = $3) AND ($4::uuid IS NULL OR person_id = $4)"
    " AND ($5::uuid IS NULL OR project_id = $5) ORDER BY seq DESC LIMIT $6"
)


class EventShown(msgspec.Struct, frozen=True):
    """`details` None: erased. `project`: its name, or its id once it is gone."""

    seq: int
    ts_ms: int
    action: str
    who: str
    project: str | None
    details: dict[str, str | int] | None


class TrailFilter(msgspec.Struct, frozen=True):
    """What a line must be; None and an empty action: anything. `person` and `project` are ids."""

    action: str = ""
    person: str | None = None
    project: str | None = None

    @property
    def given(self) -> dict[str, str]:
        """What is asked for, as the address has it."""
        found = (("action", self.action), ("person", self.person), ("project", self.project))
        return {field: value for field, value in found if value}


async def _trail(call: Call) -> Answer:
    wanted = _filter(call)
    lines, more = await _lines(call, wanted, _ROWS)
    people = await call.console.store.rows(Member, PEOPLE, call.org_id, FIRST_ID, _OFFERED)
    return page(
        call, _PAGE, events=lines, filters=wanted.given, head=await signed_head(call),
        next=_address("/trail", wanted, more) if more is not None else None,
        people=[(each.person_id, each.name) for each in people],
        projects=[(each.project_id, each.name) for each in await visible(call, _OFFERED)],
    )  # fmt: skip


async def _lines(call: Call, wanted: TrailFilter, rows: int) -> tuple[list[EventShown], int | None]:
    """A page from the number in the address, and the number that the next one begins below."""
    below, asked = number(call, "before", 1 << 62), (wanted.action, wanted.person, wanted.project)
    events = await call.console.store.rows(Event, FOUND, call.org_id, below, *asked, rows + 1)
    shown = events[:rows]
    named = await call.console.store.rows(Named, NAMES, sorted({each.person_id for each in shown if each.person_id is not None}))
    people = {each.person_id: each.name for each in named}
    projects = {each.project_id: each.name for each in await visible(call, _OFFERED)}
    lines = [
        EventShown(
            each.seq, each.ts_ms, each.action, people.get(each.person_id or "", each.person_id or "the machine"),
            projects.get(each.project_id or "", each.project_id),
            msgspec.json.decode(each.details, type=dict[str, str | int]) if each.details is not None else None,
        )
        for each in shown
    ]  # fmt: skip
    return lines, shown[-1].seq if len(events) > rows else None


def _filter(call: Call) -> TrailFilter:
    """Raises Refusal."""
    query = call.incoming.query
    action = query.get("action", "").strip()
    if len(action) > _ACTION_CHARACTERS or "\0" in action:
        raise Refusal(400, f"action: expected at most {_ACTION_CHARACTERS} characters")
    ids = {field: query.get(field) or None for field in ("person", "project")}
    for field, value in ids.items():
        if value is not None and not is_ulid(value):
            raise Refusal(400, f"{field}: expected an id of 26 characters")
    return TrailFilter(action, ids["person"], ids["project"])


def _address(path: str, wanted: TrailFilter, before: int | None = None) -> str:
    asked = urlencode(wanted.given | ({"before": str(before)} if before is not None else {}))
    return f"{path}?{asked}" if asked else path


ROUTES: Final = (Route("GET", "/trail", _trail, door="person", right="org.audit"),)
