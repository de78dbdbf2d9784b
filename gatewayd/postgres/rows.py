"""Rows out of `COPY … TO STDOUT (FORMAT binary)` of a single text column, within the limits (contract 6, 11). No IO.

Layout: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
"""

from collections.abc import Callable
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

    NULL stands for a row that the server has left out because `max_bytes` was reached. `mask` is put over each row before it
    is counted; where one cannot be masked, `withheld` says why and no row is left.
    """

    def __init__(self, max_rows: int, max_bytes: int, mask: Callable[[bytes], bytes] | None = None) -> None:
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
        if is_whole and self._mask is None and len(found) <= self._rows_left and size <= self._bytes_left:
            self.rows += cast(list[bytes], found)
            self._rows_left -= len(found)
            self._bytes_left -= size
            return
        for row in found:
            if row is not None and self._mask is not None and self._rows_left:
                try:
                    row = self._mask(row)
                except WrongShape as wrong:
                    self.withheld = f"the rows could not be masked, so none is shown: {wrong}"
                    self.rows.clear()
                    self._rows_left = 0
            if row is not None and self._rows_left and len(row) <= self._bytes_left:
                self.rows.append(row)
                self._rows_left -= 1
                self._bytes_left -= len(row)
            else:
                self._rows_left = 0  # the rows after one that was left out are left out too: no holes
                self.is_truncated = True
