"""A real `gatewayd serve` linked with a real control plane: enrolled, steered, audited over sockets, nothing imitated."""

import gc
from pathlib import Path

import msgspec
import pytest
import trio
from mcp import Client as SdkClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import TextContent

from gatewayd.keys.identity import FILE_NAME, NEXT_NAME
from gatewayd.link.kept import LINK
from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.linked_rig import PATIENCE_S, READS, SHOP, WRITES, Agent, linked, new_project


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_an_sdk_agent_reads_through_a_linked_gateway_and_the_owner_sees_it_in_the_audit(
    plane: Plane, owner: Browser, shop: str, tmp_path: Path, free_port: int
) -> None:
    project = await new_project(owner, plane)
    token = await project.token()
    version = await project.publish(READS)
    async with linked(project, shop, tmp_path / "gateway", free_port) as gateway:
        await project.until_enforced(version)
        headers = {"authorization": f"Bearer {token}"}
        async with create_mcp_http_client(headers) as http:
            with trio.fail_after(PATIENCE_S):
                async with SdkClient(streamable_http_client(f"{gateway.url}/mcp", http_client=http)) as client:
                    read = await client.call_tool("query", {"sql": "SELECT count(*) FROM orders", "intent": "how many?"})
                    denied = await client.call_tool("query", {"sql": "SELECT amount FROM payroll", "intent": "curious"})
        gc.collect()
        assert isinstance(read.content[0], TextContent)
        assert isinstance(denied.content[0], TextContent)
        found, refused = msgspec.json.decode(read.content[0].text), msgspec.json.decode(denied.content[0].text)
        assert found["rows"] == [{"count": 20}]
        assert refused["policy_rule"] == "table_access"
        newest, first = await project.audited(2)
        assert (first["outcome"], first["sql"], first["intent"]) == ("executed", "SELECT count(*) FROM orders", "how many?")
        assert (newest["outcome"], newest["rule"], newest["tables"]) == ("denied", "table_access", ["public.payroll"])
        page = await owner.get(f"/projects/{project.id}/audit?decision=DENY")
        assert "SELECT amount FROM payroll" in page.text
        assert "how many?" not in page.text
        assert await gateway.stop() == 0


async def test_policies_tokens_and_the_pause_of_the_control_plane_hold_without_a_restart(
    plane: Plane, owner: Browser, shop: str, tmp_path: Path, free_port: int, postgres: Postgres
) -> None:
    project = await new_project(owner, plane)
    token, other = await project.token("claude"), await project.token("cursor")
    version = await project.publish(READS)
    async with linked(project, shop, tmp_path / "gateway", free_port) as gateway:
        await project.until_enforced(version)
        assert await gateway.ready() == (200, "ready")
        agent = await Agent(gateway, token).begin()
        insert = "INSERT INTO orders VALUES ({}, 'new')"
        assert (await agent.query(insert.format(21)))["allowed"] is False

        await project.until_enforced(await project.publish(WRITES))
        assert (await agent.query(insert.format(21)))["allowed"] is True  # in the very session that was refused

        await project.ask("POST", "/pause", {"note": "an incident"})
        await project.until_enforced(version + 2, "paused")
        assert (await agent.query(insert.format(22)))["error"] == "gateway_paused"
        assert await gateway.ready() == (503, "paused")
        await project.ask("POST", "/resume", {})
        await project.until_enforced(version + 3)
        assert (await agent.query(insert.format(23)))["allowed"] is True

        ids = {each["name"]: each["id"] for each in (await project.ask("GET", "/tokens"))["tokens"]}
        await project.ask("DELETE", f"/tokens/{ids['claude']}")
        await project.until_enforced(version + 4)
        assert (await agent.post("ping", {})).status_code == 401
        still = await Agent(gateway, other).begin()
        assert (await still.query("SELECT 1 AS one"))["allowed"] is True
        assert [row["id"] for row in postgres.query("SELECT id FROM orders WHERE status = 'new' ORDER BY id", shop)] == [21, 23]
        assert len(await project.audited(4)) == 4  # what a paused gateway refuses was never attempted
        assert await gateway.stop() == 0


async def test_a_gateway_that_was_killed_serves_its_bundle_and_owes_the_audit_nothing(
    plane: Plane, owner: Browser, shop: str, tmp_path: Path, free_port: int
) -> None:
    project = await new_project(owner, plane)
    token = await project.token()
    version = await project.publish(READS)
    async with linked(project, shop, tmp_path / "gateway", free_port) as gateway:
        await project.until_enforced(version)
        agent = await Agent(gateway, token).begin()
        for number in range(5):
            assert (await agent.query(f"SELECT {number} AS n"))["allowed"] is True
        gateway.running.process.kill()
    async with linked(project, shop, tmp_path / "gateway", free_port) as gateway:
        agent = await Agent(gateway, token).begin()
        assert (await agent.query("SELECT 5 AS n"))["allowed"] is True
        found = await project.audited(6)
        assert sorted(each["sql"] for each in found) == [f"SELECT {n} AS n" for n in range(6)]
        assert (await project.ask("GET", "/gateways"))["findings"] == []
        assert await gateway.stop() == 0


async def test_a_rotated_gateway_goes_on_where_it_was_though_the_answer_was_lost(
    plane: Plane, owner: Browser, shop: str, tmp_path: Path, free_port: int
) -> None:
    project = await new_project(owner, plane)
    token = await project.token()
    version = await project.publish(READS)
    folder = tmp_path / "gateway"
    own = {"GATEWAY_STATE_DIR": str(folder / "state"), "DB_PATH": str(folder / "audit.db")}
    identity, link = (folder / "state" / name for name in (FILE_NAME, LINK))

    async def key_id() -> str:
        (gateway,) = await project.gateways()
        return str(gateway["key_id"])

    async with linked(project, shop, folder, free_port) as gateway:
        await project.until_enforced(version)
        assert (await (await Agent(gateway, token).begin()).query("SELECT 1 AS n"))["allowed"] is True
        assert await gateway.stop() == 0
    first, files = await key_id(), (identity.read_bytes(), link.read_bytes())
    done = await trio.to_thread.run_sync(run, ["link", "rotate", "--yes"], own)
    assert done.returncode == 0, done.stderr
    second = await key_id()
    assert second != first
    assert second in done.stdout

    identity.rename(identity.with_name(NEXT_NAME))  # as if it had ended before it saw the answer
    for path, data in zip((identity, link), files, strict=True):
        path.write_bytes(data)
    identity.chmod(0o600)
    done = await trio.to_thread.run_sync(run, ["link", "rotate", "--yes"], own)
    assert done.returncode == 0, done.stderr
    assert await key_id() == second

    version = await project.publish(WRITES)
    async with linked(project, shop, folder, free_port) as gateway:
        await project.until_enforced(version)
        assert (await (await Agent(gateway, token).begin()).query("SELECT 2 AS n"))["allowed"] is True
        assert sorted(each["sql"] for each in await project.audited(2)) == ["SELECT 1 AS n", "SELECT 2 AS n"]
        assert (await project.ask("GET", "/gateways"))["findings"] == []
        assert await gateway.stop() == 0
    assert "audit goes on under a new identity" in gateway.running.text
