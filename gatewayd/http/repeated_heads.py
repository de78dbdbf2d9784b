"""Request heads that a connection repeats: recognised by their bytes instead of parsed again.

Nothing is parsed here. A head that h11 has read is kept as bytes, cut at the digits of its Content-Length. Data with the same
bytes on both sides and digits between them is the same request with another length, because h11 reads a head by its bytes alone.
Data that differs anywhere else, or is not exactly one whole request, goes to h11.
"""

import re
from typing import Final, final

from gatewayd.http.exchange import HttpHead

_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?([0-9]{1,7})\r\n", re.IGNORECASE)
_MOST_DIGITS: Final = 7
_MOST_BYTES: Final = 4096  # kept for every open connection


@final
class RepeatedHead:
    """A head that may be repeated: its bytes before and after the digits of Content-Length, and what h11 made of it."""

    __slots__ = ("_after", "_before", "head")

    def __init__(self, before: bytes, after: bytes, head: HttpHead) -> None:
        self._before: Final = before
        self._after: Final = after
        self.head: Final = head

    def body_of(self, data: bytes) -> bytes | None:
        """The body, if `data` is this head and one whole body; None if h11 must read it."""
        if not data.startswith(self._before):
            return None
        begin = len(self._before)
        end = data.find(b"\r", begin, begin + _MOST_DIGITS + 1)
        digits = data[begin:end]
        if end < 0 or not digits.isdigit() or not data.startswith(self._after, end):
            return None
        body = end + len(self._after)
        return data[body:] if len(data) - body == int(digits) else None


def repeated_head(data: bytes, head: HttpHead, body_bytes: int | None) -> RepeatedHead | None:
    """The head of `data`, to be recognised when it is repeated. h11 has read `data` as one whole request with a body of
    `body_bytes` that keeps the connection open. None if the head is large, waits for 100 Continue, or has its Content-Length in
    an unusual form."""
    if body_bytes is None or len(data) - body_bytes > _MOST_BYTES or any(name == b"expect" for name, _ in head.headers):
        return None
    raw = data[: len(data) - body_bytes]
    found = _LENGTH.search(raw)
    if found is None or int(found[1]) != body_bytes or raw.lower().count(b"content-length") != 1:
        return None
    return RepeatedHead(raw[: found.start(1)], raw[found.end(1) :], head)
