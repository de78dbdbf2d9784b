"""The lock that gives an audit file one owner: one gatewayd writes, others may read (decision 4; exit code 69).

The lock is flock(2) on `<file>.lock`. SQLite's exclusive locking mode would exclude readers. A lock on the file itself would not
work either: closing any descriptor of it drops SQLite's own POSIX locks in this process.
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
        self._path = path
        self._descriptor: int | None = None
        self.hold()

    def hold(self) -> None:
        """Makes sure that the lock is on the lock file that is there now. Ours may have been deleted with its folder, and another
        process may have created one. Raises AuditFileLocked or OSError."""
        if self._is_in_place():
            return
        self.release()
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        descriptor = os.open(self._path + ".lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise AuditFileLocked(self._path) from None
        self._descriptor = descriptor

    def release(self) -> None:
        """Releases the lock; the lock file stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)  # the lock file stays: removing it would race with the next owner
            self._descriptor = None

    def _is_in_place(self) -> bool:
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path + ".lock"))
        except FileNotFoundError:
            return False
