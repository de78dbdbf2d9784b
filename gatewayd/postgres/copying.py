"""The server's answer to a `COPY … TO STDOUT` of the simple query protocol, read straight off the socket. No IO.

asyncpg hands such rows over through futures, a task and callbacks, and copies each message once more: 40 µs of CPU for a point
read, 140 µs for 1000 rows. So while asyncpg rests between two statements of its own, this reads the few messages
that can come, and gives back to it those that are about the session. Every other message is an error, and ends the session.

Messages: https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

import asyncpg

from gatewayd.postgres.rows import CopyRows

_HEAD: Final = Struct("!Bi")  # kind, length of the message without the kind
_HEAD_BYTES: Final = _HEAD.size
_ROW: Final = Struct("!BiHi")  # the head of a CopyData message, field count, length of the first field
_ROW_BYTES: Final = _ROW.size
_COPY_DATA: Final = ord("d")
_COPY_OUT_RESPONSE: Final = ord("H")
_COPY_DONE: Final = ord("c")
_COMMAND_COMPLETE: Final = ord("C")
_ERROR: Final = ord("E")
_READY: Final = ord("Z")
_OF_THE_SESSION: Final = frozenset(b"SNA")  # ParameterStatus, NoticeResponse, NotificationResponse


def simple_query(sql: str) -> bytes:
    text = sql.encode()
    return b"Q%b%b\0" % ((len(text) + 5).to_bytes(4, "big"), text)


class CopyAnswer:
    """Feed it what arrives, cut anywhere, until `is_complete`. Rows go to `rows`; to `aside` messages about the session, and what
    stands behind the answer."""

    def __init__(self, rows: CopyRows, aside: Callable[[bytes], object]) -> None:
        self.is_complete = False
        self.error: asyncpg.PostgresError | None = None
        self.tag = ""
        self.in_transaction = False
        """Once complete: also true of a transaction that has failed."""
        self._rows = rows
        self._aside = aside
        self._pieces: list[bytes] = []  # of a message that has not arrived whole
        self._missing = 0  # how many bytes of it are still to come, as far as is known

    def feed(self, chunk: bytes) -> None:
        """Raises asyncpg.InternalClientError, or ValueError from `rows`, when it is no answer to a COPY."""
        if self._pieces:
            self._pieces.append(chunk)
            self._missing -= len(chunk)
            if self._missing > 0:
                return
            chunk = b"".join(self._pieces)  # a message of megabytes is put together once
            self._pieces.clear()
        at, end = 0, len(chunk)
        while at + _HEAD_BYTES <= end:
            kind, length = _HEAD.unpack_from(chunk, at)
            if length < 4:
                raise asyncpg.InternalClientError("a message shorter than its own length")
            after = at + 1 + length
            if after > end:
                self._missing = after - end
                break
            if kind == _COPY_DATA:
                if self._rows.is_between_rows and (behind := self._take_rows(chunk, at)) > at:
                    at = behind
                    continue
                self._rows.feed(chunk[at + _HEAD_BYTES : after])
            else:
                self._take(kind, chunk[at:after])
                if self.is_complete:
                    if after < end:
                        self._aside(chunk[after:])
                    return
            at = after
        else:
            self._missing = at + _HEAD_BYTES - end
        if at < end:
            self._pieces.append(chunk[at:])

    def _take_rows(self, chunk: bytes, at: int) -> int:
        """Take the messages from `at` on that are one row each, as PostgreSQL sends them; gives where they end."""
        found: list[bytes] = []
        begun, end = at, len(chunk)
        unpack, take = _ROW.unpack_from, found.append  # a thousand rows and more a call: the loop does nothing else
        while at + _ROW_BYTES <= end:
            kind, length, fields, size = unpack(chunk, at)
            start = at + _ROW_BYTES
            after = start + size
            if kind != _COPY_DATA or fields != 1 or length != size + 10 or after > end:
                break
            take(chunk[start:after])
            at = after
        if found:
            self._rows.keep(found, at - begun - _ROW_BYTES * len(found))
        return at

    def _take(self, kind: int, message: bytes) -> None:
        if kind == _READY:
            self.is_complete = True
            self.in_transaction = message[_HEAD_BYTES:] != b"I"
        elif kind == _COMMAND_COMPLETE:
            self.tag = message[_HEAD_BYTES:-1].decode()
        elif kind == _ERROR:
            self.error = asyncpg.PostgresError.new(_fields(message))
        elif kind in _OF_THE_SESSION:
            self._aside(message)
        elif kind not in (_COPY_OUT_RESPONSE, _COPY_DONE):
            raise asyncpg.InternalClientError(f"unexpected message {chr(kind)!r} in the answer to a COPY")


def _fields(message: bytes) -> dict[str, str]:
    """Of an ErrorResponse: letters of the fields and their texts."""
    texts = message[_HEAD_BYTES:].decode(errors="replace").split("\0")
    return {text[0]: text[1:] for text in texts if text}
