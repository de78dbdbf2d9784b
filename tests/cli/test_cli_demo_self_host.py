"""`gatewayd demo`: the control plane with the sample shop, by nothing but what it prints."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from gatewayd.cli.demo.self_host import STATEMENTS
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.cli.gatewayd_process import Running, serving

LAST = STATEMENTS[-1][0]
OWNER = {"email": "ada@example.com", "name": "Ada", "password": "correct horse battery"}


@pytest.fixture
def state(short_folder: Callable[[], Path]) -> Iterator[Path]:
    state = short_folder()
    try:
        yield state
    finally:
        EmbeddedPostgres(state / "postgres").stop("immediate")


def printed(demo: Running, name: str) -> str:
    demo.wait_until(lambda text: LAST in text, LAST)
    found = re.search(rf"^  {name} +(\S+)$", demo.text, flags=re.MULTILINE)
    assert found is not None, demo.text
    return found[1]


async def outcomes(url: str) -> list[tuple[bool, str | None]]:
    found = []
    async with Client(url) as client:
        for statement, _ in STATEMENTS[:-1]:
            result = await client.call_tool("query", {"sql": statement, "intent": "see what the demo answers"})
            (block,) = result.content
            assert block.type == "text"
            answer: dict[str, Any] = json.loads(block.text)
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
        async with httpx.AsyncClient(trust_env=False) as browser:
            assert "organisation" not in (await browser.get(link)).text, "the organisation is there already"
            headers = {"origin": site, "sec-fetch-site": "same-origin"}
            assert (await browser.post(link, data=OWNER, headers=headers)).status_code == 303
            assert "Shop" in (await browser.get(site, follow_redirects=True)).text
        assert demo.stop() == 0
    assert EmbeddedPostgres(state / "postgres").postmaster() is None
    with serving(["demo", "--state", str(state)]) as demo:
        assert printed(demo, "Agent") == agent
        assert printed(demo, "Console") == site
        assert await outcomes(agent) == expected
        assert demo.stop() == 0
    assert (state / "agent-token").stat().st_mode & 0o777 == 0o600
