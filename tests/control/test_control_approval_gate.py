"""The control plane as the gate of engines without a link: the protocol of docs/approvals.md behind a bearer of the project."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio

from gatewayd.approvals.messages import GateAsk
from gatewayd.control.console import Console
from gatewayd.control.store.store import Store
from tests.cli.gatewayd_process import serving
from tests.conftest import Postgres
from tests.control.browser import TLS, Browser
from tests.control.conftest import Plane
from tests.control.linked_rig import PATIENCE_S, SHOP, Agent, Linked, Project, new_project
from tests.control.reviewing import decide, reviewer, the_pending

__all__ = ["reviewer"]
POLICY = "table_access: {default: read_write}\napprovals: {writes: true, hold_s: 50}\n"


async def new_bearer(owner: Browser, project: Project, name: str = "edge") -> tuple[str, str]:
    """Its id and its text, from the page."""
    made = await owner.post(f"/projects/{project.id}/approval-gate", {"name": name})
    assert made.status_code == 200, made.text
    return re.findall(r"approval-gate/([0-9A-Z]{26})/rotate", made.text)[-1], text_in(made)


def text_in(page: httpx.Response) -> str:
    found = re.search(r"GATEWAY_APPROVAL_TOKEN=(ga_[\w-]+)", page.text)
    assert found is not None, page.text
    return found[1]


class Gate:
    """A standalone engine's side, without the engine."""

    def __init__(self, project: Project, bearer: str) -> None:
        self.url = f"{project.url}/approvals/v1/{project.id}"
        self.bearer = bearer

    async def post(self, path: str, body: Any, method: str = "POST") -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S, verify=TLS) as client:
            content = body if isinstance(body, bytes) else msgspec.json.encode(body)
            headers = {"authorization": f"Bearer {self.bearer}", "content-type": "application/json"}
            return await client.request(method, self.url + path, content=content, headers=headers)


@pytest.fixture
async def ids(plane: Plane, store_url: str) -> AsyncIterator[Console]:
    store = Store(store_url)
    yield Console(plane.settings, store)
    store.close()


def question(ids: Console, sql: str = "DELETE FROM orders") -> GateAsk:
    return GateAsk(
        ids.new_id(), "__default__", sql, None, "DELETE", ("public.orders",), "__self_host__", None, None, None, "f" * 16,
        "row_changes", "ab" * 32,
    )  # fmt: skip


async def test_a_standalone_engine_runs_what_a_person_approved_here(
    plane: Plane, owner: Browser, reviewer: Browser, tmp_path: Path, free_port: int, postgres: Postgres
) -> None:
    shop = postgres.create_database(SHOP)
    project = await new_project(owner, plane)
    _, bearer = await new_bearer(owner, project)
    (tmp_path / "policy.yaml").write_text(POLICY)
    variables = {
        "DATABASE_URL": shop, "DB_PATH": str(tmp_path / "audit.db"), "GATEWAY_POLICY_FILE": str(tmp_path / "policy.yaml"),
        "GATEWAY_APPROVAL_URL": f"{project.url}/approvals/v1/{project.id}", "GATEWAY_APPROVAL_TOKEN": bearer,
        "GATEWAY_TELEMETRY": "0", "GATEWAY_HOST": "127.0.0.1", "PORT": str(free_port),
    }  # fmt: skip
    with serving([], variables) as running:
        gateway = Linked(running, free_port, tmp_path)
        await gateway.told("gatewayd started")
        agent = await Agent(gateway, "nobody").begin()
        answers: list[dict[str, Any]] = []

        async def write() -> None:
            answers.append(await agent.query("DELETE FROM orders WHERE id <= 3", "old orders"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            request = await the_pending(project)
            assert (request["gateway"], request["requester"]) == ("edge", None)
            await decide(reviewer, project, request["id"], rows_at_most="2")
        assert answers[0]["error"]["sqlstate"] == "approval_bound"
        assert postgres.query("SELECT count(*) AS n FROM orders", shop) == [{"n": 20}]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await decide(reviewer, project, (await the_pending(project))["id"])
        assert answers[1]["rowCount"] == 3
        assert await gateway.stop() == 0


async def test_only_a_bearer_of_this_project_is_let_in(plane: Plane, owner: Browser, ids: Console) -> None:
    project, other = await new_project(owner, plane), await new_project(owner, plane, name="Other")
    token_id, bearer = await new_bearer(owner, project)
    ask = question(ids)
    assert (await Gate(project, bearer).post("", ask)).json()["status"] == "pending"
    for wrong in ("x", "ga_" + "x" * 43, project.key, (await new_bearer(owner, other))[1]):
        refused = await Gate(project, wrong).post("", ask)
        assert (refused.status_code, refused.json()) == (401, {"error": "the bearer token is none of this project"})
    assert (await Gate(other, bearer).post("", ask)).status_code == 401
    new = text_in(await owner.post(f"/projects/{project.id}/approval-gate/{token_id}/rotate"))
    assert (await Gate(project, bearer).post("", ask)).status_code == 401
    assert (await Gate(project, new).post("", ask)).json()["status"] == "pending"
    assert new not in (await owner.get(f"/projects/{project.id}/approval-gate")).text
    await owner.post(f"/projects/{project.id}/approval-gate/{token_id}/revoke")
    assert (await Gate(project, new).post("", ask)).status_code == 401
    assert (await owner.post(f"/projects/{project.id}/approval-gate/{token_id}/rotate")).status_code == 404


async def test_what_is_no_message_is_told_and_changes_nothing(plane: Plane, owner: Browser, ids: Console) -> None:
    project = await new_project(owner, plane)
    gate = Gate(project, (await new_bearer(owner, project))[1])
    ask = msgspec.to_builtins(question(ids))
    assert (await gate.post("", b"{")).status_code == 400
    assert "sql" in (await gate.post("", {name: value for name, value in ask.items() if name != "sql"})).text
    assert (await gate.post("", ask | {"query_id": "no ulid"})).status_code == 409
    assert (await gate.post("", ask | {"database": "a\0b"})).status_code == 409
    assert (await gate.post("/nothing", ask)).status_code == 404
    assert (await gate.post("", ask, method="GET")).status_code == 405
    assert (await gate.post("/wait", {"approval_id": ids.new_id(), "query_id": ids.new_id()})).status_code == 409
    assert (await gate.post("/status", {"approval_id": "nothing"})).json() == {"status": "not_found"}
    assert (await gate.post("/outcome", {"query_id": ids.new_id(), "outcome": "executed"})).json() == {}
    assert (await project.ask("GET", "/approvals"))["requests"] == []


async def test_a_grant_is_of_one_bearer_and_a_wait_ends_with_the_decision(
    plane: Plane, owner: Browser, reviewer: Browser, ids: Console
) -> None:
    project = await new_project(owner, plane)
    first, second = [Gate(project, (await new_bearer(owner, project, name))[1]) for name in ("edge", "core")]
    ask = question(ids)
    pending = (await first.post("", ask)).json()
    assert pending["review_url"] == f"{plane.url}/projects/{project.id}/approvals/{pending['approval_id']}"
    wait = {"approval_id": pending["approval_id"], "query_id": ask.query_id, "wait_s": 50}
    answers: list[dict[str, Any]] = []

    async def waiting() -> None:
        answers.append((await first.post("/wait", wait)).json())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting)
        assert (await second.post("/wait", wait)).status_code == 409
        await decide(reviewer, project, pending["approval_id"], note="fine")
    expected = {"status": "approved", "by": "rit", "note": "fine", "query_id": ask.query_id}
    assert answers == [expected | {"approval_id": pending["approval_id"]}]
    assert (await second.post("", msgspec.structs.replace(ask, query_id=ids.new_id()))).json()["status"] == "pending"
    assert (await second.post("/status", {"approval_id": pending["approval_id"]})).json() == {"status": "not_found"}
    assert (await first.post("/status", {"approval_id": pending["approval_id"]})).json() == {"status": "consumed"}
    await second.post("/outcome", {"query_id": ask.query_id, "outcome": "executed"})
    assert (await first.post("/status", {"approval_id": pending["approval_id"]})).json() == {"status": "consumed"}
    await first.post("/outcome", {"query_id": ask.query_id, "outcome": "executed", "rows": 3})
    assert (await first.post("/status", {"approval_id": pending["approval_id"]})).json() == {"status": "executed"}
