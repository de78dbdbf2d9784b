"""Approvals end to end: a real gateway holds a write, a person approves it as the page does, and it runs exactly once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.linked_rig import SHOP, Agent, Linked, Project, linked, new_project, until
from tests.control.reviewing import decide, reviewer, the_pending

__all__ = ["reviewer"]

HELD = """
databases:
  - name: shop
    table_access: {{default: read_write, tables: {{payroll: deny}}}}
    approvals: {{writes: true, hold_s: {hold_s}, preview: true}}
"""
DELETE = "DELETE FROM orders WHERE id <= 3"


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


@asynccontextmanager
async def holding(project: Project, shop: str, folder: Path, port: int, hold_s: int = 0) -> AsyncIterator[tuple[Linked, Agent]]:
    """A gateway that holds every write for so long, and an agent of the owner's token."""
    token = await project.token()
    version = await project.publish(HELD.format(hold_s=hold_s))
    async with linked(project, shop, folder, port) as gateway:
        await project.until_enforced(version)
        yield gateway, await Agent(gateway, token).begin()


def orders(postgres: Postgres, shop: str) -> int:
    return int(postgres.query("SELECT count(*) AS n FROM orders", shop)[0]["n"])


async def test_a_held_write_is_approved_runs_once_and_is_proved_offline(
    plane: Plane, owner: Browser, reviewer: Browser, shop: str, tmp_path: Path, free_port: int, postgres: Postgres
) -> None:
    project = await new_project(owner, plane)
    async with holding(project, shop, tmp_path / "gateway", free_port, hold_s=50) as (gateway, agent):
        answers: list[dict[str, Any]] = []

        async def write() -> None:
            answers.append(await agent.query(DELETE, "old orders"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            request = await the_pending(project)
            assert (request["ask"]["sql"], request["ask"]["intent"]) == (DELETE, "old orders")
            assert request["ask"]["preview"]["rows"] == 3
            assert (request["gateway"], request["token"], request["requester"]) == ("edge", "claude", "Ada")
            assert orders(postgres, shop) == 20
            assert (await decide(owner, project, request["id"])).status_code == 403  # her own token asked
            by_link = await reviewer.get(f"/projects/{project.id}/approvals/{request['id']}/decide?decision=approve")
            assert by_link.status_code in (404, 405)
            assert (await the_pending(project))["id"] == request["id"]
            answer = await decide(reviewer, project, request["id"], note="fine", rows_at_most="5")
            assert answer.status_code == 303
            assert answer.headers["location"].endswith(f"/approvals/{request['id']}")
        assert answers[0]["rowCount"] == 3
        assert orders(postgres, shop) == 17
        again = await decide(reviewer, project, request["id"], "deny", note="too late")  # leads to what was decided
        assert again.headers["location"] == answer.headers["location"]
        with_key = await project.api("POST", f"/projects/{project.id}/approvals/{request['id']}/decide", {"decision": "approve"})
        assert with_key.status_code in (404, 405)

        async def is_told() -> bool:
            return bool((await project.ask("GET", f"/approvals/{request['id']}"))["request"]["outcome"])

        await until(is_told, "the outcome")
        told = (await project.ask("GET", f"/approvals/{request['id']}"))["request"]
        assert (told["status"], told["outcome_rows"], told["decided_by"]) == ("executed", 3, "rit")
        assert (told["note"], told["rows_at_most"]) == ("fine", 5)
        (found,) = [each for each in await project.audited(2) if each["sql"] == DELETE]
        assert (found["query_id"], found["outcome"]) == (told["ran_as"], "executed")
        one = await project.ask("GET", f"/audit/queries/{found['query_id']}")
        decided = next(each["payload"] for each in one["events"] if each["event_type"] == "DECIDED")
        assert decided["approved_by"] == told["decided_by"]
        proof = await project.ask("GET", f"/audit/queries/{found['query_id']}/proof")
        (tmp_path / "one.proof").write_text(proof["text"])
        keys = [word for key in proof["keys"] for word in ("--key", key)]
        checked = await trio.to_thread.run_sync(partial(run, ["audit", "verify-proof", str(tmp_path / "one.proof"), *keys]))
        assert checked.returncode == 0, checked.stderr
        assert DELETE in checked.stdout
        assert await gateway.stop() == 0
    trail = await owner.get("/trail")
    assert "approval.approved" in trail.text.replace("<wbr>", "")


async def test_a_write_that_was_not_held_is_run_by_asking_again_once(
    plane: Plane, owner: Browser, reviewer: Browser, shop: str, tmp_path: Path, free_port: int, postgres: Postgres
) -> None:
    project = await new_project(owner, plane)
    async with holding(project, shop, tmp_path / "gateway", free_port) as (gateway, agent):
        waiting = await agent.query(DELETE)
        assert waiting["status"] == "awaiting_approval"
        approval_id = waiting["approval_id"]
        assert waiting["review_url"] == f"{plane.url}/projects/{project.id}/approvals/{approval_id}"
        assert (await agent.call("check_approval", approval_id=approval_id))["status"] == "pending"
        other_token = await project.token("cursor")
        await project.until_enforced(int((await project.gateways())[0]["bundle_version"]) + 1)
        other = await Agent(gateway, other_token).begin()
        assert (await other.call("check_approval", approval_id=approval_id))["status"] == "not_found"
        await decide(reviewer, project, approval_id)
        assert (await agent.call("check_approval", approval_id=approval_id))["status"] == "approved"
        assert (await other.query(DELETE))["status"] == "awaiting_approval"
        assert (await agent.query(DELETE + " "))["status"] == "awaiting_approval"
        assert (await agent.query(DELETE))["rowCount"] == 3
        again = await agent.query(DELETE)
        assert again["status"] == "awaiting_approval"
        assert again["approval_id"] != approval_id
        assert orders(postgres, shop) == 17
        denied = await decide(reviewer, project, again["approval_id"], "deny", note="not twice")
        assert denied.status_code == 303
        refused = await agent.query(DELETE)
        assert refused["policy_rule"] == "approval_denied"
        assert "not twice" in refused["reason"]
        assert await gateway.stop() == 0


async def test_two_identical_writes_at_once_run_once_on_one_approval(
    plane: Plane, owner: Browser, reviewer: Browser, shop: str, tmp_path: Path, free_port: int, postgres: Postgres
) -> None:
    project = await new_project(owner, plane)
    insert = "INSERT INTO orders SELECT max(id) + 1, 'new' FROM orders"
    async with holding(project, shop, tmp_path / "gateway", free_port, hold_s=50) as (gateway, agent):
        answers: list[dict[str, Any]] = []

        async def write() -> None:
            answers.append(await agent.query(insert))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            nursery.start_soon(write)
            first = await the_pending(project)
            await decide(reviewer, project, first["id"])

            async def is_another() -> bool:
                found = (await project.ask("GET", "/approvals"))["requests"]
                return bool(found) and found[0]["id"] != first["id"]

            await until(is_another, "the second request")
            assert orders(postgres, shop) == 21
            await decide(reviewer, project, (await the_pending(project))["id"], "deny")
        assert sorted(each["allowed"] for each in answers) == [False, True]
        assert orders(postgres, shop) == 21
        assert await gateway.stop() == 0
