"""Rows out of `COPY … TO STDOUT (FORMAT binary)` of a single text column, within the limits (contract 6, 11). No IO.

Layout: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from struct import Struct
from typing import Final, cast

from gatewayd.masking.results import WrongShape

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_HEADER_BYTES: Final = len(SIGNATURE) + 8  # flags and the length of a header extension, which PostgreSQL never writes
_TUPLE: Final = Struct("!hi")  # field count, length of the first field
_TUPLE_BYTES: Final = _TUPLE.size
_END: Final = b"\xff\xff"


class CopyRows:
    """Feed it chunks as they arrive, cut anywhere. Keeps rows until the first that is over a limit; counts all.

    NULL stands for a row that the server has left out because `max_bytes` was reached. `mask` is put over the rows before they
    are counted; where one cannot be masked, `withheld` says why and no row is left.
    """

    def __init__(self, max_rows: int, max_bytes: int, mask: Callable[[Sequence[bytes]], list[bytes]] | None = None) -> None:
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
        found: list[bytes | None] = []
        begun, end, is_whole = at, len(data), True
        unpack, take = _TUPLE.unpack_from, found.append  # a thousand rows and more a call: the loop does nothing else
        while at + _TUPLE_BYTES <= end:
            fields, length = unpack(data, at)
            if fields != 1:
                raise ValueError(f"expected rows of one field, found {fields}")
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
        self._keep(found, at - begun, is_whole=is_whole)
        self._rest = data[at:] if at < end and data[at:] != _END else b""

    def _keep(self, found: list[bytes | None], size: int, *, is_whole: bool) -> None:
        """`size` is how many bytes of the stream they took; `is_whole` when no NULL is among them."""
        self.count += len(found)
        size -= _TUPLE_BYTES * len(found)
        if not is_whole or self._mask is not None or len(found) > self._rows_left or size > self._bytes_left:
            found, size = self._within_limits(found)
        self.rows += cast(list[bytes], found)
        self._rows_left -= len(found)
        self._bytes_left -= size

    def _within_limits(self, found: list[bytes | None]) -> tuple[list[bytes | None], int]:
        """The rows to keep, masked, and their bytes. After the first that is left out all are: no holes."""
        whole = found[: found.index(None)] if None in found else found
        rows = cast(list[bytes], whole[: self._rows_left])
        is_cut = len(rows) < len(found)
        if self._mask is not None:
            try:
                rows = self._mask(rows)
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
        return cast(list[bytes | None], rows), sum(map(len, rows))
