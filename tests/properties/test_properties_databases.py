"""Generated statements on two real databases that differ only in what the policies hide (decision 3.10). The long run: run.py."""

from random import Random

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayd.policy.decide.outcomes import Allowed, Decision
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.properties.policies import HIDING, HIDING_SOMETHING
from tests.properties.properties import Counts, Finding, decision, examine, examine_batch
from tests.properties.shrink import shrink
from tests.properties.statements import generate
from tests.properties.world import Servers, World, connected

BATCH = 40
LIMITS = msgspec.structs.replace(HIDING.limits, statement_timeout_ms=60_000, lock_timeout_ms=60_000)
"""No statement here runs for long; on a busy machine one that is cut off would not count as answered."""


async def _examined(pair: Servers, policy: str, seeds: range, counts: Counts) -> list[Finding]:
    findings = []
    async with connected(pair, LIMITS) as world:
        for start in seeds[::BATCH]:
            chances = [Random(seed) for seed in range(start, start + BATCH)]
            batch = [(generate(chance, chance, world.model, 4), policy) for chance in chances]
            findings += await examine_batch(world, batch, counts)
    return findings


@pytest.mark.parametrize(("policy", "least"), [("hiding", 90), ("listed", 50), ("writing", 90), ("open", 90)])
async def test_generated_statements_hold_to_the_properties(pair: Servers, policy: str, least: int) -> None:
    counts = Counts()
    assert await _examined(pair, policy, range(400), counts) == []
    assert counts["reads answered"] + counts["writes answered"] >= least


@settings(max_examples=40)
@given(shape=st.randoms(use_true_random=False), policy=st.sampled_from(sorted(HIDING_SOMETHING)))
def test_statements_that_hypothesis_draws_hold_to_them(pair: Servers, shape: Random, policy: str) -> None:
    async def examined() -> list[Finding]:
        async with connected(pair, LIMITS) as world:
            return await examine(world, generate(shape, Random(1), world.model), policy)

    assert trio.run(examined) == []


def _lets_reads_through(sql: str, policy: str, world: World) -> Decision:
    statement = analyze(sql)
    if isinstance(statement, Statement) and statement.category == "read" and statement.form == "query":
        return Allowed(statement, (), "")
    return decision(sql, policy, world)


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT code FROM secrets", {"interference"}),
        ("SELECT count(*) FROM events", {"interference"}),
        ("EXPLAIN SELECT * FROM secrets", set()),
        ("SELECT max(code) FROM spy_deeper", {"interference"}),
        ("SELECT spy()", {"interference", "disagreement"}),
        ("SELECT u.spy_salary FROM users u", {"interference", "disagreement"}),
        ("SELECT last_value FROM secrets_number", {"interference"}),
        ("SELECT reltuples FROM pg_class WHERE relname = 'secrets'", {"interference"}),
        ("SELECT bump()", {"wall", "effect", "disagreement"}),
        ("TABLE bumping", {"wall", "effect"}),
        ("SELECT ticket()", {"wall", "effect", "disagreement"}),
        ("SELECT lo_put(77001, 0, 'x')", {"wall", "effect", "disagreement"}),
        ("SELECT pg_advisory_lock(7)", {"effect", "disagreement"}),
        ("SELECT set_config('work_mem', '5MB', false)", {"effect", "disagreement"}),
        ("SELECT pg_notify('ch', 'x')", {"effect", "disagreement"}),
        ("SELECT pg_current_xact_id()", {"effect", "disagreement"}),
    ],
)
async def test_a_gateway_that_lets_reads_through_is_noticed(pair: Servers, sql: str, kinds: set[str]) -> None:
    async with connected(pair, LIMITS) as world:
        assert {each.kind for each in await examine(world, sql, "hiding")} == set()
        assert {each.kind for each in await examine(world, sql, "hiding", decide=_lets_reads_through)} >= kinds
        await world.one.renew()
        await world.restore()


async def test_a_counterexample_is_made_small(pair: Servers) -> None:
    async with connected(pair, LIMITS) as world:

        async def fails(sql: str) -> bool:
            return any(each.kind == "interference" for each in await examine(world, sql, "hiding", decide=_lets_reads_through))

        sql = "SELECT s.code AS c, 1 AS one FROM users, secrets AS s WHERE s.id > 0 ORDER BY 1"
        assert len(await shrink(sql, fails)) <= len("SELECT s FROM users, secrets s") + 8
