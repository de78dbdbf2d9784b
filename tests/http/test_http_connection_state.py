"""The table of a connection's states: whole, and nothing in it that cannot happen."""

from typing import get_args

import h11
import pytest

from gatewayd.http.connection_state import TABLE, ConnectionState, Step, after


def test_every_state_is_in_the_table_and_can_be_reached() -> None:
    assert set(TABLE) == set(get_args(ConnectionState))
    reached: set[ConnectionState] = {"idle"}
    while more := {follows for state in reached for follows in TABLE[state].values()} - reached:
        reached |= more
    assert reached == set(TABLE)


def test_every_step_is_taken_somewhere() -> None:
    assert {step for steps in TABLE.values() for step in steps} == set(get_args(Step))


def test_only_a_closing_connection_has_no_way_on() -> None:
    assert [state for state, steps in TABLE.items() if not steps] == ["closing"]


@pytest.mark.parametrize("state", TABLE)
def test_a_step_that_the_table_does_not_have_raises(state: ConnectionState) -> None:
    for step in get_args(Step):
        if step not in TABLE[state]:
            with pytest.raises(h11.LocalProtocolError):
                after(state, step)
