"""`gatewayd demo`: the control plane with the sample shop, by nothing but what it prints."""

import json
import re
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from mcp import Client

from gatewayd.cli.demo.output import STATEMENTS
from gatewayd.cli.demo.self_host import WAITS
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.cli.gatewayd_process import Running, serving
from tests.control.plane_process import PlaneProcess

LAST = WAITS[0]


def printed(demo: Running, name: str) -> str:
    demo.wait_until(lambda text: LAST in text, LAST)
    found = re.search(rf"^  {name} +(\S+)$", demo.text, flags=re.MULTILINE)
    assert found is not None, demo.text
    return found[1]


async def query(client: Client, statement: str) -> dict[str, Any]:
    result = await client.call_tool("query", {"sql": statement, "intent": "see what the demo answers"})
    (block,) = result.content
    assert block.type == "text"
    found: dict[str, Any] = json.loads(block.text)
    return found


async def approved(owner: PlaneProcess, url: str) -> int:
    """The rows that the last statement touched, once its owner had approved it."""
    (project,) = [each["id"] for each in owner.api("GET", "/projects")["projects"]]
    answers: list[dict[str, Any]] = []

    async def write() -> None:
        async with Client(url) as client:
            answers.append(await query(client, LAST))

    def decide() -> None:
        until = time.monotonic() + 60
        while not (waiting := owner.api("GET", f"/projects/{project}/approvals")["requests"]):
            assert time.monotonic() < until, "nothing waits for a person"
            time.sleep(0.05)
        place = f"/projects/{project}/approvals/{waiting[0]['id']}/decide"
        assert owner.form(place, {"decision": "approve"}).status_code == 303

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.to_thread.run_sync(decide)
    return int(answers[0]["rowCount"])


async def outcomes(url: str) -> list[tuple[bool, str | None]]:
    found = []
    async with Client(url) as client:
        for statement, _ in STATEMENTS:
            answer = await query(client, statement)
            found.append((answer["allowed"], answer.get("policy_rule")))
    return found


# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_what_it_prints_works_and_stays_over_a_restart(state: Path) -> None:
    expected = [(True, None), (True, None), (False, "table_access"), (False, "dangerous_statement")]
    with serving(["demo", "--state", str(state)]) as demo:
        agent, link = printed(demo, "Agent"), printed(demo, "Console")
        configurations = [json.loads(line) for line in demo.text.splitlines() if line.strip().startswith('{"mcpServers"')]
        assert {"url": agent} in [each["mcpServers"]["shop"] for each in configurations]
        assert await outcomes(agent) == expected
        site = link.partition("/welcome/")[0]
        shown = await trio.to_thread.run_sync(partial(httpx.get, link, trust_env=False))
        assert 'name="organisation"' not in shown.text, "the organisation is there already"
        with closing(PlaneProcess(demo, site)) as owner:
            await trio.to_thread.run_sync(owner.found, link)
            assert await approved(owner, agent) == 1
        assert demo.stop() == 0
    assert EmbeddedPostgres(state / "postgres").postmaster() is None
    with serving(["demo", "--state", str(state)]) as demo:
        assert printed(demo, "Agent") == agent
        assert printed(demo, "Console") == site
        assert await outcomes(agent) == expected
        assert demo.stop() == 0
    assert (state / "agent-token").stat().st_mode & 0o777 == 0o600
