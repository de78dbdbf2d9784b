"""How long a request can be decided: the project's `approval_minutes`, or another time for one database."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gatewayd.control.moment import moment
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.route import Route

DROP: Final = Statement("DELETE FROM approval_times WHERE project_id = $1")
ADD: Final = Statement("INSERT INTO approval_times (project_id, database_name, minutes) VALUES ($1, $2, $3)")
OF_PROJECT: Final = Statement("SELECT database_name, minutes FROM approval_times WHERE project_id = $1 ORDER BY database_name")

Minutes = Annotated[int, Meta(ge=1, le=1440)]
DatabaseName = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"\A[^\x00]*\Z")]


class ApprovalTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Minutes by database, 1 to 1440; what is not named has the project's `approval_minutes`."""

    minutes: Annotated[dict[DatabaseName, Minutes], Meta(max_length=64)]


class _Row(msgspec.Struct, frozen=True):
    database_name: str
    minutes: int


async def set_times(call: Call, times: ApprovalTimes) -> None:
    """For requests that are opened from now on."""
    project_id, now = call.project.project_id, moment(call.console)

    async def work(tx: Transaction) -> None:
        await tx.run(DROP, project_id)
        for name, minutes in sorted(times.minutes.items()):
            await tx.run(ADD, project_id, name, minutes)
        details = {name: str(minutes) for name, minutes in times.minutes.items()}
        await now.record(tx, call.org_id, Act("approval.times_changed", call.person.person_id, project_id, None, details))

    await call.console.store.transaction(work)


async def _get(call: Call) -> Answer:
    rows = await call.console.store.rows(_Row, OF_PROJECT, call.project.project_id)
    return json(ApprovalTimes({each.database_name: each.minutes for each in rows}))


async def _set(call: Call) -> Answer:
    times = call.sent(ApprovalTimes)
    await set_times(call, times)
    return json(times)


_PATH: Final = "/api/v1/projects/<project>/approval-times"
ROUTES: Final = (
    Route(
        "GET", _PATH, _get, door="key", right="project.read", answer=ApprovalTimes,
        summary="how long requests of each database can be decided",
    ),
    Route(
        "PUT", _PATH, _set, door="key", right="project.policy", body=ApprovalTimes, answer=ApprovalTimes,
        summary="set how long requests of each database can be decided",
    ),
)  # fmt: skip
