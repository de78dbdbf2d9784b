"""Fixtures for everybody: a real PostgreSQL. One server per test process, a fresh database per call, own servers to kill."""

import itertools
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import hypothesis
import msgspec
import pytest

from gatewayd.postgres.embedded import SUPERUSER, EmbeddedPostgres, Version
from tests import places

# No timings: a busy machine makes no test fail. `make test` looks at the same examples each time, so that a change is blamed for
# its own failures; `make soak` looks for others.
hypothesis.settings.register_profile("soak", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("same", hypothesis.settings.get_profile("soak"), derandomize=True)
hypothesis.settings.load_profile("same")

# No proxy stands between the tests and what they start on this machine.
for variable in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(variable, None)
    os.environ.pop(variable.upper(), None)

# pytest's own folders too, and those of what the tests start.
os.environ["TMPDIR"] = str(places.ROOT)
tempfile.tempdir = None

# A shell that starts `make test &` ignores SIGINT for it, and so would every process that a test starts and then interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Nothing here must survive a power cut. No autovacuum: it would take locks at moments of its own choosing.
QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "max_wal_size": "256MB",
}
PASSWORD = "superuser-of-the-tests"
DROPPED_TOGETHER = 16  # databases; psql takes longer to start than PostgreSQL takes for one


class Postgres:
    """A running server for tests. Everything blocks shortly; it may be called from Trio tests too."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.server = server
        self.databases: list[str] = []
        """That were made here and are not dropped, in their order."""
        self._ended: list[str] = []
        self._names = (f"test_{number}" for number in itertools.count(1))

    def dsn(self, database: str = SUPERUSER, user: str = SUPERUSER, password: str | None = None, *, tcp: bool = False) -> str:
        """A connection string: unix socket without a password, or 127.0.0.1 when a password or `tcp` is given.

        On the unix socket every role enters without a password; over TCP every role needs its own (the superuser's is filled in).
        """
        return self.server.url(user=user, database=database, password=password, tcp=tcp)

    def create_database(self, sql: str = "", *, user: str = SUPERUSER, password: str | None = None, tcp: bool = False) -> str:
        """Make a fresh database, run `sql` in it as the superuser, and return its connection string for `user`."""
        name = self._create("")
        if sql:
            self.server.psql(sql, name)
        return self.dsn(name, user, password, tcp=tcp)

    def copy_database(self, database: str) -> str:
        """Make a copy of a database that nobody is connected to, and return its connection string."""
        return self.dsn(self._create(f'TEMPLATE "{_name(database)}"'))

    def copy_in_use(self, database: str) -> str:
        """As `copy_database`, of one that a server of ours is connected to: its connections end, and come back by themselves."""
        name = _name(database)
        self.server.psql(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            self.server.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            return self.copy_database(database)
        finally:
            self.server.psql(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')

    def _create(self, template: str) -> str:
        name = next(self._names)
        # By copying files: the other way writes every page to the log as well.
        self.server.psql(f'CREATE DATABASE "{name}" {template} STRATEGY file_copy')
        self.databases.append(name)
        return name

    def drop_after(self, count: int) -> None:
        """Drop all but the first `count` databases, whoever is connected to them."""
        self.databases, ended = self.databases[:count], self.databases[count:]
        self._ended += ended
        if len(self._ended) >= DROPPED_TOGETHER:
            self.server.psql("".join(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE);\n' for name in self._ended))
            self._ended = []

    def execute(self, sql: str, database: str = SUPERUSER) -> str:
        """Run statements as the superuser on a connection of their own; values as text, `|` between columns, a line a row.

        `database` is a name or a connection string from `create_database`. Raises EmbeddedUnavailable with the server's message.
        """
        return self.server.psql(sql, _name(database))

    def query(self, sql: str, database: str = SUPERUSER) -> list[dict[str, Any]]:
        """Rows of one SELECT as the superuser."""
        text = self.server.psql(f"SELECT coalesce(json_agg(q), '[]') FROM (\n{sql}\n) AS q", _name(database))
        rows: list[dict[str, Any]] = msgspec.json.decode(text)
        return rows

    @property
    def host(self) -> str:
        return "127.0.0.1"

    @property
    def port(self) -> int:
        """The TCP port; it stays the same over restarts."""
        running = self.server.postmaster()
        assert running is not None, "the server is not running"
        return running.port

    @property
    def log(self) -> str:
        """What the server has logged so far."""
        return self.server.log_path.read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        self.server.start()

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash; `fast` disconnects everybody."""
        self.server.stop("immediate" if mode == "immediate" else "fast")

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()


@contextmanager
def reserved_port() -> Iterator[int]:
    """A TCP port of 127.0.0.1 that nobody listens on, and that the kernel gives to nobody else meanwhile.

    It stays bound here: bound and closed again it would be anybody's, another worker's too, until the server under test takes it.
    A server that sets SO_REUSEADDR, as ours and PostgreSQL do, can listen on it, and again after a restart.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def free_port() -> Iterator[int]:
    """As `reserved_port`."""
    with reserved_port() as port:
        yield port


class StartPostgres(Protocol):
    def __call__(self, *, version: Version = 16, settings: Mapping[str, str] | None = None) -> Postgres: ...


def _name(database: str) -> str:
    """`postgresql://user@/name?host=...` -> `name`."""
    return database.split("@", 1)[1].split("/", 1)[1].split("?", 1)[0] if "://" in database else database


def server_in(folder: Path, port: int, version: Version, settings: Mapping[str, str]) -> EmbeddedPostgres:
    """A server of its own, started: QUICK and `settings`. Whoever asks for it stops it."""
    settings = {**QUICK, **settings}
    server = EmbeddedPostgres(folder, version=version, tcp=True, port=port, superuser_password=PASSWORD, settings=settings)
    server.initialise()
    server.start()
    return server


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Callable[[], Path]]:
    """Makes folders with paths short enough for unix sockets and reachable for PostgreSQL's account; pytest's own are neither."""
    root = Path(tempfile.mkdtemp(prefix="gw", dir=places.ROOT))
    root.chmod(0o711)
    numbers = itertools.count(1)

    def make() -> Path:
        folder = root / str(next(numbers))
        folder.mkdir()
        return folder

    try:
        yield make
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(short_folder: Callable[[], Path]) -> Iterator[Postgres]:
    """The server (version 16) that the tests of this process share. Make databases and roles in it; do not stop it."""
    with reserved_port() as port:
        server = server_in(short_folder(), port, 16, {})
        try:
            yield Postgres(server)
        finally:
            server.stop("immediate")


@pytest.fixture(autouse=True)
def databases_end_with_their_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test made in the shared server goes with it: a run makes more than a thousand, of 7 MB each.

    Databases of fixtures with a wider scope stay: those fixtures come before this one.
    """
    shared = request.getfixturevalue("postgres") if "postgres" in request.fixturenames else None
    count = len(shared.databases) if shared is not None else 0
    yield
    if shared is not None:
        shared.drop_after(count)


@pytest.fixture
def start_postgres(short_folder: Callable[[], Path]) -> Iterator[StartPostgres]:
    """Starts servers that belong to the test alone: `start_postgres(version=18, settings={"max_connections": "5"})`."""
    servers: list[EmbeddedPostgres] = []

    def start(*, version: Version = 16, settings: Mapping[str, str] | None = None) -> Postgres:
        servers.append(server_in(short_folder(), ports.enter_context(reserved_port()), version, settings or {}))
        return Postgres(servers[-1])

    with ExitStack() as ports:
        try:
            yield start
        finally:
            for server in servers:
                server.signal(signal.SIGCONT)  # a test may have stopped it with SIGSTOP
                server.stop("immediate")
                shutil.rmtree(server.folder)


@pytest.fixture
def own_postgres(start_postgres: StartPostgres) -> Postgres:
    """A server that the test may stop, restart and kill."""
    return start_postgres()
