"""Rows out of `COPY … TO STDOUT (FORMAT binary)`: a text each, within the limits (decisions 6, 11). No IO.

Layout: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, cast

from gatewayd.masking.results.post_exec import RowMask, WrongShape

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_HEADER_BYTES: Final = len(SIGNATURE) + 8  # flags and the length of a header extension, which PostgreSQL never writes
_TUPLE: Final = struct.Struct("!hi")  # field count, length of the first field
_TUPLE_BYTES: Final = _TUPLE.size
_LENGTH: Final = struct.Struct("!i")  # of a field that is not the first
_END: Final = b"\xff\xff"

_Fields = list[bytes | None]


class CopyRows:
    """Feed it chunks as they arrive, cut anywhere. Keeps rows until the first that is over a limit; counts all.

    NULL stands for a row that the server has left out because `max_bytes` was reached. `mask` is put over the rows before they
    are counted, by the texts that come in further fields; where that cannot be done, `withheld` says why and no row is left.
    """

    def __init__(self, max_rows: int, max_bytes: int, mask: RowMask | None = None) -> None:
        self.rows: list[bytes] = []
        self.count = 0
        self.is_truncated = False
        self.withheld: str | None = None
        self._mask = mask
        self._rows_left = max_rows
        self._bytes_left = max_bytes
        self._rest = b""
        self._is_begun = False

    def feed(self, chunk: bytes | bytearray) -> None:
        """Raises ValueError when it is no such COPY stream."""
        data = self._rest + bytes(chunk)  # asyncpg gives a bytearray now and then, and rows are kept
        at = 0
        if not self._is_begun:
            if len(data) < _HEADER_BYTES:
                self._rest = data
                return
            if not data.startswith(SIGNATURE):
                raise ValueError("not a binary COPY stream")
            self._is_begun = True
            at = _HEADER_BYTES
        begun = at
        if self._mask is None:
            rows, at, is_whole = _rows(data, at)
            self._keep(rows, at - begun - _TUPLE_BYTES * len(rows), is_whole=is_whole)
        else:
            fields = 1 + self._mask.texts
            found, at = _rows_and_texts(data, at, fields)
            self._keep(found[::fields], 0, [found[field::fields] for field in range(1, fields)], is_whole=False)
        self._rest = data[at:] if at < len(data) and data[at:] != _END else b""

    def _keep(self, found: _Fields, size: int, texts: Sequence[_Fields] = (), *, is_whole: bool) -> None:
        """`size` is how many bytes they are; `is_whole` when no NULL is among them and none is to be masked."""
        self.count += len(found)
        if not is_whole or len(found) > self._rows_left or size > self._bytes_left:
            found, size = self._within_limits(found, texts)
        self.rows += cast(list[bytes], found)
        self._rows_left -= len(found)
        self._bytes_left -= size

    def _within_limits(self, found: _Fields, texts: Sequence[_Fields]) -> tuple[_Fields, int]:
        """The rows to keep, masked, and their bytes. After the first that is left out all are: no holes."""
        whole = found[: found.index(None)] if None in found else found
        rows = cast(list[bytes], whole[: self._rows_left])
        is_cut = len(rows) < len(found)
        if self._mask is not None:
            try:
                rows = self._mask(rows, [column[: len(rows)] for column in texts])
            except WrongShape as wrong:
                self.withheld = f"the rows could not be masked, so none is shown: {wrong}"
                self.rows.clear()
                rows, is_cut = [], True
        if sum(map(len, rows)) > self._bytes_left:
            rows = rows[: bisect_right(list(accumulate(map(len, rows))), self._bytes_left)]
            is_cut = True
        if is_cut:
            self.is_truncated = True
            self._rows_left = len(rows)
        return cast(_Fields, rows), sum(map(len, rows))


def _rows(data: bytes, at: int) -> tuple[_Fields, int, bool]:
    """The whole tuples of one field from `at` on, where the rest begins, and whether none is NULL."""
    found: _Fields = []
    end, is_whole = len(data), True
    unpack, take = _TUPLE.unpack_from, found.append  # a thousand rows and more a call: the loop does nothing else
    while at + _TUPLE_BYTES <= end:
        fields, length = unpack(data, at)
        if fields != 1:
            raise ValueError(f"expected tuples of one field, found {fields}")
        start = at + _TUPLE_BYTES
        if length < 0:
            at = start
            take(None)
            is_whole = False
            continue
        after = start + length
        if after > end:
            break
        take(data[start:after])
        at = after
    return found, at, is_whole


def _rows_and_texts(data: bytes, at: int, fields: int) -> tuple[_Fields, int]:
    """The fields of the whole tuples of so many fields from `at` on, one after the other, and where the rest begins."""
    found: _Fields = []
    end, whole, others = len(data), 0, range(fields - 1)
    unpack_first, unpack, take = _TUPLE.unpack_from, _LENGTH.unpack_from, found.append
    try:
        while at + _TUPLE_BYTES <= end:
            count, length = unpack_first(data, at)
            if count != fields:
                raise ValueError(f"expected tuples of {fields} fields, found {count}")
            start = at + _TUPLE_BYTES
            after = start + length if length > 0 else start
            take(data[start:after] if length >= 0 else None)
            for _ in others:
                (length,) = unpack(data, after)
                start = after + 4
                after = start + length if length > 0 else start
                take(data[start:after] if length >= 0 else None)
            if after > end:
                break
            at = after
            whole += fields
    except struct.error:  # a length that is still to come
        pass
    return found[:whole], at
