"""The embedded PostgreSQL: made once, found again, gone when stopped."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewayd.postgres.embedded import EmbeddedPostgres, EmbeddedUnavailable


@pytest.fixture
def server(short_folder: Callable[[], Path]) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(short_folder(), settings={"fsync": "off"})
    try:
        yield server
    finally:
        server.stop("immediate")


def test_made_once(server: EmbeddedPostgres) -> None:
    assert [server.initialise(), server.initialise()] == [True, False]


def test_a_crash_while_making_it_leaves_nothing_half_made(server: EmbeddedPostgres) -> None:
    (server.folder / "data.new").mkdir()
    (server.folder / "data.new" / "PG_VERSION").write_text("18\n", encoding="utf-8")
    assert server.initialise()
    assert not (server.folder / "data.new").exists()


def test_found_again_by_the_next_process(server: EmbeddedPostgres) -> None:
    server.initialise()
    started = server.start()
    again = EmbeddedPostgres(server.folder)
    assert again.start() == started
    assert again.psql("SELECT 1") == "1"
    again.stop()
    assert server.postmaster() is None


def test_its_kill_is_noticed_and_repaired(server: EmbeddedPostgres) -> None:
    server.initialise()
    killed = server.start()
    server.psql("CREATE TABLE kept AS SELECT 7 AS a")
    server.signal(signal.SIGKILL)
    assert server.start().pid != killed.pid
    assert server.psql("SELECT a FROM kept") == "7"


def test_stopping_twice_is_stopping_once(server: EmbeddedPostgres) -> None:
    server.initialise()
    server.start()
    server.stop()
    server.stop()
    assert server.postmaster() is None


def test_nobody_else_reaches_its_socket(server: EmbeddedPostgres) -> None:
    server.initialise()
    assert server.folder.stat().st_mode & 0o077 == 0


def test_without_tcp_it_listens_nowhere(server: EmbeddedPostgres) -> None:
    server.initialise()
    server.start()
    assert server.psql("SHOW listen_addresses") == ""


def test_an_error_stops_a_script(server: EmbeddedPostgres) -> None:
    server.initialise()
    server.start()
    with pytest.raises(EmbeddedUnavailable, match='relation "missing" does not exist'):
        server.psql("SELECT * FROM missing; CREATE TABLE not_made ()")
    assert server.psql("SELECT to_regclass('not_made') IS NULL") == "t"


def test_a_path_too_long_for_a_socket_is_told(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / ("x" * 100))
    with pytest.raises(EmbeddedUnavailable, match="too long"):
        server.start()
