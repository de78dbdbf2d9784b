"""The answer to a COPY is read the same however it is cut and divided into messages, and nothing else passes for one."""

import struct

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.postgres.copying import CopyAnswer, simple_query
from gatewayd.postgres.rows import CopyRows
from tests.postgres.test_postgres_rows import cut, stream


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


BEGIN = message(b"C", b"BEGIN\0")
NOTICE = message(b"N", b"C00000\0Mx\0\0")


def answer(data: list[bytes], status: bytes = b"I") -> bytes:
    return b"".join(
        (
            message(b"H", b"\x01\x00\x01\x00\x01"),
            *(message(b"d", each) for each in data),
            message(b"c"),
            message(b"C", b"COPY 7\0"),
            message(b"Z", status),
        )
    )


def read(data: bytes, places: list[int], rows: CopyRows) -> tuple[CopyAnswer, bytes]:
    aside = bytearray()
    reader = CopyAnswer(rows, aside.extend)
    for chunk in cut(data, places):
        if reader.is_complete:
            aside += chunk
        else:
            reader.feed(chunk)
    return reader, bytes(aside)


PLACES = st.lists(st.integers(min_value=0, max_value=1000), max_size=8)


@given(st.lists(st.binary(max_size=20) | st.none(), max_size=12), st.integers(0, 12), st.integers(0, 120), PLACES, st.booleans())
def test_rows_are_those_of_the_stream(
    rows: list[bytes | None], max_rows: int, max_bytes: int, places: list[int], as_postgres: bool
) -> None:
    whole = stream(rows)
    if as_postgres:  # the head with the first row, then a message a row
        ends = [len(stream(rows[: number + 1])) - 2 for number in range(len(rows))]
        parts = [whole[start:end] for start, end in zip([0, *ends], [*ends, len(whole)], strict=True)]
    else:
        parts = cut(whole, [place // 2 for place in places])
    expected = CopyRows(max_rows, max_bytes)
    expected.feed(whole)
    found = CopyRows(max_rows, max_bytes)
    reader, aside = read(BEGIN + NOTICE + answer(parts) + NOTICE, places, found)
    assert (found.rows, found.count, found.is_truncated) == (expected.rows, expected.count, expected.is_truncated)
    assert (reader.is_complete, reader.tag, reader.error, reader.in_transaction) == (True, "COPY 7", None, False)
    assert aside == NOTICE * 2


@given(PLACES)
def test_an_error_is_what_asyncpg_would_raise(places: list[int]) -> None:
    text = b"SERROR\0VERROR\0C22012\0Mdivision by zero\0P8\0Hhint\0Dd\xc3\xa9tail\0\0"
    reader, _ = read(BEGIN + message(b"E", text) + message(b"Z", b"E"), places, CopyRows(10, 100))
    assert isinstance(reader.error, asyncpg.DivisionByZeroError)
    assert reader.error.args == ("division by zero",)
    assert (reader.error.sqlstate, reader.error.position, reader.error.detail, reader.error.hint) == (
        "22012",
        "8",
        "détail",
        "hint",
    )
    assert (reader.is_complete, reader.in_transaction) == (True, True)


@pytest.mark.parametrize("data", [message(b"D", b"\x00\x01"), message(b"G", b"\x00"), b"d\x00\x00\x00\x03", b"Z\xff\xff\xff\xff"])
def test_any_other_message_is_refused(data: bytes) -> None:
    with pytest.raises(asyncpg.InternalClientError):
        CopyAnswer(CopyRows(1, 1), list).feed(data)


def test_a_long_row_is_put_together_once() -> None:
    rows = CopyRows(10, 10_000_000)
    row = bytes(1_000_000)
    reader, _ = read(answer([stream([row, row])]), list(range(0, 2_000_000, 65536)), rows)
    assert reader.is_complete
    assert rows.rows == [row, row]


def test_a_query_is_sent_as_utf8_with_its_length() -> None:
    assert simple_query("é") == b"Q\x00\x00\x00\x07\xc3\xa9\x00"
