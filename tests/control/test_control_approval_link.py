"""Approvals over the link, by signed requests on a real socket; and by whom a request is not decided."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
import trio

from gatewayd.approvals.messages import GateAsk, Outcome, StatusAsked, Wait
from gatewayd.control.approvals.shown import pending
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store
from gatewayd.link.formats.requests import SentRequest
from gatewayd.link.formats.verdicts import ApprovalVerdict, TaintBody, grant_sha256, read_verdict
from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.gateway_of_tests import TestGateway, now_ms
from tests.control.invited import invited
from tests.control.one_project import WHO, OneProject, Who, make_one_project, refusal

MOVE = Statement("UPDATE projects SET org_id = $2 WHERE org_id = $1 AND project_id = $3")


@pytest.fixture
async def one_project(plane: Plane, owner: Browser, store_url: str) -> AsyncIterator[OneProject]:
    """A project in the organisation of `owner`."""
    store = Store(store_url)
    one_project = await make_one_project(plane, store)
    owners = (await store.rows(Who, WHO))[0].org_id
    await store.run(MOVE, one_project.org, owners, one_project.project)
    one_project.org = owners
    yield one_project
    store.close()


def question(one_project: OneProject, sql: str = "DELETE FROM orders", token: str | None = None) -> GateAsk:
    return GateAsk(
        one_project.console.new_id(), "shop", sql, "tidy", "DELETE", ("public.orders",), one_project.org, "claude", "1", token,
        "f" * 16, "row_changes", "ab" * 32,
    )  # fmt: skip


def verdict(gateway: TestGateway, answer: httpx.Response, sent: SentRequest, query_id: str, grant: str) -> ApprovalVerdict:
    assert gateway.trust is not None
    assert answer.status_code == 200, answer.text
    found = answer.content
    return read_verdict(
        found, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest, query_id=query_id, grant=grant
    )  # fmt: skip


def grant_of(ask: GateAsk) -> str:
    return grant_sha256(sql=ask.sql, intent=ask.intent or "", database=ask.database, token_id=ask.mcp_token_id)


async def asked(gateway: TestGateway, ask: GateAsk) -> ApprovalVerdict:
    answer, sent = await gateway.ask("approval", ask)
    return verdict(gateway, answer, sent, ask.query_id, grant_of(ask))


async def decided(
    by: Browser, one_project: OneProject, approval_id: str, decision: str = "approve", **headers: str
) -> httpx.Response:
    return await by.post(f"/projects/{one_project.project}/approvals/{approval_id}/decide", {"decision": decision}, **headers)


async def test_a_wait_ends_with_a_signed_verdict_at_whichever_gateway_the_agent_goes_on(
    one_project: OneProject, plane: Plane, owner: Browser
) -> None:
    first, second = await one_project.gateway(1), await one_project.gateway(2)
    ask = question(one_project)
    told = await asked(first, ask)
    assert told.status == "pending"
    assert told.approval_id is not None
    wait = Wait(told.approval_id, one_project.console.new_id(), None, 50)
    found: list[ApprovalVerdict] = []

    async def waiting() -> None:
        answer, sent = await second.ask("approval_wait", wait)
        found.append(verdict(second, answer, sent, wait.query_id, grant_of(ask)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting)
        assert (await decided(owner, one_project, told.approval_id)).status_code == 303
    assert [(each.status, each.by, each.approval_id) for each in found] == [("approved", "Ada", told.approval_id)]
    answer, sent = await first.ask("approval_status", StatusAsked(told.approval_id))
    assert verdict(first, answer, sent, "", "").status == "consumed"
    answer, sent = await second.ask("approval_outcome", Outcome(wait.query_id, "executed", 3))
    assert verdict(second, answer, sent, wait.query_id, "").status == "noted"
    answer, sent = await first.ask("approval_status", StatusAsked(told.approval_id))
    assert verdict(first, answer, sent, "", "").status == "executed"


async def test_a_replayed_question_claims_nothing_more(one_project: OneProject, owner: Browser) -> None:
    gateway, ask = await one_project.gateway(), question(one_project)
    sent = gateway.request("approval", ask)
    first = verdict(gateway, await gateway.send(sent), sent, ask.query_id, grant_of(ask))
    await decided(owner, one_project, first.approval_id or "")
    for _ in range(2):  # the same envelope again, as somebody on the network could send it
        again = verdict(gateway, await gateway.send(sent), sent, ask.query_id, grant_of(ask))
        assert again.status == "approved"
    other = msgspec.structs.replace(ask, query_id=one_project.console.new_id())
    assert (await asked(gateway, other)).status == "pending"


async def test_what_a_gateway_may_not_ask_is_no_verdict(one_project: OneProject, owner: Browser) -> None:
    gateway, ask = await one_project.gateway(), question(one_project)
    told = await asked(gateway, ask)
    assert (await gateway.ask("approval", {"sql": "x"}))[0].status_code == 400
    wait = Wait(told.approval_id or "", ask.query_id, "another token", 5)
    assert (await gateway.ask("approval_wait", wait))[0].status_code == 409
    answer, sent = await gateway.ask("approval_status", StatusAsked(told.approval_id or "", "another token"))
    assert verdict(gateway, answer, sent, "", "").status == "not_found"
    answer, sent = await gateway.ask("approval", msgspec.structs.replace(ask, sql="DELETE FROM payroll"))
    assert answer.status_code == 200  # another write, and nothing was claimed by this query_id yet
    await owner.post(f"/projects/{one_project.project}/gateways/{gateway.id}/standing", {"change": "cut", "note": "odd"})
    answer, sent = await gateway.ask("approval", question(one_project))
    assert refusal(gateway, answer, sent).reason == "cut"


async def test_only_a_session_of_a_reviewer_on_our_own_page_decides(
    one_project: OneProject, plane: Plane, owner: Browser
) -> None:
    gateway = await one_project.gateway()
    approval_id = (await asked(gateway, question(one_project))).approval_id or ""
    made = await owner.post("/keys", {"name": "ci", "scopes": ["project.approvals", "project.policy"]})
    key = made.text.partition('class="once">')[2].partition("<")[0]
    assert key.startswith("gk_")
    auditor = await invited(owner, plane, "aud@example.com", "auditor")
    tries: list[tuple[Browser, dict[str, str], int]] = [
        (plane.browser(), {}, 303),
        (plane.browser(), {"authorization": f"Bearer {key}"}, 303),
        (auditor, {}, 403),
        (owner, {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}, 403),
    ]
    for browser, headers, status in tries:
        answer = await decided(browser, one_project, approval_id, **headers)
        assert answer.status_code == status
        assert answer.headers.get("location", "/sign-in").startswith("/sign-in")
    for method in ("GET", "PUT", "HEAD"):
        path = f"/projects/{one_project.project}/approvals/{approval_id}/decide?decision=approve"
        assert (await owner.send(method, path)).status_code in (403, 404, 405)
    api = f"/api/v1/projects/{one_project.project}/approvals/{approval_id}/decide"
    bearer = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    assert (await owner.send("POST", api, b'{"decision":"approve"}', headers=bearer)).status_code in (404, 405)
    bad: list[dict[str, Any]] = [
        {"decision": "maybe"},
        {"decision": "approve", "rows_at_most": "-1"},
        {"decision": "deny", "rows_at_most": "1"},
        {"decision": "approve", "note": "x" * 3000},
    ]
    for form in bad:
        assert (await owner.post(f"/projects/{one_project.project}/approvals/{approval_id}/decide", form)).status_code == 400
    assert [each.id for each in (await pending(one_project.console, one_project.project)).requests] == [approval_id]


async def test_who_decides_is_told_that_the_agent_has_read_a_source_of_foreign_text(
    one_project: OneProject, owner: Browser
) -> None:
    gateway = await one_project.gateway()
    ask = question(one_project)
    found = await asked(gateway, ask)
    here = f"/projects/{one_project.project}/approvals/{found.approval_id}"
    assert "has read" not in (await owner.get(here)).text
    await gateway.ask("taint", TaintBody("mark", "", gateway.rows.ulid(), "shop", "public.<b>tickets"))
    page = (await owner.get(here)).text
    assert "This agent has read <strong><bdi>shop:public.&lt;b&gt;tickets</bdi></strong>" in page
