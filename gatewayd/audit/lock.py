"""Whose audit file it is: one gatewayd per file, readers welcome (contract 4, exit code 69).

The lock is flock(2) on `<file>.lock`. Not SQLite's exclusive locking mode, which would shut out readers; not a lock on the file
itself, because closing any descriptor of it would drop SQLite's own POSIX locks in this process.
"""

import fcntl
import os


class AuditFileLocked(Exception):
    """Another process owns the audit file."""

    def __init__(self, path: str) -> None:
        super().__init__(f"audit file {path} belongs to another gatewayd that is running; expected a file of its own (DB_PATH)")
        self.path = path


class OwnershipLock:
    """Held from construction to `release()`, or until the process ends in any way."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path + ".lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise AuditFileLocked(path) from None

    def release(self) -> None:
        os.close(self._descriptor)  # the lock file stays: removing it would race with the next owner
