"""Deciding for the corridor: what it remembers and for how long, when it waits for a catalog, and that a bug in it denies."""

from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.catalog import Catalog, Column, Relation
from gatewayd.config.credentials import Secret
from gatewayd.corridor.deciding import Deciding
from gatewayd.corridor.gateway import Database, Masking
from gatewayd.judge import Verdict
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Limits, Policy
from gatewayd.postgres.catalog.refresher import UNKNOWN_S, CatalogRefresher
from gatewayd.postgres.pool import Pool

USERS = Relation(20001, "public", "users", "table", (Column("id", "integer"), Column("email", "text")))
LARGE = "SELECT 1 /* " + "x" * 20_000 + " */"


def policy(text: str = "table_access: {default: read}") -> Policy:
    single = load_policies(text, {}, mask_salt=True).single
    assert single is not None
    return single


def catalog(*relations: Relation, revision: int = 1) -> Catalog:
    return Catalog(revision=revision, database="shop", relations={(each.schema, each.name): each for each in relations})


class Catalogs:
    """What reading the catalog gives, one after the other, the last one again and again. `reads` counts."""

    def __init__(self, *each: Catalog) -> None:
        self.each = each
        self.reads = 0

    async def __call__(self, pool: Pool, revision: int) -> Catalog:
        found = self.each[min(self.reads, len(self.each) - 1)]
        self.reads += 1
        return msgspec.structs.replace(found, revision=revision)


class Court:
    """One database that nobody connects to, and a judge over it for each question, as each call has one."""

    def __init__(self, of: Policy, catalogs: Catalogs, masking: Masking) -> None:
        refresher = CatalogRefresher("shop", Pool("shop", "postgresql://127.0.0.1:1/none", Limits()), catalogs)
        self.database = Database("shop", Pool("shop", "postgresql://127.0.0.1:1/none", Limits()), refresher, of)
        self.catalogs = catalogs
        self.masking = masking

    def breaks(self, **parts: Any) -> None:
        """The policy in force has parts from now on that no policy can have: whatever reads them has a bug."""
        enforced = self.database.enforced
        self.database.enforced = msgspec.structs.replace(enforced, policy=msgspec.structs.replace(enforced.policy, **parts))

    def deciding(self) -> Deciding:
        return Deciding(self.database, self.masking, "query id")

    async def verdict(self, sql: str) -> Verdict:
        deciding = self.deciding()
        return await deciding.verdict(await deciding.known(sql))

    async def decide(self, sql: str) -> Decision:
        return (await self.verdict(sql)).decision


@pytest.fixture
async def open_court() -> Any:
    """Makes courts whose catalog is read by a task, as in the daemon."""
    async with trio.open_nursery() as nursery:

        async def make(of: Policy, *catalogs: Catalog, masking: Masking = Masking()) -> Court:  # noqa: B008
            court = Court(of, Catalogs(*catalogs), masking)
            await nursery.start(court.database.refresher.run)
            await trio.testing.wait_all_tasks_blocked()
            return court

        yield make
        nursery.cancel_scope.cancel()


async def test_a_text_that_came_before_is_decided_by_memory(open_court: Any) -> None:
    court = await open_court(policy(), catalog(USERS))
    first = await court.decide("SELECT id FROM users")
    assert isinstance(first, Allowed)
    assert await court.decide("SELECT id FROM users") is first


async def test_a_new_policy_is_what_the_next_call_is_held_to(open_court: Any) -> None:
    court = await open_court(policy(), catalog(USERS))
    deciding = court.deciding()
    court.database.enforce(policy("table_access: {default: deny}"))
    before = await deciding.verdict(await deciding.known("SELECT id FROM users"))
    assert isinstance(before.decision, Allowed), "a call keeps the policy that it began with"
    after = await court.decide("SELECT id FROM users")
    assert isinstance(after, Denied)
    assert after.policy_rule == "table_access"


async def test_an_unknown_name_waits_for_one_read_and_a_known_one_for_none(
    open_court: Any, mock_clock: trio.testing.MockClock
) -> None:
    court = await open_court(policy(), catalog(), catalog(USERS))
    reads = court.catalogs.reads
    mock_clock.jump(UNKNOWN_S)
    assert isinstance(await court.decide("SELECT 1"), Allowed)
    assert court.catalogs.reads == reads
    deciding = court.deciding()
    for column in ("id", "email"):
        await deciding.verdict(await deciding.known(f"SELECT {column} FROM users"))
    assert court.catalogs.reads == reads + 1
    assert deciding.catalog is court.database.catalog


async def test_a_decision_on_an_unknown_name_is_not_remembered(open_court: Any) -> None:
    court = await open_court(policy(), catalog())
    first = await court.decide("SELECT id FROM users")
    assert await court.decide("SELECT id FROM users") is not first


async def test_a_large_text_is_decided_as_a_small_one(open_court: Any) -> None:
    court = await open_court(policy(), catalog())
    assert isinstance(await court.decide(LARGE), Allowed)
    denied = await court.decide(LARGE + "; SELECT 2")
    assert isinstance(denied, Denied)
    assert denied.policy_rule == "multi_statement"


async def test_a_bug_while_deciding_denies(open_court: Any, capfd: pytest.CaptureFixture[str]) -> None:
    court = await open_court(policy(), catalog(USERS))
    court.breaks(table_access=None)
    denied = await court.decide("SELECT email FROM users WHERE email = 'canary'")
    assert isinstance(denied, Denied)
    assert denied.policy_rule == "internal_error"
    logged = capfd.readouterr().err
    assert "decision failed" in logged
    assert "canary" not in logged


async def test_a_bug_while_masking_denies(open_court: Any) -> None:
    masked = policy("column_masks: {users: {email: full-redact}}")
    court = await open_court(masked, catalog(USERS), masking=Masking(Secret("salt")))
    court.breaks(column_masks={("public", "users"): 7})
    denied = await court.decide("SELECT email FROM users")
    assert isinstance(denied, Denied)
    assert denied.policy_rule == "internal_error"


async def test_masks_are_planned_once_for_a_text(open_court: Any) -> None:
    masked = policy("column_masks: {users: {email: full-redact}}")
    court = await open_court(masked, catalog(USERS), masking=Masking(Secret("salt")))
    verdict = await court.verdict("SELECT email FROM users")
    assert isinstance(verdict.plan, PostExec)
    assert await court.verdict("SELECT email FROM users") is verdict
