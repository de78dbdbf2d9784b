"""Request heads that a connection repeats: recognised by their bytes instead of parsed again.

This parses nothing. A head that h11 has read is kept as it came, cut at the digits of its Content-Length; data that has the same
bytes on both sides, and digits between them, is the same request with another length, because h11 reads a head by its bytes
alone. Whatever differs anywhere else, and whatever is not exactly one whole request, goes to h11.
"""

import re
from typing import Final, final

from gatewayd.http.exchange import HttpHead

_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?([0-9]{1,7})\r\n", re.IGNORECASE)
_MOST_DIGITS: Final = 7
_MOST_BYTES: Final = 4096  # kept for every open connection


@final
class RepeatedHead:
    """One head of a connection. Two of the same bytes are the same request, but for the length of its body."""

    __slots__ = ("_after", "_before", "head")

    def __init__(self, before: bytes, after: bytes, head: HttpHead) -> None:
        self._before: Final = before
        self._after: Final = after
        self.head: Final = head

    def body_of(self, data: bytes) -> bytes | None:
        """The body, when `data` is this head again with one whole body behind it; None: h11 must read it."""
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
    """The head of `data`, to be recognised when it comes again. h11 has read all of `data` as one request that keeps its
    connection, with a body of `body_bytes`. None where the head is large, waits for 100 Continue, or has its Content-Length in
    another form than most."""
    if body_bytes is None or len(data) - body_bytes > _MOST_BYTES or any(name == b"expect" for name, _ in head.headers):
        return None
    raw = data[: len(data) - body_bytes]
    found = _LENGTH.search(raw)
    if found is None or int(found[1]) != body_bytes or raw.lower().count(b"content-length") != 1:
        return None
    return RepeatedHead(raw[: found.start(1)], raw[found.end(1) :], head)
