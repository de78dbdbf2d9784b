"""The disk under a running gatewayd's audit file: nothing runs unaudited, everybody is told, and it mends without a restart."""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from gatewayd import log
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.session import connect
from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.daemon.daemon_rig import Agent, chains, gatewayd, kinds, running_there, until, variables
from tests.faults.audited import Daemon, daemon, executed, lines, tag_of
from tests.faults.disks import SlowDisk, full, no_file_grows, read_only, small_disk


@asynccontextmanager
async def held(there: Daemon) -> AsyncIterator[None]:
    """Every write to the table waits inside PostgreSQL until the end of the block."""
    locker = await connect(there.dsn, Limits())
    await locker.begin("READ WRITE")
    await locker.execute("LOCK TABLE written IN SHARE MODE")
    try:
        yield
    finally:
        await locker.rollback()
        locker.terminate()


async def test_full_then_read_only_then_well_again(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    with small_disk(tmp_path) as disk:
        async with daemon(postgres, disk, free_port) as there:
            assert not await there.is_refused("before", "")
            with full(disk):
                refusals = [await there.is_refused(f"full {number}", "full|disk") for number in range(8)]
                assert refusals[-1], "the disk was not full"
                await there.told(log.AUDIT_UNAVAILABLE)
                assert not await there.is_available()
                with read_only(disk):  # possible only because gatewayd has let go of the file
                    assert await there.is_refused("read-only", "read-only|readonly|unable to open")
            await there.until_written("after")
            await there.told(log.AUDIT_RECOVERED)
            assert await there.is_available()
            written = there.tags()
            assert written["after"] == 1
        assert executed(disk) == written
    assert (lines(there.running, log.AUDIT_UNAVAILABLE), lines(there.running, log.AUDIT_RECOVERED)) == (1, 1)
    assert lines(there.running, log.AUDIT_WRITE_AFTER_EXECUTION_FAILED) == 0


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


async def test_locked_by_a_foreign_process_then_deleted(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    path = tmp_path / "audit.db"
    async with daemon(postgres, tmp_path, free_port) as there:
        assert not await there.is_refused("before", "")
        with locked(path):
            assert await there.is_refused("locked", "locked")
            await there.told(log.AUDIT_UNAVAILABLE)
            assert not await there.is_available()
        await there.until_written("unlocked")
        await there.told(log.AUDIT_RECOVERED)
        assert executed(tmp_path) == there.tags() == Counter(("before", "unlocked"))

        for suffix in ("", "-wal", "-shm"):
            os.unlink(f"{path}{suffix}")
        await there.until_written("deleted")
        await there.told(log.AUDIT_UNAVAILABLE)
        await there.told(log.AUDIT_RECOVERED)
        assert await there.is_available()
        assert executed(tmp_path) == Counter(("deleted",)) == there.tags() - Counter(("before", "unlocked"))
    assert (path.stat().st_mode & 0o777) == 0o600


async def test_what_fails_between_permit_and_closing_row_is_said(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    """`audit write after execution failed`, once for each statement that ran and has no closing row, and for no other."""
    answers: dict[str, dict[str, Any]] = {}
    async with daemon(postgres, tmp_path, free_port) as there:

        async def write(tag: str) -> None:
            async with Agent(free_port) as agent:
                answers[tag] = await agent.query(f"INSERT INTO written VALUES ('{tag}')")

        async with trio.open_nursery() as nursery:
            with ExitStack() as disk:
                async with held(there):
                    for number in range(3):
                        nursery.start_soon(write, f"held {number}")
                    await until(lambda: there.postgres.query(WAITING, there.dsn) == [{"count": 3}])
                    disk.enter_context(no_file_grows(there.running.process.pid))
                    assert await there.is_refused("refused", "disk|full|large")
                while len(answers) < 3:  # noqa: ASYNC110 - bounded by daemon()
                    await trio.sleep(0.01)
                assert not await there.is_available()
        await there.until_written("after")
        ran = Counter(("held 0", "held 1", "held 2"))
        assert there.tags() == ran + Counter(("after",))
    assert all(answer["rowCount"] == 1 for answer in answers.values())  # they did run, and are answered so
    found = chains(tmp_path)
    unclosed = {query: chain for query, chain in found.items() if kinds(chain) == "ATTEMPTED ALLOW"}
    assert Counter(map(tag_of, unclosed.values())) == ran
    assert executed(tmp_path) == Counter(("after",))
    said = [json.loads(line) for line in there.running.text.splitlines() if log.AUDIT_WRITE_AFTER_EXECUTION_FAILED in line]
    assert sorted(line["query_id"] for line in said) == sorted(unclosed)
    assert str(tmp_path) not in str(said)


WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO written%'"


@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_an_fsync_that_hangs_holds_calls_back_and_nothing_else(
    synchronous: str, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    """In `full` the commit waits, in `normal` the next call behind a checkpoint; either way nothing runs ahead of its audit."""
    disk = SlowDisk(tmp_path)
    async with daemon(postgres, tmp_path, free_port, GATEWAY_AUDIT_SYNCHRONOUS=synchronous, **disk.variables) as there:
        assert not await there.is_refused("before", "")
        answers: list[dict[str, Any]] = []

        async def write(tag: str) -> None:
            async with Agent(free_port) as agent:
                answers.append(await agent.query(f"INSERT INTO written VALUES ('{tag}')"))

        async with trio.open_nursery() as nursery:
            with disk.waits():
                if synchronous == "normal":
                    answers.append(await there.write("0"))  # its checkpoint comes when the writer rests
                    await until(disk.begun.exists)
                for number in range(len(answers), 4):
                    nursery.start_soon(write, str(number))
                await until(disk.begun.exists)
                assert await there.is_available()
                assert there.tags().total() == 1 + len(answers)
                assert not running_there(postgres, "INSERT INTO written")
        assert [answer.get("rowCount") for answer in answers] == [1] * 4
        assert there.tags() == Counter(("before", "0", "1", "2", "3"))
    assert executed(tmp_path) == Counter(("before", "0", "1", "2", "3"))
    for line in (log.AUDIT_UNAVAILABLE, log.AUDIT_WRITE_AFTER_EXECUTION_FAILED):
        assert lines(there.running, line) == 0


@pytest.mark.soak
@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_fsyncs_of_five_seconds(synchronous: str, postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    """A disk that takes 5 s for each fsync is slow, not broken: every call is answered, and no closing row is given up."""
    disk = SlowDisk(tmp_path)
    async with daemon(postgres, tmp_path, free_port, GATEWAY_AUDIT_SYNCHRONOUS=synchronous, **disk.variables) as there:
        written: list[str] = []

        async def write_on(name: int) -> None:
            async with Agent(free_port) as agent:
                for number in range(3):
                    answer = await agent.query(f"INSERT INTO written VALUES ('{name}-{number}')")
                    assert answer["rowCount"] == 1
                    written.append(f"{name}-{number}")
                    await trio.sleep(name / 3)  # so that some come while another's fsync waits

        with disk.waits("5"):
            async with trio.open_nursery() as nursery:
                for name in range(6):
                    nursery.start_soon(write_on, name)
        assert there.tags() == Counter(written)
    assert executed(tmp_path) == Counter(written)
    assert lines(there.running, log.AUDIT_WRITE_AFTER_EXECUTION_FAILED) == 0


async def test_a_header_overwritten_under_us(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    """With its log a file heals: SQLite has the first page there. Without, nothing runs until the file is taken away."""
    path = tmp_path / "audit.db"
    async with daemon(postgres, tmp_path, free_port) as there:
        await there.until_written("before")
        with no_file_grows(there.running.process.pid):
            assert await there.is_refused("refused", "disk|full|large")  # and lets go of the file
            overwrite_header(path)
        await there.until_written("healed")
        assert executed(tmp_path) == Counter(("before", "healed"))
        with no_file_grows(there.running.process.pid):
            assert await there.is_refused("refused", "disk|full|large")
            overwrite_header(path)
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
        assert await there.is_refused("damaged", "not a database|malformed")
        assert not await there.is_available()
        path.unlink()
        await there.until_written("after")
        assert there.tags() == Counter(("before", "healed", "after"))
    assert executed(tmp_path) == Counter(("after",))
    assert lines(there.running, log.AUDIT_UNAVAILABLE) == lines(there.running, log.AUDIT_RECOVERED) == 2


def overwrite_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\xff" * 100)


def test_a_start_on_a_damaged_or_an_owned_file(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    (tmp_path / "audit.db").write_bytes(b"\xff" * 8192)
    given = {**variables(postgres.dsn(), tmp_path), "GATEWAY_HOST": "127.0.0.1", "PORT": "0"}
    refused = run(["serve"], {**given, "PORT": str(free_port)})
    assert refused.returncode == 78
    (line,) = [json.loads(line) for line in refused.stderr.splitlines() if log.CONFIGURATION_INVALID in line]
    assert "DB_PATH" in line["error"]
    assert "not a database" in line["error"]
    (tmp_path / "audit.db").unlink()
    with gatewayd(postgres.dsn(), tmp_path, free_port) as first:
        second = run(["serve"], {**given, "PORT": str(free_port)})
        assert second.returncode == 69
        assert "another gatewayd" in second.stderr
        assert first.stop() == 0
