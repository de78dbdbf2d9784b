"""The state of the demo: one folder with the shop's PostgreSQL, the policy, the salt of its masks, the audit file and the port it
was served on last."""

import contextlib
import fcntl
import os
import secrets
import socket
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final, TextIO

from gatewayd.postgres.embedded import EmbeddedPostgres, EmbeddedUnavailable

DATABASE: Final = "shop"
CONTROL_DATABASE: Final = "control"
ROLE: Final = "shop_agent"
ADDRESS: Final = "127.0.0.1"
_UNFINISHED: Final = "shop_unfinished"


def probe(port: int) -> int:
    """The port, once it is seen that it can be served on; for 0 a free one. Raises OSError."""
    with socket.socket() as there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        there.bind((ADDRESS, port))
        found: int = there.getsockname()[1]
        return found


def default_folder() -> Path:
    """Root's own folders are closed to the account PostgreSQL runs as, so root's demo lives below /var/lib."""
    if os.geteuid() == 0:
        return Path("/var/lib/gatewayd-demo")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "gatewayd-demo"


class Demo:
    """`folder` holds everything; removing it removes the demo."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.policy_path = folder / "policy.yaml"
        self.audit_path = folder / "audit.db"
        self.server = EmbeddedPostgres(folder / "postgres")
        self.salt_path = folder / "mask-salt"
        self._port_path = folder / "port"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """PostgreSQL with the shop in it runs while the block does.

        Raises EmbeddedUnavailable, also for a second demo here and for a folder that cannot be written.
        """
        with self._lock_file() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a crash lets go of it, unlike a file that merely exists
            except OSError:
                raise EmbeddedUnavailable(
                    f"a demo is running in {self.folder} already; stop it, or choose another folder with --state"
                ) from None
            self.server.initialise()
            try:
                self.server.start()
                self._load()
                if not self.policy_path.exists():
                    self.policy_path.write_bytes((files("gatewayd.demo") / "policy.yaml").read_bytes())
                self._make_salt()
                yield
            finally:
                self.server.stop()

    def _lock_file(self) -> TextIO:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return open(self.folder / "lock", "w", encoding="utf-8")
        except OSError as failure:
            where = f"{self.folder} cannot be made or written ({failure.strerror})"
            raise EmbeddedUnavailable(f"{where}; choose another folder with --state") from None

    @property
    def database_url(self) -> str:
        return self.server.url(user=ROLE, database=DATABASE)

    @property
    def control_database_url(self) -> str:
        """The store of a control plane, in the same server."""
        if not self.server.psql(f"SELECT 1 FROM pg_database WHERE datname = '{CONTROL_DATABASE}'"):
            self.server.psql(f"CREATE DATABASE {CONTROL_DATABASE}")
        return self.server.url(database=CONTROL_DATABASE)

    def port(self, asked: int | None = None) -> int:
        """`asked`, else that of the last time if it is free, so that configured clients find the demo again, else a free one."""
        port = asked or self._last_port() or probe(0)
        self._port_path.write_text(f"{port}\n", encoding="utf-8")
        return port

    def _last_port(self) -> int | None:
        with contextlib.suppress(OSError, ValueError, OverflowError):
            return probe(int(self._port_path.read_text(encoding="utf-8")))
        return None

    def _make_salt(self) -> None:
        """Once: with another salt masked values would be others."""
        if not self.salt_path.exists():
            unfinished = self.salt_path.with_suffix(".unfinished")
            unfinished.touch(mode=0o600)
            unfinished.write_text(secrets.token_hex(32), encoding="ascii")
            unfinished.replace(self.salt_path)

    def _load(self) -> None:
        """Make the shop unless it is there. Loaded under another name first: half a shop is never taken for one."""
        if self.server.psql(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"):
            return
        self.server.psql(f"DROP DATABASE IF EXISTS {_UNFINISHED}")
        if not self.server.psql(f"SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'"):
            self.server.psql(f"CREATE ROLE {ROLE} LOGIN")
        self.server.psql(f"CREATE DATABASE {_UNFINISHED}")
        shop = (files("gatewayd.demo") / "shop.sql").read_text(encoding="utf-8")
        self.server.psql(f"\\set database {_UNFINISHED}\n{shop}", _UNFINISHED, single_transaction=True)
        self.server.psql(f"ALTER DATABASE {_UNFINISHED} RENAME TO {DATABASE}")
