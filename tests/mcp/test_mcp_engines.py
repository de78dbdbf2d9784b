"""Several engines behind one address: a session that one of them opened, the next request at another one."""

import gc
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle

import httpx
import pytest
import trio
from mcp import Client as SdkClient
from mcp.client.streamable_http import streamable_http_client

from gatewayd.audit.events import AGENT_NAME_CHARACTERS, AGENT_VERSION_CHARACTERS, Agent
from gatewayd.http.exchange import Exchange
from gatewayd.link.formats.agent_tokens import AgentTable, token_mac
from gatewayd.link.formats.bundle import Agents, AgentToken
from gatewayd.mcp.door import OPEN, Door
from gatewayd.mcp.eras.handshake import Peer
from gatewayd.mcp.eras.session_ids import LIFE_MS, SessionIds
from gatewayd.mcp.eras.sessions import Sessions
from gatewayd.mcp.header_rules import session_id
from tests.mcp.mcp_rig import PATIENCE_S, Client, Rig, serving

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
PEER = Peer("2025-06-18", Agent("claude", "1.2", "01ARZ3NDEKTSV4RRFFQ69G5FAV"))
START_NS = 1_800_000_000_000 * 1_000_000


def ids(key: bytes | None = KEY, later_ms: int = 0) -> SessionIds:
    return SessionIds(lambda: key, clock_ns=lambda: START_NS + later_ms * 1_000_000)


def test_an_engine_with_the_key_knows_the_session_of_another_one() -> None:
    id_ = ids().new(PEER)
    found = ids(later_ms=60_000).read(id_)
    assert found is not None
    assert (found.version, found.agent) == (PEER.version, PEER.agent)
    assert all(0x21 <= ord(character) <= 0x7E for character in id_)
    assert ids().new(PEER) != id_


def test_the_longest_names_fit_into_the_header() -> None:
    longest = Agent("\U0001f40d" * AGENT_NAME_CHARACTERS, "\U0001f40d" * AGENT_VERSION_CHARACTERS, PEER.agent.token_id)
    id_ = ids().new(Peer("2025-06-18", longest))
    assert session_id({b"mcp-session-id": id_.encode()}, frozenset()) == id_
    found = ids().read(id_)
    assert found is not None
    assert found.agent == longest


def test_who_has_another_key_or_none_knows_nothing_and_no_session_lasts_for_ever() -> None:
    id_ = ids().new(PEER)
    assert ids(OTHER_KEY).read(id_) is None
    assert ids(None).read(id_) is None
    assert ids(later_ms=LIFE_MS).read(id_) is None
    assert ids(later_ms=-3_600_000).read(id_) is None
    assert ids().read(ids(None).new(PEER)) is None
    assert ids().read(ids().new(Peer("1999-01-01", PEER.agent))) is None


def test_every_change_of_an_id_is_noticed() -> None:
    id_ = ids().new(PEER)
    dice = random.Random(1)
    for place in range(len(id_)):
        for other in dice.sample("ABCDabcd0123-_.=é", 6):
            if other != id_[place]:
                assert ids().read(id_[:place] + other + id_[place + 1 :]) is None, place
    for cut in range(len(id_)):
        assert ids().read(id_[:cut]) is None


def test_a_session_that_was_ended_here_is_not_taken_in_again() -> None:
    first, second = Sessions(ids=ids()), Sessions(ids=ids())
    opened = first.open(PEER, 0)
    assert opened is not None
    taken = second.find(opened.id, 0)
    assert taken is not None
    assert taken is second.find(opened.id, 1)
    second.end(taken)
    assert second.find(opened.id, 2) is None
    assert first.find(opened.id, 2) is opened


def test_a_session_that_was_idle_for_long_goes_on_and_a_full_table_takes_none_in() -> None:
    sessions = Sessions(ids=ids(), idle_s=10, most=1)
    opened = sessions.open(PEER, 0)
    assert opened is not None
    again = sessions.find(opened.id, 100)
    assert again is not None
    assert again.agent == PEER.agent
    assert sessions.find(ids().new(PEER), 101) is None
    assert sessions.statistics().refused == 1


class InTurns:
    """A balancer: each request goes to the next engine."""

    def __init__(self, rigs: list[Rig]) -> None:
        self._rigs = rigs
        self._turns = cycle(rigs)

    async def __call__(self, exchange: Exchange) -> None:
        await next(self._turns).mcp(exchange)

    def drain(self) -> None:
        for rig in self._rigs:
            rig.mcp.drain()


@asynccontextmanager
async def behind_one_address(key: bytes | None, door: Door = OPEN) -> AsyncIterator[Rig]:
    rigs = [Rig(sessions=Sessions(ids=ids(key)), door=door) for _ in range(2)]
    front = Rig()
    front.mcp = InTurns(rigs)  # type: ignore[assignment]
    async with serving(front):
        yield front


# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_the_official_client_goes_on_at_another_engine() -> None:
    async with behind_one_address(KEY) as front:
        with trio.fail_after(PATIENCE_S):
            async with SdkClient(streamable_http_client(front.url), mode="legacy") as client:
                for _ in range(4):
                    assert not (await client.call_tool("echo", {})).is_error
    gc.collect()


@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_the_official_client_does_not_initialize_again_after_the_404_of_an_engine_without_the_key() -> None:
    """Why ids carry their sessions. When this fails, the client has learnt it."""
    async with behind_one_address(None) as front:
        with trio.fail_after(PATIENCE_S):
            async with SdkClient(streamable_http_client(front.url), mode="legacy") as client:
                outcomes = [await told(client) for _ in range(4)]
    assert any("unknown or ended session" in each for each in outcomes), outcomes
    gc.collect()


async def told(client: SdkClient) -> str:
    """What the agent's program sees of a call: nothing, or why it failed."""
    try:
        await client.call_tool("echo", {})
    except Exception as failure:
        return str(failure)
    return ""


async def test_the_id_of_a_session_does_not_stand_for_its_token() -> None:
    tokens = tuple(
        AgentToken(id_, token_mac(KEY, text), text, "01ARZ3NDEKTSV4RRFFQ69G5FAV", None)
        for id_, text in (("01ARZ3NDEKTSV4RRFFQ69G5FA0", "mine"), ("01ARZ3NDEKTSV4RRFFQ69G5FA1", "stolen"))
    )
    table = AgentTable(Agents(KEY.hex(), tokens))
    door = Door(lambda: table, is_linked=True)
    async with (
        behind_one_address(table.session_key, door) as front,
        httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http,
    ):
        client, mine = Client(front, http), {"authorization": "Bearer mine"}
        assert (await client.initialize(mine)).status_code == 200
        assert (await client.call("echo", {}, {"authorization": "Bearer stolen"})).status_code == 404
        assert (await client.call("echo", {}, {})).status_code == 401
        for _ in range(2):
            assert (await client.call("echo", {}, mine)).status_code == 200
