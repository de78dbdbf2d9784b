"""The leaf is made twice, by the writer from an event and by a reader from the stored columns, and always comes out the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.audit.events import Agent, Attempted, Decided, Event, Executed, Failed, Payload, PolicyReloaded, Query, QueryId
from gatewayd.audit.leaf import PayloadRefused, commitment_of, erased_payload, facts_of, leaf_of
from gatewayd.audit.rows import row_of

ANY = st.text(max_size=20)  # lone surrogates too
MAYBE = st.none() | ANY
COUNT = st.integers(0, 2**40)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | ANY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY, inner, max_size=3),
    max_leaves=8,
)
PAYLOADS: st.SearchStrategy[Payload] = st.one_of(
    st.builds(Attempted, ANY, ANY, MAYBE),
    st.builds(Decided, st.sampled_from(["ALLOW", "DENY"]), MAYBE, st.none() | st.tuples(ANY), MAYBE, MAYBE, MAYBE),
    st.builds(Executed, COUNT, COUNT, masking_reason=MAYBE, columns_masked=st.none() | st.tuples(ANY)),
    st.builds(Failed, COUNT, COUNT, ANY, ANY),
    st.builds(PolicyReloaded, ANY, JSON, st.tuples(ANY), st.tuples(ANY), JSON, JSON),
)
AGENTS = st.builds(Agent, MAYBE, MAYBE, MAYBE)


@given(PAYLOADS, AGENTS, MAYBE, ANY)
def test_the_writers_halves_are_the_readers(payload: Payload, agent: Agent, intent: str | None, database: str) -> None:
    database = database.encode(errors="backslashreplace").decode()
    agent = Agent(agent.name, agent.version, agent.token_id and "T")
    row = row_of(Event(Query(QueryId("Q"), database, agent, intent), 1234, payload))
    facts = facts_of(("ID", *row.columns))
    assert row.envelope("ID") == facts.envelope
    assert row.details == facts.details
    assert not facts.is_erased


@given(PAYLOADS, MAYBE)
def test_erasing_leaves_the_envelope_and_no_detail(payload: Payload, intent: str | None) -> None:
    columns = row_of(Event(Query(QueryId("Q"), "shop", Agent(), intent), 1234, payload)).columns
    erased = (*columns[:5], None if columns[5] is None else "", *columns[6:9], erased_payload(columns[9]), columns[10])
    before, after = facts_of(("ID", *columns)), facts_of(("ID", *erased))
    assert after.envelope == before.envelope
    assert after.is_erased
    assert b'""' in after.details or after.details == b"{}"
    assert erased_payload(erased[9]) == erased[9]


@pytest.mark.parametrize(
    "payload",
    [
        '{"b":1,"a":2}',
        '{"a":1,"a":1}',
        '{"a":1, "b":2}',
        '{"a":"\\u0041"}',
        '{"a":"\\/"}',
        '{"a":-0}',
        '{"a":1.50}',
        '{"a":NaN}',
        "[]",
        "1",
        "",
        "{",
        '{"a":1}x',
        '{"a":"\ud800"}',
        '{"a":' + "[" * 5000 + "]" * 5000 + "}",
    ],
)
def test_a_payload_that_two_readers_could_see_differently_is_refused(payload: str) -> None:
    with pytest.raises(PayloadRefused):
        facts_of(("ID", "Q", "T", "D", None, None, None, None, 1, "DECIDED", payload, 3))


def test_the_page_of_the_format_gives_this_leaf() -> None:
    payload = '{"sql_fingerprint":"0123456789abcdef","sql_raw":"SELECT 1"}'
    ids = ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW")
    columns = (*ids, "__self_host__", "__default__", "claude-code", "1.2", "look", None, 1700000000000, "ATTEMPTED", payload, 3)
    facts = facts_of(columns)
    assert facts.details == b'{"agent_intent":"look","sql_raw":"SELECT 1"}'
    commitment = commitment_of(bytes(range(32)), facts.details)
    assert len(commitment) == 32
    assert leaf_of(1, facts.envelope, commitment) != leaf_of(2, facts.envelope, commitment)
