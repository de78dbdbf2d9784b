"""Gateways and control planes of different versions: each says what it cannot do, and nothing is half enforced.

The other version is this one, changed in the one respect that matters by a `sitecustomize` of the gateway's process.
"""

from pathlib import Path

import pytest

from tests.conftest import Postgres
from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.linked_rig import READS, SHOP, Agent, linked, new_project, until

OLDER = """
from gatewayd.policy.file import features
features.FEATURES["guardrails"] = "a later version enforces it"
"""
NEWER = """
import msgspec
from gatewayd.link.formats import status

class PollBody(status.PollBody, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    of_a_later_version: tuple[str, ...] = msgspec.field(default_factory=lambda: ("a fact",))

status.PollBody = PollBody
"""
GUARDED = "databases:\n  - name: shop\n    table_access: {default: read}\n    guardrails: {block_ddl: true}\n"
SQL = "SELECT count(*) FROM orders"


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


def changed(folder: Path, how: str) -> str:
    """A PYTHONPATH with which a gatewayd is of another version."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(how, encoding="utf-8")
    return str(folder)


async def test_an_older_gateway_halts_on_a_feature_that_it_lacks_and_both_sides_say_so(
    plane: Plane, owner: Browser, shop: str, tmp_path: Path, free_port: int
) -> None:
    project = await new_project(owner, plane)
    token = await project.token()
    version = await project.publish(READS)
    older = changed(tmp_path / "older", OLDER)
    async with linked(project, shop, tmp_path / "gateway", free_port, PYTHONPATH=older) as gateway:
        await project.until_enforced(version)
        agent = await Agent(gateway, token).begin()
        assert (await agent.query(SQL))["rows"] == [{"count": 20}]

        await project.publish(GUARDED)
        assert "does not enforce guardrails" in await gateway.told("gateway halted")
        assert (await agent.query(SQL))["error"] == "gateway_halted"

        async def is_shown() -> bool:
            (shown,) = await project.gateways()
            return shown["state"] == "halted" and "does not enforce guardrails" in shown["reason"]

        await until(is_shown, "the control plane shows why")

        version = await project.publish(READS)
        await project.until_enforced(version)
        assert (await agent.query(SQL))["rows"] == [{"count": 20}]
        assert await gateway.stop() == 0


async def test_a_newer_gateway_is_told_to_wait_for_the_control_plane_and_keeps_its_policy(
    plane: Plane, owner: Browser, shop: str, tmp_path: Path, free_port: int
) -> None:
    project = await new_project(owner, plane)
    token = await project.token()
    version = await project.publish(READS)
    async with linked(project, shop, tmp_path / "gateway", free_port) as gateway:
        await project.until_enforced(version)
        assert await gateway.stop() == 0
    newer = changed(tmp_path / "newer", NEWER)
    async with linked(project, shop, tmp_path / "gateway", free_port, PYTHONPATH=newer) as gateway:
        assert "upgrade the control plane first" in await gateway.told("status refused")
        agent = await Agent(gateway, token).begin()
        assert (await agent.query(SQL))["rows"] == [{"count": 20}]
        assert (await agent.query("SELECT * FROM payroll"))["policy_rule"] == "table_access"
        assert await gateway.ready() == (200, "ready")
        await project.audited(2)
        assert await gateway.stop() == 0
