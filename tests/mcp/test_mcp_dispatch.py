"""The table of tools: asked anew for each request, encoded once per table; agents are cut to what audit rows hold."""

import json
from collections.abc import Iterable, Sequence

import msgspec
import pytest

from gatewayd.audit.events import Agent
from gatewayd.mcp.dispatch import Dispatch, Tool, ToolCall, ToolResult, agent_of
from gatewayd.mcp.messages import CallParams, ClientInfo, ProtocolError
from tests.mcp.mcp_rig import tool


async def answer(call: ToolCall) -> ToolResult:
    return ToolResult(f"{call.agent.name} {call.progress}")


async def test_a_reload_shows_in_the_next_list_and_call() -> None:
    tables: list[Sequence[Tool]] = [(tool("old", answer),), (tool("new", answer),)]
    dispatch = Dispatch("rig", "1", lambda: tables[0])
    assert [listed["name"] for listed in json.loads(bytes(dispatch.tools_json()))] == ["old"]
    first = dispatch.tools_json()
    assert dispatch.tools_json() is first
    tables.pop(0)
    assert [listed["name"] for listed in json.loads(bytes(dispatch.tools_json()))] == ["new"]
    assert isinstance(await dispatch.call(1, CallParams("old"), Agent(), "c", None), ProtocolError)
    assert await dispatch.call(2, CallParams("new"), Agent("n"), "c", None) == ToolResult("n None")
    assert dispatch.statistics().calls.admitted == 1


@pytest.mark.parametrize(
    ("client", "agent"),
    [
        (msgspec.UNSET, Agent(None, None, "T")),
        (ClientInfo("a"), Agent("a", "", "T")),
        (ClientInfo("é" * 129, "v" * 65), Agent("é" * 128, "v" * 64, "T")),
    ],
)
def test_agents(client: ClientInfo | msgspec.UnsetType, agent: Agent) -> None:
    assert agent_of(client, "T") == agent


async def test_remembered_clients_are_bounded(capfd: pytest.CaptureFixture[str]) -> None:
    dispatch = Dispatch("rig", "1", lambda: ())

    def lines_for(numbers: Iterable[int]) -> int:
        for number in numbers:
            dispatch.note_client(Agent(f"n{number}", "1"), "2025-06-18")
        return capfd.readouterr().err.count('"mcp client"')

    assert lines_for(range(3000)) == 3000
    assert lines_for(range(3000 - 1024, 3000)) == 0
    assert lines_for([3000 - 1025]) == 1  # the newest that is forgotten
