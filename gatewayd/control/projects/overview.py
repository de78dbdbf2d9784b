"""A project's first page: does it work, what did agents do in the last day, and what is to be done next."""

from typing import Final

import msgspec

from gatewayd.control.approvals.effect import effect_of
from gatewayd.control.approvals.shown import COUNTED, ShownRequest, pending, pending_count
from gatewayd.control.databases.routes import DatabaseShown, databases_of
from gatewayd.control.gateways.fleet import Fleet, fleet
from gatewayd.control.policies.issue import NEWEST_POLICY, PolicyVersion
from gatewayd.control.projects.activity import last_day
from gatewayd.control.projects.change import Pause, set_paused
from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.statement import Statement
from gatewayd.control.tokens.token import MOST, OF_PROJECT, Token
from gatewayd.control.web.answer import Answer, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_PAGE: Final = "projects/pages/overview.html"
NOTE: Final = Statement("SELECT state_note FROM projects WHERE org_id = $1 AND project_id = $2")


class Waiting(msgspec.Struct, frozen=True):
    """Writes that wait for a person: how many (at least so many if not `is_exact`), and what the oldest would do."""

    count: int
    is_exact: bool
    oldest: ShownRequest
    effect: str


class Step(msgspec.Struct, frozen=True):
    """One of the way from a new project to an agent's first query. `link` leads to `path` of the project."""

    title: str
    text: str
    path: str
    link: str
    is_done: bool


async def overview(call: Call) -> Answer:
    return await overview_page(call)


async def overview_page(call: Call, problem: str | None = None, status: int = 200) -> Answer:
    console, project_id = call.console, call.project.project_id
    databases, found = await databases_of(call), await fleet(console, project_id)
    policy = await console.store.row(PolicyVersion, NEWEST_POLICY, project_id)
    tokens = await console.store.rows(Token, OF_PROJECT, project_id, FIRST_ID, MOST)
    note = await console.store.value(NOTE, call.org_id, project_id)
    return page(
        call, _PAGE, status,
        databases=databases, fleet=found, waiting=await _waiting(call), policy=policy, problem=problem, note=note,
        activity=await last_day(console.store, project_id, console.now_ms(), call.person.zone),
        steps=steps(databases, found, policy, tokens, console.now_ms()),
    )  # fmt: skip


def steps(
    databases: list[DatabaseShown], found: Fleet, policy: PolicyVersion | None, tokens: list[Token], now_ms: int
) -> list[Step]:
    """What a project needs before an agent can ask, in the order in which it is done; done ones among them."""
    checked = any(each.checked_ms and not any(line.outcome == "FAIL" for line in each.findings) for each in databases)
    reached = any(database.reachable for gateway in found.gateways for database in gateway.databases)
    return [
        Step(
            "Reach the database",
            "Give its address and test it, or enrol a gateway that keeps the address on its own machine.",
            f"/databases/{databases[0].id}" if databases else "/add-database", "Set the address", checked or reached,
        ),
        Step(
            "Say what agents may do",
            "The first policy lets everything be read and nothing be written. Narrow it before an agent connects.",
            "/policy", "Edit the policy", policy is not None and policy.version > 1,
        ),
        Step(
            "Let an agent in",
            "Make a token and paste the configuration of your client.",
            "/connect", "Connect an agent", any(token.is_valid(now_ms) for token in tokens),
        ),
        Step(
            "Ask something",
            "The first query shows up here and in the audit within seconds.",
            "/connect", "See how", any(each.audit_events for each in found.gateways),
        ),
    ]  # fmt: skip


async def _waiting(call: Call) -> Waiting | None:
    """None: nothing waits, or not for this person to see."""
    if not call.may("project.approvals"):
        return None
    oldest = (await pending(call.console, call.project.project_id, most=1)).requests
    count = await pending_count(call.console, call.project.project_id) if oldest else 0
    return Waiting(count, count < COUNTED, oldest[0], effect_of(oldest[0].ask)) if count else None


async def _pause(call: Call) -> Answer:
    await set_paused(call, call.sent(Pause).note, paused=True)
    return said(call, to(f"/projects/{call.project.project_id}"), "paused")


async def _resume(call: Call) -> Answer:
    await set_paused(call, call.sent(Pause).note, paused=False)
    return said(call, to(f"/projects/{call.project.project_id}"), "resumed")


ROUTES: Final = (
    Route("GET", "/projects/<project>", overview, door="person", right="project.read"),
    Route("POST", "/projects/<project>/pause", _pause, door="person", right="project.pause", body=Pause),
    Route("POST", "/projects/<project>/resume", _resume, door="person", right="project.pause", body=Pause),
)
