"""Opening the audit file: its mode, the settings of the writing connection, and the errors that make a file unusable."""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final, Literal

from gatewayd.audit.stored_tree import LeafMissing

Synchronous = Literal["normal", "full"]

LOCKED_BY_OTHERS_MS: Final = 2000
"""How long a transaction waits for one of another process, unless another bound is set."""
_WAL_KEPT_BYTES: Final = 64 * 1024 * 1024


class AuditFileUnusable(Exception):
    """The file cannot serve as audit file: not writable, damaged, another program's. `reason` carries no path."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"audit file {path} cannot be used: {reason}; DB_PATH must name a file that gatewayd can write")
        self.path = path
        self.reason = reason


def reason_of(failure: Exception) -> str:
    """What went wrong, fit for a tool error: no path, no SQL."""
    if isinstance(failure, AuditFileUnusable):
        return failure.reason
    if isinstance(failure, LeafMissing):
        return f"{failure}; gatewayd audit verify tells more"
    if isinstance(failure, OSError):
        return (failure.strerror or "input/output error").lower()
    return str(failure)


def create_if_absent(path: str) -> None:
    """Creates the file, for its owner alone, and the folders above it; takes other users' rights away from one that is there.

    Raises OSError.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Created here and not by SQLite, which would give it the umask's mode; the log and its index inherit the file's mode.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return
    with contextlib.suppress(PermissionError):  # somebody else's file that we may write: its mode is theirs
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o600)


def connect(path: str, synchronous: Synchronous, *, cached_statements: int) -> sqlite3.Connection:
    """The writing connection, for one thread at a time. SQLite makes no checkpoint by itself on it.

    Raises AuditFileUnusable or sqlite3.Error.
    """
    connection = sqlite3.connect(
        path,
        timeout=LOCKED_BY_OTHERS_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=cached_statements,
    )
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise AuditFileUnusable(path, f"found journal mode {mode}, expected a file system that allows wal")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted or erased leaves no text in free pages
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection
