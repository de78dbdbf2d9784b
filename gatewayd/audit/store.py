"""The audit file: SQLite, one table of events, one connection that writes (decision 4).

Blocking code, for one thread at a time. The writing connection also does every checkpoint, because SQLite before 3.51.3 can
damage a file when two connections write or checkpoint at one moment (sqlite.org/wal.html, "the WAL-reset bug"). None happens by
itself but the last one, in `close`.
"""

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from gatewayd.audit.ids import RisingIds, is_ulid
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.rows import COLUMNS, Row

Synchronous = Literal["normal", "full"]

APPLICATION_ID: Final = 0x67617465  # "gate"
FORMAT: Final = 1  # user_version
LOCKED_BY_OTHERS_MS: Final = 2000  # for the end of a foreign transaction, unless told otherwise
_WAL_KEPT_BYTES: Final = 64 * 1024 * 1024
_ROWS_PER_STATEMENT: Final = 16

_SCHEMA: Final = f"""
CREATE TABLE audit_events (
  id TEXT NOT NULL PRIMARY KEY,
  query_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  database TEXT NOT NULL,
  agent_name TEXT,
  agent_version TEXT,
  agent_intent TEXT,
  mcp_token_id TEXT,
  ts INTEGER NOT NULL,
  event_type TEXT NOT NULL,
  payload TEXT NOT NULL,
  schema_version INTEGER NOT NULL
);
CREATE INDEX audit_events_query_id ON audit_events (query_id);
CREATE INDEX audit_events_tenant_ts ON audit_events (tenant_id, ts DESC);
CREATE INDEX audit_events_event_type_ts ON audit_events (event_type, ts DESC);
CREATE INDEX audit_events_database_ts ON audit_events (database, ts DESC);
CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""
# `meta.last_id` is the largest id in the file at the last deletion: ids stay above it also in an emptied file.

# One statement for all rows of a small batch: SQLite then runs it in one step, and the GIL changes hands once, not once a row.
_INSERTS: Final = tuple(
    f"INSERT INTO audit_events ({', '.join(COLUMNS)}) VALUES " + ", ".join([f"({', '.join('?' * len(COLUMNS))})"] * rows)
    for rows in range(1, _ROWS_PER_STATEMENT + 1)
)


class AuditFileUnusable(Exception):
    """The file cannot serve as audit file: not writable, damaged, another program's. `reason` carries no path."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"audit file {path} cannot be used: {reason}; DB_PATH must name a file that gatewayd can write")
        self.path = path
        self.reason = reason


class AuditFile:
    """An open audit file. Every method may raise sqlite3.Error or OSError; nothing of a failed `insert` stays in the file."""

    def __init__(self, path: str, synchronous: Synchronous) -> None:
        self.path = path
        self._waits_ms = LOCKED_BY_OTHERS_MS
        try:
            _create_if_absent(path)
            self._connection = _connect(path, synchronous)
        except (sqlite3.Error, OSError) as failure:
            raise AuditFileUnusable(path, reason_of(failure)) from failure
        try:
            self._prepare()
            self.inode = _inode(path)
            self._wal_inode = _inode(path + "-wal")
        except (sqlite3.Error, OSError) as failure:
            self._connection.close()
            raise AuditFileUnusable(path, reason_of(failure)) from failure
        except AuditFileUnusable:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        connection = self._connection
        # A write lock from the first look on: creating is then not interleaved with anybody, and a read-only file shows now.
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        self.is_new = (application, version, objects) == (0, 0, 0)
        if self.is_new:
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
        elif application != APPLICATION_ID:
            raise AuditFileUnusable(self.path, f"it is another program's SQLite file (application_id {application})")
        elif version != FORMAT:
            raise AuditFileUnusable(self.path, f"found format {version}, expected format {FORMAT}")
        connection.execute("COMMIT")
        (self.last_id,) = connection.execute(
            "SELECT max(coalesce((SELECT max(id) FROM audit_events), ''),"
            " coalesce((SELECT value FROM meta WHERE key = 'last_id'), ''))"
        ).fetchone()
        if self.last_id and not is_ulid(self.last_id):
            raise AuditFileUnusable(self.path, "its largest id is not a ULID")

    def start(self, ids: RisingIds) -> None:
        """Makes `ids` go on above everything that the file holds or held."""
        if self.last_id:
            try:
                ids.start_above(self.last_id)
            except ValueError as failure:
                raise AuditFileUnusable(self.path, f"its largest id: {failure}") from failure

    def insert(self, rows: Sequence[tuple[str, Row]]) -> None:
        """Commits all rows (id and the other columns) in one transaction, or none of them."""
        if len(rows) <= _ROWS_PER_STATEMENT:
            self._connection.execute(_INSERTS[len(rows) - 1], _flat(rows))  # its own transaction
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for start in range(0, len(rows), _ROWS_PER_STATEMENT):
                part = rows[start : start + _ROWS_PER_STATEMENT]
                self._connection.execute(_INSERTS[len(part) - 1], _flat(part))
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.rollback()

    def delete_before(self, cursor: str, at_most: int) -> int:
        """Deletes up to `at_most` rows with an id up to and including `cursor`, oldest first; returns how many."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT OR REPLACE INTO meta SELECT 'last_id', id FROM audit_events ORDER BY id DESC LIMIT 1")
        deleted = connection.execute(
            "DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events WHERE id <= ? ORDER BY id LIMIT ?)",
            (cursor, at_most),
        ).rowcount
        connection.execute("COMMIT")
        return deleted

    def ensure_readable(self) -> None:
        """Raises sqlite3.Error when another process would not find the newest row: the file was overwritten under us.

        This connection does not notice, because of what it has in memory: it would go on for long, writing into a file that
        nobody can read. An overwritten header is mended out of that memory.
        """
        try:
            self._read_as_others()
        except sqlite3.DatabaseError:
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")  # puts the first page into the log, as it was
            self._read_as_others()

    def _read_as_others(self) -> None:
        with contextlib.closing(connect_for_reading(self.path)) as other:
            other.execute("SELECT max(id) FROM audit_events").fetchone()

    def wait_for_others(self, at_most_ms: int) -> None:
        """How long `insert` and `delete_before` wait from now on while another process writes to the file."""
        if at_most_ms != self._waits_ms:
            self._connection.execute(f"PRAGMA busy_timeout = {at_most_ms}").fetchone()
            self._waits_ms = at_most_ms

    def is_in_place(self) -> bool:
        """Whether the path still names the file that is open: it may have been deleted or replaced under us."""
        try:
            return _inode(self.path) == self.inode
        except OSError:
            return False

    def wal_bytes(self) -> int:
        try:
            return os.stat(self.path + "-wal").st_size
        except FileNotFoundError:
            return 0

    def checkpoint(self) -> None:
        """Carries the write-ahead log into the file as far as readers allow."""
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def close(self) -> None:
        """Closes with a final checkpoint; never raises, the rows are in the log in any case."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        # The log of a file that was replaced under us would be replayed into the file that stands there now.
        with contextlib.suppress(OSError):
            if not self.is_in_place() and _inode(self.path + "-wal") == self._wal_inode:
                os.unlink(self.path + "-wal")


def reason_of(failure: Exception) -> str:
    """What went wrong, fit for a tool error: no path, no SQL."""
    if isinstance(failure, AuditFileUnusable):
        return failure.reason
    if isinstance(failure, OSError):
        return (failure.strerror or "input/output error").lower()
    return str(failure)


def _create_if_absent(path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Created here and not by SQLite, which would give it the umask's mode; the log and its index inherit the file's mode.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return
    with contextlib.suppress(PermissionError):  # somebody else's file that we may write: its mode is theirs
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o600)


def _connect(path: str, synchronous: Synchronous) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=LOCKED_BY_OTHERS_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_ROWS_PER_STATEMENT + 16,
    )
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise AuditFileUnusable(path, f"found journal mode {mode}, expected a file system that allows wal")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _flat(rows: Sequence[tuple[str, Row]]) -> list[str | int | None]:
    values: list[str | int | None] = []
    for event_id, row in rows:
        values.append(event_id)
        values += row
    return values


def _inode(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
