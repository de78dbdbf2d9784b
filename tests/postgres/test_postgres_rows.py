"""The COPY stream is read the same however it is cut, and nothing beyond the limits is kept."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.masking.results.post_exec import RowMask
from gatewayd.masking.transforms.in_python import Transform
from gatewayd.postgres.execute.copy_rows import SIGNATURE, CopyRows

FIVE_BYTES = RowMask([Transform(lambda column: [b"12345"] * len(column))])


def stream(rows: list[bytes | None]) -> bytes:
    tuples = (struct.pack("!hi", 1, -1 if row is None else len(row)) + (row or b"") for row in rows)
    return b"".join((SIGNATURE, bytes(8), *tuples, b"\xff\xff"))


def with_texts(rows: list[list[bytes | None]]) -> bytes:
    def field(value: bytes | None) -> bytes:
        return struct.pack("!i", -1 if value is None else len(value)) + (value or b"")

    tuples = (struct.pack("!h", len(row)) + b"".join(map(field, row)) for row in rows)
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


@given(st.data(), st.integers(1, 3), st.lists(st.integers(min_value=0, max_value=400), max_size=8))
def test_texts_go_with_their_rows_however_the_stream_is_cut(draw: st.DataObject, texts: int, places: list[int]) -> None:
    value = st.none() | st.binary(max_size=20)
    given_rows = draw.draw(st.lists(st.lists(value, min_size=texts, max_size=texts), max_size=8))
    marks = b"".join(b'"\\u0001gatewayd"' for _ in range(texts))
    mask = RowMask([Transform(lambda column: [text.hex().encode() for text in column])] * texts)
    reader = CopyRows(100, 10_000, mask)
    for chunk in cut(with_texts([[marks, *row] for row in given_rows]), places):
        reader.feed(chunk)
    expected = [b"".join(b"null" if text is None else text.hex().encode() for text in row) for row in given_rows]
    assert (reader.rows, reader.count, reader.withheld) == (expected, len(expected), None)


def test_the_limits_count_masked_rows() -> None:
    row = b'"\\u0001gatewayd"'
    for max_rows, max_bytes, kept in ((9, 15, 3), (9, 14, 2), (2, 99, 2), (9, 99, 4)):
        reader = CopyRows(max_rows, max_bytes, FIVE_BYTES)
        reader.feed(with_texts([[row, b"x" * 100], [row, b""], [row, b""], [row, b"y"], [None, None]]))
        assert (reader.rows, reader.count, reader.is_truncated) == ([b"12345"] * kept, 5, True)


def test_a_value_that_looks_like_a_mark_withholds_all() -> None:
    row = b'"\\u0001gatewayd"'
    reader = CopyRows(9, 99, FIVE_BYTES)
    reader.feed(with_texts([[row, b"x"]])[:-2])
    reader.feed(with_texts([[row + row, b"x"], [row, b"y"]])[19:])
    assert (reader.rows, reader.count, reader.is_truncated) == ([], 3, True)
    assert reader.withheld is not None


def test_rows_are_bytes_whatever_the_chunks_are() -> None:
    reader = CopyRows(10, 100)
    reader.feed(bytearray(stream([b"a"])))
    assert type(reader.rows[0]) is bytes


@pytest.mark.parametrize("data", [b"PGCOPX" + bytes(20), SIGNATURE + bytes(8) + struct.pack("!hi", 2, 1) + b"x"])
def test_another_stream_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"COPY stream|one field"):
        CopyRows(1, 1).feed(data)
    with pytest.raises(ValueError, match=r"COPY stream|3 fields"):
        CopyRows(1, 1, RowMask([Transform(list)] * 2)).feed(data)
