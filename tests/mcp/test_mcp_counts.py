"""Every request is counted once, by method and by how it ended; what clients invent is `other` (operations C3)."""

from itertools import product
from typing import get_args

import trio

from gatewayd.fairness.admission import CallLimits
from gatewayd.mcp.dispatch import METHODS, RequestOutcome
from tests.mcp.mcp_rig import META, PATIENCE_S, Client, Rig, client_of, serving


def counted(rig: Rig) -> dict[tuple[str, str], int]:
    """What is not 0."""
    requests = rig.dispatch.statistics().requests
    assert set(requests) == set(product(METHODS, get_args(RequestOutcome)))  # whatever was asked
    return {key: count for key, count in requests.items() if count}


async def test_requests_of_a_session(client: Client) -> None:
    await client.post(client.request("tools/list"))  # no session yet
    await client.initialize()
    await client.initialize(clientInfo=7)
    for method in ("ping", "tools/list", "tools/call", "no/such/method"):
        await client.post(client.request(method))
    await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})  # no request
    for tool in ("echo", "boom", "no such tool"):
        await client.call(tool)
    assert counted(client.rig) == {
        ("initialize", "answered"): 2,  # the second time is welcomed again, whatever it says
        ("ping", "answered"): 1,
        ("tools/list", "answered"): 1,
        ("tools/list", "error"): 1,
        ("tools/call", "error"): 3,
        ("tools/call", "answered"): 1,
        ("other", "error"): 1,
    }


async def test_requests_without_a_session(client: Client) -> None:
    for method in ("server/discover", "tools/list", "no/such/method"):
        await client.stateless(method)
    await client.stateless("tools/list", headers={"mcp-method": "tools/call"})
    await client.stateless("tools/list", {"_meta": {}})
    await client.stateless("tools/call", {"name": "echo"})
    assert counted(client.rig) == {
        ("server/discover", "answered"): 1,
        ("tools/list", "answered"): 1,
        ("tools/list", "error"): 2,
        ("other", "error"): 1,
        ("tools/call", "answered"): 1,
    }


async def test_calls_that_are_cancelled_or_refused() -> None:
    async with serving(Rig(limits=CallLimits(running=1, waiting=0))) as rig, client_of(rig) as client:
        await client.initialize()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call, "hang")
            await rig.until(started=1)
            hanging = client.id
            await client.call("echo")
            assert counted(rig)["tools/call", "refused"] == 1
            await client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": hanging}})
        assert counted(rig)["tools/call", "cancelled"] == 1


async def test_agents_without_sessions_have_places_of_their_own() -> None:
    """Told apart by token and by what they call themselves, all behind one address."""
    token = {"x-gateway-token-id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
    other = {**META, "io.modelcontextprotocol/clientInfo": {"name": "other", "version": "1"}}
    limits = CallLimits(running=6, running_per_caller=1)
    async with serving(Rig(limits=limits)) as rig, client_of(rig) as client, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(client.stateless, "tools/call", {"name": "wait"})
        with trio.fail_after(PATIENCE_S):
            while (calls := rig.dispatch.statistics().calls).waiting != 1 or calls.running != 1:
                await trio.lowlevel.checkpoint()
        answers = [
            await client.stateless("tools/call", {"name": "echo"}, token),
            await client.stateless("tools/call", {"name": "echo", "_meta": other}),
        ]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert rig.dispatch.statistics().calls.waiting == 1  # the same agent's second call, still
        rig.release.set()
