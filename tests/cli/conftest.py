"""A gatewayd that serves the sample tables while the tests of a file run, with some calls behind it."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.cli.gatewayd_process import environment, run
from tests.conftest import Postgres, reserved_port
from tests.daemon.daemon_rig import SHOP, gatewayd, variables

POLICY = """
table_access:
  default: read
  tables: {secrets: deny, written: read_write}
"""
STATEMENTS = (
    "SELECT id, name FROM customers ORDER BY id LIMIT 3",
    "SELECT * FROM secrets",
    "INSERT INTO written VALUES ('one'), ('two')",
    "SELECT 1/0",
    "SELECT '\x1b]0;owned\x07' AS title, '\u202e' AS turned",
    "SELEC 1",
)


class Served(msgspec.Struct, frozen=True):
    """`variables` configure a command to speak about this gatewayd."""

    variables: dict[str, str]
    folder: Path
    dsn: str


@pytest.fixture(scope="module")
def served(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """STATEMENTS have been asked, in their order."""
    folder = tmp_path_factory.mktemp("served")
    dsn = postgres.create_database(SHOP)
    with reserved_port() as port, gatewayd(dsn, folder, port, POLICY):
        given = {**variables(dsn, folder, POLICY), "PORT": str(port), "GATEWAY_HOST": "127.0.0.1"}
        for sql in STATEMENTS:
            run(["query", sql, "--intent", "fill the audit"], given)
        yield Served(environment(given), folder, dsn)


@pytest.fixture
def state(short_folder: Callable[[], Path]) -> Iterator[Path]:
    """A demo's folder; its PostgreSQL ends with the test."""
    state = short_folder()
    try:
        yield state
    finally:
        EmbeddedPostgres(state / "postgres").stop("immediate")


def leaves_no_trace(served: Served, read: Callable[[], object]) -> bool:
    """Whether `read` leaves the audit file as it is, its log and all that stands beside it.

    Not the first time, perhaps: gatewayd itself carries its log into the file once, when nobody has called for a second.
    """

    def state() -> list[tuple[str, str]]:
        return [
            # In -shm readers mark how far they read; of it nothing but its being there counts.
            (name, "" if name.endswith("-shm") else hashlib.sha256((served.folder / name).read_bytes()).hexdigest())
            for name in sorted(os.listdir(served.folder))
        ]

    def reads_without_a_trace() -> bool:
        before = state()
        read()
        return state() == before

    return any(reads_without_a_trace() for _ in range(5))
