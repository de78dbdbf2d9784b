"""A token's calls and rows of a day, counted over all gateways: a bundle refuses it until midnight once they are used up."""

from functools import partial
from typing import Any

import pytest

from gatewayd.control.audit import rollup
from gatewayd.control.console import Console
from gatewayd.control.policies.issue import NEWEST, BundleRow
from gatewayd.control.proxy.look_up import look_up
from gatewayd.control.proxy.write_use import write_use
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.budgets import tell_used_up
from gatewayd.control.tokens.day_use import DAY_MS, day_of
from gatewayd.control.tokens.text import token_text
from gatewayd.control.tokens.token import Token, add_token
from gatewayd.link.formats.agent_tokens import AgentTable
from gatewayd.link.formats.bundle import Bundle
from gatewayd.link.formats.documents import read
from gatewayd.mcp.door import Door, UsedUp
from gatewayd.mcp.request_head import RequestHead
from tests.control.approval_world import World, make_world

NOW_MS = 20_700 * DAY_MS + 10 * 3600 * 1000


@pytest.fixture
async def world(settings: Any, store: Any) -> World:
    return await make_world(Console(settings, store, clock=lambda: NOW_MS))


async def token(world: World, name: str, calls: int | None = None, rows: int | None = None) -> tuple[str, str]:
    """Its id and its text."""
    console, token_id = world.console, world.console.new_id()
    text = token_text("live", console.entropy(16))
    made = Token(token_id, "live", name, world.people["Agnes"], b"", "", NOW_MS, None, None, None, calls, rows)

    async def work(tx: Transaction) -> None:
        await add_token(tx, console, ProjectPlace(world.org, world.project, token_id), text, made)

    await console.store.transaction(work)
    return token_id, text


async def use(world: World, token_id: str, calls: int, rows: int, day: int | None = None) -> None:
    """As the audit of some gateway tells it."""
    told = {(day if day is not None else day_of(NOW_MS), 9, "token", token_id): [calls, 0, 0, rows, 0]}
    await world.console.store.transaction(lambda tx: rollup.add(tx, world.project, told))


async def newest(world: World) -> Bundle:
    row = await world.console.store.row(BundleRow, NEWEST, world.project)
    assert row is not None
    return read(row.payload, Bundle)


def entered(bundle: Bundle, text: str, now_ms: int) -> object:
    """What a gateway's door makes of the token."""
    assert bundle.agents is not None
    table = AgentTable(bundle.agents)
    door = Door(lambda: table, is_linked=True, clock_ns=lambda: now_ms * 1_000_000)
    found = {b"authorization": b"Bearer " + text.encode()}
    return door.enter(RequestHead(found, frozenset(), None, None, is_handshake=False, refuse=None))


async def test_a_day_that_is_used_up_is_told_in_a_bundle_and_holds_until_midnight(world: World) -> None:
    by_rows, by_calls = await token(world, "rows", rows=100), await token(world, "calls", calls=3)
    free = await token(world, "free")
    told: dict[str, frozenset[str]] = {}
    await use(world, by_rows[0], 50, 99)
    await use(world, by_calls[0], 2, 10_000)
    await use(world, free[0], 10_000, 10_000)
    before = await newest(world)
    await tell_used_up(world.console, told)
    assert (await newest(world)).version == before.version  # nothing is used up
    await use(world, by_rows[0], 1, 1)
    await use(world, by_calls[0], 1, 0)
    for memory in (told, told, {}):  # again, and after a restart
        await tell_used_up(world.console, memory)
        bundle = await newest(world)
        assert bundle.version == before.version + 1
    assert "token_budgets" in bundle.requires_features
    midnight_ms = (day_of(NOW_MS) + 1) * DAY_MS
    for text in (by_rows[1], by_calls[1]):
        assert entered(bundle, text, NOW_MS) == UsedUp(14 * 3600)
        assert entered(bundle, text, midnight_ms - 1) == UsedUp(1)
        assert isinstance(entered(bundle, text, midnight_ms), RequestHead)
    assert isinstance(entered(bundle, free[1], NOW_MS), RequestHead)


async def test_what_was_used_yesterday_or_in_another_project_does_not_count(world: World) -> None:
    token_id, _ = await token(world, "rows", rows=100)
    await use(world, token_id, 1, 1_000, day_of(NOW_MS) - 1)
    told = {(day_of(NOW_MS), 9, "token", token_id): [1, 0, 0, 1_000, 0]}
    await world.console.store.transaction(lambda tx: rollup.add(tx, world.console.new_id(), told))
    before = await newest(world)
    await tell_used_up(world.console, {})
    bundle = await newest(world)
    assert bundle.version == before.version
    assert "token_budgets" not in bundle.requires_features


async def test_calls_that_were_just_written_still_count_at_the_proxy(world: World) -> None:
    console = world.console
    token_id, text = await token(world, "calls", calls=3)

    async def left() -> int:
        admission = await console.agents.admit(text, partial(look_up, console, text))
        assert admission is not None
        assert admission.calls_left is not None
        return admission.calls_left - console.agents.use.calls(world.project, token_id, admission.day)

    assert await left() == 3
    for _ in range(2):
        console.agents.use.count(world.project, token_id, NOW_MS, is_call=True)
    assert await left() == 1
    await write_use(console)
    assert await left() == 1
