"""Sessions without end, ids in flight twice and floods of cancellations: nobody ends another's call, and nothing is left over."""

import json
import re
from collections.abc import Sequence

import httpx
import pytest
import trio

from gatewayd.config.bounds import MCP_BOUNDS
from gatewayd.mcp.messages import INVALID_REQUEST, REQUEST_CANCELLED
from tests.conftest import Postgres
from tests.daemon.daemon_rig import Agent, running_there, until
from tests.faults.hostile import INITIALIZE, PATIENCE_S, Target, attacked, message, unharmed
from tests.faults.raw_requests import post, statuses, told

FLOOD = 2000
SLOW = "SELECT count(*) AS {} FROM generate_series(1, 2000000000) a"
BATCH = 100


def cancelled(id_: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}).encode()


def named(session: str) -> bytes:
    return f"mcp-session-id: {session}\r\n".encode()


async def flood(target: Target, requests: Sequence[bytes]) -> None:
    """Each is accepted, as notifications are; on one connection, as fast as it goes."""
    last = requests[-1].replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)
    found = statuses(await told(target.port, b"".join(requests[:-1]) + last, all_said=False))
    assert len(found) == len(requests)
    assert set(found) <= {202, 400, 404}


async def test_no_flood_of_cancellations_ends_anothers_call(target: Target) -> None:
    ended: list[httpx.Response] = []

    async def call(agent: Agent, id_: object, tag: str) -> None:
        call = {"name": "query", "arguments": {"sql": SLOW.format(tag), "intent": "test"}}
        ended.append(await agent.http.post(agent.url, json=message("tools/call", call, id_), headers=agent.headers))

    async with unharmed(target), Agent(target.port) as victim, Agent(target.port) as other:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, victim, 7, "victim")
                await until(lambda: running_there(target.postgres, "victim") > 0)
                own, others = named(victim.headers["mcp-session-id"]), named(other.headers["mcp-session-id"])
                stateless = b"mcp-protocol-version: 2026-07-28\r\nmcp-method: notifications/cancelled\r\n"
                await flood(target, [post(cancelled(7), others)] * FLOOD)  # the id of the call, another's session
                await flood(target, [post(cancelled(7), named("x" * 32))] * FLOOD)  # a session that nobody has
                await flood(target, [post(cancelled(7))] * FLOOD)  # none
                await flood(target, [post(cancelled(7), stateless)] * FLOOD)  # the era without sessions
                await flood(target, [post(cancelled(id_), own) for id_ in ("7", 8, -7, "", 7.5, None, [7]) for _ in range(300)])
                await target.serves()
                assert ended == []
                assert running_there(target.postgres, "victim")
                await flood(target, [post(cancelled(7), own)] * FLOOD)  # and now its own
        assert ended[0].json()["error"]["code"] == REQUEST_CANCELLED
        with trio.fail_after(PATIENCE_S):
            await until(lambda: not running_there(target.postgres, "victim"))


async def test_an_id_in_flight_is_refused_to_its_twin_only(target: Target) -> None:
    answers: dict[str, list[httpx.Response]] = {"first": [], "twins": [], "other": []}

    async def call(agent: Agent, sql: str, into: str) -> None:
        call = {"name": "query", "arguments": {"sql": sql, "intent": "test"}}
        answers[into].append(await agent.http.post(agent.url, json=message("tools/call", call, 7), headers=agent.headers))

    async with unharmed(target), Agent(target.port) as agent, Agent(target.port) as other:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, agent, SLOW.format("twin"), "first")
                await until(lambda: running_there(target.postgres, "twin") > 0)
                async with trio.open_nursery() as twins:
                    for _ in range(100):
                        twins.start_soon(call, agent, "SELECT 1", "twins")
                    twins.start_soon(call, other, "SELECT 1", "other")
                assert answers["first"] == []
                await flood(target, [post(cancelled(7), named(agent.headers["mcp-session-id"]))])
        assert {answer.json()["error"]["code"] for answer in answers["twins"]} == {INVALID_REQUEST}
        assert "result" in answers["other"][0].json()
        assert answers["first"][0].json()["error"]["code"] == REQUEST_CANCELLED


async def open_sessions(target: Target, count: int) -> tuple[list[str], int]:
    """Their ids, and how many were refused."""
    one = post(json.dumps(message("initialize", INITIALIZE)).encode())
    ids: list[str] = []
    refused = 0
    for begin in range(0, count, BATCH):
        number = min(BATCH, count - begin)
        last = one.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)
        answers = await told(target.port, one * (number - 1) + last, all_said=False)
        ids += [found.decode() for found in re.findall(rb"mcp-session-id: (\S+)", answers)]
        refused += statuses(answers).count(503)
        assert answers.count(b"retry-after: 1\r\n") == statuses(answers).count(503)
    return ids, refused


async def crowd_of_sessions(target: Target, count: int) -> None:
    """Beyond the table's end a session is refused and told when to return; the others are as good as before, and end."""
    began = int(target.metric("gatewayd_mcp_sessions"))
    async with Agent(target.port) as agent:
        ids, refused = await open_sessions(target, count)
        room = MCP_BOUNDS.sessions - began - 1
        assert (len(ids), refused) == (min(count, room), max(0, count - room))
        assert len(set(ids)) == len(ids)
        assert (await agent.query("SELECT 1 AS one"))["rows"] == [{"one": 1}]
        ping = json.dumps(message("ping")).encode()
        head = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        for begin in range(0, len(ids), BATCH):
            some = [named(session) for session in ids[begin : begin + BATCH]]
            pings = b"".join(post(ping, session) for session in some)
            gone = b"".join(head.replace(b"POST", b"DELETE") + session + b"\r\n" for session in some)
            late = b"".join(post(ping, session) for session in some[:-1]) + post(ping, some[-1] + b"connection: close\r\n")
            found = statuses(await told(target.port, pings, gone, late, all_said=False))
            assert found == [200] * len(some) * 2 + [404] * len(some)
    assert target.metric("gatewayd_mcp_sessions") == began + 1


async def test_many_sessions(target: Target) -> None:
    async with unharmed(target):
        await crowd_of_sessions(target, 500)


@pytest.mark.soak
async def test_ten_thousand_sessions(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> None:
    with attacked(postgres, tmp_path_factory.mktemp("sessions")) as target:
        began_s = trio.current_time()
        await crowd_of_sessions(target, MCP_BOUNDS.sessions)
        after = await target.is_unharmed()
        print(f"{MCP_BOUNDS.sessions} sessions in {trio.current_time() - began_s:.0f} s; {target.start} -> {after}")
