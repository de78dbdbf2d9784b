"""Any text gets a decision, and a fingerprint that literals and format do not change; what the generator covers."""

from random import Random

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.properties import coverage
from tests.properties.mutations import reformatted, tokens
from tests.properties.policies import ALL, HIDING
from tests.properties.statements import generate
from tests.properties.texts import any_text, decides, fingerprint_differs
from tests.properties.world import Servers, World, connected

POLICIES = sorted(ALL)


@pytest.fixture(scope="module")
def world(pair: Servers) -> World:
    """What a database holds; its connections are closed."""

    async def known() -> World:
        async with connected(pair, HIDING.limits) as found:
            return found

    return trio.run(known)


@settings(max_examples=300)
@given(sql=st.text(), policy=st.sampled_from(POLICIES))
@example(sql="\ud800", policy="hiding")
@example(sql="SELECT '\x00'", policy="hiding")
def test_any_text_gets_a_decision(world: World, sql: str, policy: str) -> None:
    assert decides(sql, ALL[policy], world.catalog) is None


@settings(max_examples=200)
@given(data=st.binary(max_size=300), policy=st.sampled_from(POLICIES))
def test_any_bytes_get_a_decision(world: World, data: bytes, policy: str) -> None:
    assert decides(data.decode("utf-8", "surrogateescape"), ALL[policy], world.catalog) is None


@settings(max_examples=150)
@given(chance=st.randoms(use_true_random=False), policy=st.sampled_from(POLICIES))
def test_broken_statements_and_word_soup_get_a_decision(world: World, chance: Random, policy: str) -> None:
    assert decides(any_text(chance, world.model), ALL[policy], world.catalog) is None


@pytest.mark.parametrize("seed", range(20))
def test_long_texts_get_a_decision(world: World, seed: int) -> None:
    sql = any_text(Random(seed), world.model, 100_000)
    assert decides(sql, ALL[POLICIES[seed % len(POLICIES)]], world.catalog) is None


def test_fingerprints_do_not_depend_on_literals_or_format(world: World) -> None:
    found = [pair for seed in range(600) if (pair := fingerprint_differs(seed, world.model)) is not None]
    assert found == []


def test_another_format_keeps_the_statement() -> None:
    sql = "SELECT a.x, 'It''s' FROM t AS a WHERE a.x >= 1 AND a.y = ANY (ARRAY[1, 2])"
    texts = {reformatted(sql, Random(seed)) for seed in range(30)}
    assert len(texts) > 20
    for text in texts:
        assert text is not None
        statement = analyze(text)
        assert isinstance(statement, Statement)
        assert [each.name for each in statement.relations] == ["t"]


def test_generated_statements_are_what_their_seed_says(world: World) -> None:
    one = [generate(Random(seed), Random(seed), world.model) for seed in range(50)]
    assert one == [generate(Random(seed), Random(seed), world.model) for seed in range(50)]
    assert sum(bool(tokens(sql)) for sql in one) > 45


def test_the_generator_reaches_nearly_every_node_of_the_grammar(world: World) -> None:
    reached = coverage.reached(world.model, 5000)
    assert coverage.in_queries() - reached <= coverage.NOT_GENERATED
