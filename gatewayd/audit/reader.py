"""Reading the audit file by pages, on a connection of its own that never writes (decision 7).

Ids rise in commit order, so "larger than the last id seen" misses no row and repeats none, even while rows are written. Each
piece of a page is a short read of its own: a slow client keeps no snapshot open, and so does not keep the write-ahead log from
shrinking.
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import trio

from gatewayd.audit.meta import read_meta
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.stored_tree import StoredTree

T = TypeVar("T")
Trees = dict[tuple[str, int], StoredTree]
"""The trees for proofs, by instance and pruned size."""

InstanceOf = Callable[[int | None], str | None]
"""Gives the instance of a seq; None for a row from before format 2."""

START: Final = "0"  # the cursor before the first row: smaller than every ULID in use
_PIECE_CHARACTERS: Final = 256 * 1024

_PAYLOAD: Final = COLUMNS.index("payload")
_SELECT: Final = f"SELECT {', '.join(COLUMNS)}, seq FROM audit_events WHERE id > ? ORDER BY id LIMIT ?"


class AuditRow(msgspec.Struct, frozen=True):
    """One row as it is shown; `payload` is JSON text, embedded unchanged."""

    id: str
    query_id: str
    tenant_id: str
    database: str
    agent_name: str | None
    agent_version: str | None
    agent_intent: str | None
    mcp_token_id: str | None
    ts: int
    event_type: str
    payload: msgspec.Raw
    schema_version: int
    seq: int | None = None  # None: from before format 2
    instance: str | None = None


def connect_for_reading(path: str) -> sqlite3.Connection:
    """A connection that can only read, for this or another process. Raises sqlite3.Error, also when there is no such file."""
    uri = Path(path).absolute().as_uri() + "?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None, check_same_thread=False)


def read_rows(connection: sqlite3.Connection, after: str, limit: int, characters: int = _PIECE_CHARACTERS) -> list[AuditRow]:
    """Rows with an id above `after`, ascending: at most `limit`, and no more once their payloads reach `characters`."""
    rows: list[AuditRow] = []
    instance_of = instances(connection)
    selected = connection.execute(_SELECT, (after, limit))
    try:
        for row in selected:
            rows.append(audit_row(row, instance_of))
            characters -= len(row[_PAYLOAD])
            if characters <= 0:
                break
    finally:
        selected.close()  # ends the read, or the log could not be reused
    return rows


def audit_row(stored: tuple[Any, ...], instance_of: InstanceOf) -> AuditRow:
    """The row of stored columns: those of the specification, in its order, then seq."""
    raw = msgspec.Raw(stored[_PAYLOAD].encode())
    columns = (*stored[:_PAYLOAD], raw, *stored[_PAYLOAD + 1 :], instance_of(stored[-1]))
    return AuditRow(*columns)


def instances(connection: sqlite3.Connection) -> InstanceOf:
    """A function that gives the instance of a seq, by the file's present metadata."""
    rows: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta"))
    spans = read_meta(rows).spans() if "instance" in rows else []

    def instance_of(seq: int | None) -> str | None:
        if seq is None:
            return None
        return next((instance for instance, first_seq, _ in reversed(spans) if seq >= first_seq), None)

    return instance_of


def has_rows_after(connection: sqlite3.Connection, cursor: str) -> bool:
    """Whether there is a row with an id above `cursor`."""
    return connection.execute("SELECT 1 FROM audit_events WHERE id > ? LIMIT 1", (cursor,)).fetchone() is not None


class Page:
    """The JSON text of one page, `{"rows": […], "next_cursor": …}`, in pieces of a few hundred KiB or one row.

    `next_cursor` is the last id of the page, or null if there is no row with a larger id. Iterating raises sqlite3.Error or
    OSError if the file cannot be read; `begin()` finds most such errors before anything was sent.
    """

    def __init__(self, reader: "AuditReader", cursor: str, limit: int) -> None:
        self._reader = reader
        self._cursor = cursor
        self._left = limit
        self._separator = b'{"rows":['
        self._ready: bytes | None = None
        self._is_ended = False

    async def begin(self) -> None:
        """Reads the first piece ahead."""
        self._ready = await anext(self)

    def __aiter__(self) -> "Page":
        return self

    async def __anext__(self) -> bytes:
        if self._ready is not None:
            ready, self._ready = self._ready, None
            return ready
        if self._is_ended:
            raise StopAsyncIteration
        return await trio.to_thread.run_sync(self._piece, limiter=self._reader.limiter)

    def _piece(self) -> bytes:
        connection = self._reader.connection()
        rows = read_rows(connection, self._cursor, self._left)
        piece = bytearray()
        for row in rows:
            piece += self._separator
            _encode_into(row, piece, -1)
            self._separator = b","
        if rows:
            self._cursor = rows[-1].id
            self._left -= len(rows)
        has_more = bool(rows) and has_rows_after(connection, self._cursor)
        if not (has_more and self._left):
            self._is_ended = True
            opening = b"" if self._separator == b"," else self._separator
            piece += opening + b'],"next_cursor":' + msgspec.json.encode(self._cursor if has_more else None) + b"}"
        return bytes(piece)


_encode_into = msgspec.json.Encoder().encode_into


class AuditReader:
    """Pages of one audit file. Its connection follows the path: if the file is replaced, the new one is opened."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = (0, 0)
        self.trees: Trees = {}
        self.limiter = trio.CapacityLimiter(1)  # the connection is for one thread at a time

    def page(self, cursor: str, limit: int) -> Page:
        """Up to `limit` rows with an id above `cursor`, which is START or a ULID."""
        return Page(self, cursor, limit)

    async def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Calls `question` with the connection in a thread and returns its result. Raises sqlite3.Error or OSError, too."""
        return await trio.to_thread.run_sync(lambda: question(self.connection()), limiter=self.limiter)

    def connection(self) -> sqlite3.Connection:
        """The connection, for the thread that holds `limiter`. Raises sqlite3.Error or OSError."""
        status = os.stat(self._path)
        inode = (status.st_dev, status.st_ino)
        if self._connection is None or inode != self._inode:
            self.close()
            self._connection = connect_for_reading(self._path)
            self._inode = inode
            self.trees.clear()
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
