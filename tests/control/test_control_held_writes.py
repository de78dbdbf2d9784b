"""What the audit says of a query that was held: what became of its request, and which query ran in its place."""

import csv
import io
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gatewayd.approvals.messages import Approved, Pending
from gatewayd.control.approvals import answer as answers
from gatewayd.control.approvals.attempts import HeldWrite, held_writes
from gatewayd.control.approvals.decide import WriteDecision, decide
from gatewayd.control.approvals.sweep import sweep
from gatewayd.control.audit.export import queries_as_csv
from gatewayd.control.audit.stored import StoredEvent
from gatewayd.control.audit.summary import QuerySummary, summary_of
from gatewayd.control.console import Console
from tests.control.approval_world import World, make_world
from tests.control.clock import MINUTE, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def world(settings: Any, store: Any, clock: Clock) -> World:
    return await make_world(Console(settings, store, clock=clock))


async def held(world: World, sql: str = "DELETE FROM orders WHERE id = 7") -> tuple[str, str]:
    """A query that asked and is told to wait, and its request."""
    ask = world.ask(sql)
    found = await answers.answer(world.console, world.asker, ask)
    assert isinstance(found, Pending)
    return ask.query_id, found.approval_id


async def said(world: World, query_id: str) -> HeldWrite | None:
    return (await held_writes(world.console, world.project, [query_id])).get(query_id)


async def test_a_held_query_says_that_it_waits_and_then_which_one_ran(world: World) -> None:
    first, approval = await held(world)
    joined, same = await held(world)
    assert same == approval
    assert await said(world, first) == await said(world, joined) == HeldWrite(approval, "pending", None, None)
    await decide(await world.call("Ben"), approval, WriteDecision("approve"))
    assert await said(world, first) == HeldWrite(approval, "approved", "Ben", None)
    again = world.ask()
    assert isinstance(await answers.answer(world.console, world.asker, again), Approved)
    ran = HeldWrite(approval, "consumed", "Ben", again.query_id)
    assert await said(world, first) == await said(world, joined) == await said(world, again.query_id) == ran


async def test_a_held_query_says_that_it_was_denied_or_that_nobody_answered(world: World, clock: Clock) -> None:
    denied, approval = await held(world)
    await decide(await world.call("Ben"), approval, WriteDecision("deny", "no"))
    expired, other = await held(world, "DELETE FROM orders")
    clock.ms += 30 * MINUTE
    assert await said(world, denied) == HeldWrite(approval, "denied", "Ben", None)
    assert await said(world, expired) == HeldWrite(other, "expired", None, None)
    assert await said(world, world.console.new_id()) is None


async def test_it_is_forgotten_with_its_request_and_is_no_other_project_s(world: World, clock: Clock) -> None:
    query_id, _ = await held(world)
    assert await held_writes(world.console, world.console.new_id(), [query_id]) == {}
    clock.ms += 92 * 24 * 60 * MINUTE
    await sweep(world.console)
    assert await said(world, query_id) is None


def event(details: str | None, salt: bytes | None = b"") -> StoredEvent:
    payload, one = '{"sql_fingerprint":"0","sql_raw":""}', "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    return StoredEvent(
        one, one, 1, one, one, 1, 1, "ATTEMPTED", "t", "main", "a", None, False, None, payload, 3, b"", False, details, salt
    )


def summary(sql: str, salt: bytes | None = b"") -> QuerySummary:
    return summary_of([event(None if salt is None else f'{{"sql_raw":"{sql}"}}', salt)])


def test_an_empty_statement_is_not_one_that_is_not_held() -> None:
    assert summary("").sql == ""
    assert summary("", None).sql is None
    assert summary("SELECT 1").sql == "SELECT 1"


@pytest.mark.parametrize("sql", ["SELECT 1", '\\\\ü"' * 3000, "\x01" * 9000, "x" * 20_000])
def test_a_long_statement_is_cut_where_a_list_shows_less(sql: str) -> None:
    whole = msgspec.json.encode({"agent_intent": "why", "sql_raw": sql}).decode()
    for most in range(1000, 1008):
        cut = event(details=whole[:most]).closed(most)
        shown = summary_of([cut]).sql
        assert shown is not None
        assert shown.endswith("…") if len(whole) > most else shown == sql
        assert sql.startswith(shown.removesuffix("…"))
        assert len(shown) > 100 or sql == "SELECT 1"


def test_an_export_says_what_became_of_it() -> None:
    one = replace(summary("DELETE FROM orders"), held=HeldWrite("a", "consumed", "Ben", "b"))
    head, row = csv.reader(io.StringIO(queries_as_csv([one]).decode()))
    found = dict(zip(head, row, strict=True))
    assert (found["outcome"], found["held"], found["ran_as"]) == ("undecided", "consumed", "b")
