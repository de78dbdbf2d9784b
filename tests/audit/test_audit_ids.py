"""ULIDs: text form, order, and that nothing the clock does makes an id fall."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.audit.ids import RisingIds, is_ulid, new_ulid, ulid_text, ulid_value

MILLISECONDS = st.integers(0, (1 << 48) - 2)


@given(st.integers(0, (1 << 128) - 1))
def test_text_and_value_are_two_forms_of_one_number(value: int) -> None:
    text = ulid_text(value)
    assert len(text) == 26
    assert ulid_value(text) == ulid_value(text.lower()) == value


@given(st.integers(0, (1 << 128) - 1), st.integers(0, (1 << 128) - 1))
def test_texts_sort_as_the_numbers_do(first: int, second: int) -> None:
    assert (ulid_text(first) < ulid_text(second)) == (first < second)


def test_the_example_of_the_ulid_page_is_read_as_its_time() -> None:
    value = ulid_value("01ARYZ6S41TSV4RRFFQ69G5FAV")
    assert value is not None
    assert value >> 80 == 1469918176385


NOT_ULIDS = {
    "empty": "",
    "cursor": "0",
    "above the largest": "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    "short": "01ARYZ6S41TSV4RRFFQ69G5FA",
    "long": "01ARYZ6S41TSV4RRFFQ69G5FAVX",
    "letter left out": "01ARYZ6S41TSV4RRFFQ69G5FAI",
    "not ASCII": "01ARYZ6S41TSV4RRFFQ69G5FAÉ",
    "blank": "01ARYZ6S41TSV4RRFFQ69G5FA ",
}


@pytest.mark.parametrize("text", NOT_ULIDS.values(), ids=NOT_ULIDS)
def test_other_texts_are_no_ulids(text: str) -> None:
    assert not is_ulid(text)


@given(MILLISECONDS, st.binary(min_size=10, max_size=10))
def test_a_fresh_id_holds_time_and_randomness(now_ms: int, entropy: bytes) -> None:
    assert ulid_value(new_ulid(now_ms, lambda _: entropy)) == now_ms << 80 | int.from_bytes(entropy, "big")


@given(st.lists(st.integers(0, 5), min_size=2, max_size=200), st.none() | MILLISECONDS)
def test_event_ids_rise_whatever_the_clock_does(clock: list[int], largest_ms: int | None) -> None:
    above = None if largest_ms is None else new_ulid(largest_ms, lambda size: b"\xff" * size)
    ids = RisingIds(lambda size: b"\xff" * size, above)
    made = [ids.next(now_ms) for now_ms in clock]
    assert sorted(set(made)) == made
    assert above is None or made[0] > above


def test_an_id_carries_the_time_while_the_clock_rises() -> None:
    ids = RisingIds(os.urandom)
    times = [ulid_value(ids.next(now_ms)) or 0 for now_ms in (5, 6, 6, 9)]
    assert [value >> 80 for value in times] == [5, 6, 6, 9]


@pytest.mark.parametrize("above", ["zero", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"])
def test_ids_cannot_start_above_what_leaves_no_room(above: str) -> None:
    with pytest.raises(ValueError, match=r"ULID|left"):
        RisingIds(os.urandom, above)


def test_two_copies_of_a_file_that_go_on_from_one_id_give_ids_of_their_own() -> None:
    """Restored from a backup, under a clock that stands behind the last id."""
    above = new_ulid(1_000_000, os.urandom)
    copies = [RisingIds(os.urandom, above) for _ in range(2)]
    first, second = ([ids.next(5) for _ in range(1000)] for ids in copies)
    assert not set(first) & set(second)
    assert sorted({*first, *second, above})[0] == above
