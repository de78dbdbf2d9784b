"""Where engines live: one folder a project in the state folder, which lasts, and one in the runtime folder, which does not.

    STATE/engines/replica               the name under which this control plane's engines are enrolled
    STATE/engines/lock                  held while engines run: two control planes on one folder would share identities
    STATE/engines/<project>/            audit file, identity, what the link keeps; copied by a backup
    RUN/<project>/                      credentials, while the engine runs: addresses in clear text
    RUN/<project>.sock                  the socket that it listens on

RUN is `$RUNTIME_DIRECTORY/engines` of systemd, which is in memory, else STATE/run. All folders are 0700, all files 0600.
"""

import contextlib
import fcntl
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Final, final

import msgspec

from gatewayd.audit.ids import is_ulid

LINK: Final = "link.json"
BACKLOG: Final = 1024
SOCKET_PATH_BYTES: Final = 103  # sun_path, the shortest of the systems that gatewayd runs on


class HomeProblem(Exception):
    """Engines cannot run here; the text says why and what to do."""


class _Enrolled(msgspec.Struct, frozen=True):
    """What of the engine's `link.json` counts here."""

    gateway: str


@final
class EngineFolder:
    """Of one project. Blocking, and short. Only one process may use it at a time."""

    def __init__(self, state: Path, credentials: Path, socket_path: Path) -> None:
        self.state: Final = state
        self.credentials: Final = credentials
        self.socket_path: Final = socket_path

    @property
    def gateway(self) -> str | None:
        """The gateway that lives here, None before its enrolment. What cannot be read is none: it is put aside then."""
        try:
            return msgspec.json.decode((self.state / LINK).read_bytes(), type=_Enrolled).gateway
        except (OSError, msgspec.DecodeError):
            return None

    @property
    def is_linked(self) -> bool:
        return (self.state / LINK).exists()

    def put_aside(self, name: str) -> None:
        """Makes room for another gateway. Nothing is deleted: an audit file is evidence."""
        self.state.rename(self.state.with_name(f"{self.state.name}.{name}"))

    def prepare(self, secrets: Mapping[str, str]) -> None:
        """Ready for a start: credentials by their names, and no bundle of before.

        A bundle that the last run kept may have been replaced since: the engine answers by the one it is given now, or by none.
        """
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (self.state / "bundle.json").unlink()
        self.forget_secrets()
        self.credentials.mkdir(mode=0o700, parents=True)
        for name, text in secrets.items():
            path = self.credentials / name.lower().replace("_", "-")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)

    def forget_secrets(self) -> None:
        shutil.rmtree(self.credentials, ignore_errors=True)

    def listen(self) -> socket.socket:
        """A new socket at `socket_path`, for the engine to inherit. Raises HomeProblem, OSError."""
        path = os.fsencode(self.socket_path)
        if len(path) > SOCKET_PATH_BYTES:
            raise HomeProblem(f"an engine's socket would have a path of {len(path)} bytes; expected a shorter CONTROL_STATE_DIR")
        with contextlib.suppress(FileNotFoundError):
            self.socket_path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(path)
            self.socket_path.chmod(0o600)
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
        return listener


@final
class Home:
    """Of all engines of one control plane. `open` first, `close` at the end."""

    def __init__(self, state: Path, runtime: Path) -> None:
        self._state: Final = state / "engines"
        self._run: Final = runtime
        self._lock: IO[str] | None = None
        self.replica = ""

    def open(self, new_id: Callable[[], str]) -> None:
        """Takes the lock, reads or makes the replica's name, forgets secrets of engines that were killed. Raises HomeProblem."""
        try:
            for folder in (self._state, self._run):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._run.chmod(0o700)
            self._lock = (self._state / "lock").open("w", encoding="utf-8")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in self._run.iterdir():
                if is_ulid(left.name) and left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
            name = self._state / "replica"
            if not name.exists():
                unfinished = name.with_suffix(".unfinished")
                unfinished.write_text(new_id(), encoding="ascii")
                unfinished.replace(name)
            self.replica = name.read_text(encoding="ascii").strip()
        except BlockingIOError:
            self.close()
            raise HomeProblem(f"another control plane runs its engines in {self._state}; give each a CONTROL_STATE_DIR") from None
        except (OSError, UnicodeError) as failure:
            self.close()
            raise HomeProblem(f"{self._state} cannot be used ({failure})") from None

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def folder(self, project_id: str) -> EngineFolder:
        return EngineFolder(self._state / project_id, self._run / project_id, self._run / f"{project_id}.sock")
