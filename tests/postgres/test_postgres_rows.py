"""The COPY stream is read the same however it is cut, and nothing beyond the limits is kept."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.postgres.rows import SIGNATURE, CopyRows


def stream(rows: list[bytes | None]) -> bytes:
    tuples = (struct.pack("!hi", 1, -1 if row is None else len(row)) + (row or b"") for row in rows)
    return b"".join((SIGNATURE, bytes(8), *tuples, b"\xff\xff"))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [*sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.lists(st.binary(max_size=20), max_size=12), st.lists(st.integers(min_value=0, max_value=400), max_size=8))
def test_rows_are_the_same_in_one_chunk_or_many(rows: list[bytes], places: list[int]) -> None:
    reader = CopyRows(100, 10_000)
    for chunk in cut(stream(list(rows)), places):
        reader.feed(chunk)
    assert (reader.rows, reader.count, reader.is_truncated) == (rows, len(rows), False)


@given(st.lists(st.binary(max_size=20) | st.none(), max_size=12), st.integers(0, 12), st.integers(0, 120))
def test_kept_rows_are_the_longest_beginning_within_both_limits(rows: list[bytes | None], max_rows: int, max_bytes: int) -> None:
    reader = CopyRows(max_rows, max_bytes)
    reader.feed(stream(rows))
    kept: list[bytes] = []
    for row in rows:
        if row is None or len(kept) == max_rows or sum(map(len, kept)) + len(row) > max_bytes:
            break
        kept.append(row)
    assert reader.rows == kept
    assert reader.is_truncated == (len(kept) < len(rows))
    assert reader.count == len(rows)


def test_rows_are_bytes_whatever_the_chunks_are() -> None:
    reader = CopyRows(10, 100)
    reader.feed(bytearray(stream([b"a"])))
    assert type(reader.rows[0]) is bytes


@pytest.mark.parametrize("data", [b"PGCOPX" + bytes(20), SIGNATURE + bytes(8) + struct.pack("!hi", 2, 1) + b"x"])
def test_another_stream_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"COPY stream|one field"):
        CopyRows(1, 1).feed(data)
