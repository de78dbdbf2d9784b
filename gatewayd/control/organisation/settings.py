"""Settings of the organisation: its name, and stopping every agent of every project at once."""

from typing import Final

import msgspec

from gatewayd.control.moment import moment
from gatewayd.control.people.person import name_problem
from gatewayd.control.projects.change import Pause, pause_project
from gatewayd.control.projects.visible import every_visible
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "organisation/pages/settings.html"
SET_NAME: Final = Statement("UPDATE organisations SET name = $2 WHERE org_id = $1")


class NameForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


async def _settings(call: Call) -> Answer:
    return await _page(call)


async def _page(call: Call, name: str | None = None, problem: str | None = None, status: int = 200) -> Answer:
    projects = await every_visible(call)
    paused = sum(each.state == "paused" for each in projects)
    settings = call.console.settings
    plan = call.console.settings.plans
    return page(
        call, _PAGE, status, name=name if name is not None else call.membership.organisation, problem=problem,
        projects=len(projects), paused=paused, settings=settings, has_caps=bool(plan.named),
    )  # fmt: skip


async def _rename(call: Call) -> Answer:
    name, console = call.sent(NameForm).name, call.console
    wrong = name_problem(name)
    if wrong is not None:
        return await _page(call, name, wrong, 400)
    now = moment(console)

    async def work(tx: Transaction) -> None:
        await tx.run(SET_NAME, call.org_id, name.strip())
        details = {"before": call.membership.organisation, "after": name.strip()}
        await now.record(tx, call.org_id, Act("organisation.renamed", call.person.person_id, details=details))

    await console.store.transaction(work)
    return said(call, to("/settings"), "saved")


async def _stop(call: Call) -> Answer:
    """Each project in a transaction of its own: a store that fails in between leaves those before it stopped."""
    for project in await every_visible(call):
        await pause_project(call, project.project_id, call.sent(Pause).note, paused=True)
    return said(call, to("/settings"), "all-paused")


async def _go_on(call: Call) -> Answer:
    for project in await every_visible(call):
        await pause_project(call, project.project_id, call.sent(Pause).note, paused=False)
    return said(call, to("/settings"), "all-resumed")


ROUTES: Final = (
    Route("GET", "/settings", _settings, door="person", right="org.settings"),
    Route("POST", "/settings/name", _rename, door="person", right="org.settings", body=NameForm),
    Route("POST", "/settings/stop", _stop, door="person", right="org.settings", body=Pause),
    Route("POST", "/settings/go-on", _go_on, door="person", right="org.settings", body=Pause),
)
