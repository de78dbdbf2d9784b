"""What the disk can do to the file: nothing counts that is not in it, both log lines come once, and it recovers by itself."""

import os
import resource
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.audit.events import Executed
from gatewayd.audit.file import AuditFile
from gatewayd.audit.pace import Pace
from gatewayd.audit.service import Audit, AuditFileLocked, AuditUnavailable, open_audit
from tests.audit.audit_calls import Calls, FileView


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """Writes past `size` fail with EFBIG in this process: a full disk for anybody who may not mount one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def messages(text: str) -> list[str]:
    """All of them but the signed heads, which come when they come."""
    found = [msgspec.json.decode(line)["msg"] for line in text.splitlines()]
    return [each for each in found if each != "audit checkpoint"]


async def unavailable(audit: Audit, calls: Calls, reason: str, sql: str = "SELECT 1") -> None:
    with pytest.raises(AuditUnavailable, match=reason) as failed:
        await calls.permit(audit, calls.query(), sql)
    assert audit.path not in failed.value.reason  # an agent reads it


async def given_up(audit: Audit) -> None:
    """The file is closed after any failure, and is opened anew for the next that needs it."""

    def fail(_file: AuditFile) -> None:
        raise OSError("as a disk would")

    with pytest.raises(AuditUnavailable):
        await audit.call(fail)


async def test_a_file_that_cannot_grow_refuses_everything_and_recovers(
    path: str, calls: Calls, view: FileView, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_audit(path) as audit:
        first = await calls.whole(audit)
        with no_file_grows_beyond(4096):
            for _ in range(3):
                await unavailable(audit, calls, "disk|full")
            assert not audit.statistics().available
            assert audit.statistics().failures >= 3
            await audit.answers()  # the writer lives: no reason for a watchdog to restart it
        later = await calls.whole(audit)
        assert audit.statistics().available
    assert messages(capfd.readouterr().err) == ["audit unavailable", "audit recovered"]
    assert view.events(path) == {permit.query_id: ["ATTEMPTED", "DECIDED ALLOW", "EXECUTED"] for permit in (first, later)}
    assert later.audit_id > first.audit_id


async def test_a_full_disk_refuses_everything_and_recovers(
    small_disk: Path, calls: Calls, view: FileView, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(small_disk / "audit.db")
    async with open_audit(path) as audit:
        await calls.whole(audit)
        ballast = small_disk / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(b"\0" * (1 << 21))
        for _ in range(3):
            await unavailable(audit, calls, "full|disk", sql="x" * 100_000)
        ballast.unlink()
        await calls.whole(audit)
    assert messages(capfd.readouterr().err) == ["audit unavailable", "audit recovered"]
    assert [events[-1] for events in view.events(path).values()] == ["EXECUTED"] * 2


async def test_a_disk_turned_read_only_refuses_everything_and_recovers(small_disk: Path, calls: Calls, view: FileView) -> None:
    path = str(small_disk / "audit.db")
    async with open_audit(path) as audit:
        await calls.whole(audit)
        await given_up(audit)  # a mount with a file open for writing cannot be turned
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        await unavailable(audit, calls, "read-?only|unable to open")
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        await calls.whole(audit)
    assert [events[-1] for events in view.events(path).values()] == ["EXECUTED"] * 2


@pytest.mark.parametrize("leftovers", [[], ["-wal"], ["-wal", "-shm"]])
async def test_a_deleted_file_is_made_anew_and_ids_go_on_rising(
    path: str, calls: Calls, view: FileView, capfd: pytest.CaptureFixture[str], leftovers: list[str]
) -> None:
    async with open_audit(path) as audit:
        before = await calls.whole(audit)
        for suffix in {"", "-wal", "-shm"} - set(leftovers):
            os.unlink(path + suffix)
        after = await calls.whole(audit)
        assert view.events(path) == {after.query_id: ["ATTEMPTED", "DECIDED ALLOW", "EXECUTED"]}
    assert after.audit_id > before.audit_id
    assert messages(capfd.readouterr().err) == ["audit unavailable", "audit recovered"]
    assert view.run(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_query_whose_attempt_went_with_a_deleted_file_gets_no_permit(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit, trio.open_nursery() as nursery:
        committed = trio.Event()
        audit.on_commit(lambda _seconds, _rows: committed.set())
        lost, running = calls.query(), calls.query()
        await audit.attempted(lost, calls.attempted())
        await committed.wait()
        await calls.permit(audit, running)
        os.unlink(path)
        with pytest.raises(AuditUnavailable, match="replaced between the rows"):
            await audit.decided(lost, calls.allowed)
        await audit.closed(running, Executed(1, 1))  # it ran: half a record is better than none
        assert view.events(path) == {running.query_id: ["EXECUTED"]}
        nursery.cancel_scope.cancel()


async def test_a_file_put_in_its_place_is_taken_over_unharmed(path: str, tmp_path: Path, calls: Calls, view: FileView) -> None:
    other = str(tmp_path / "other.db")
    async with open_audit(other, clock_ms=lambda: 9_999_999_999_999) as audit:
        kept = await calls.whole(audit)
    async with open_audit(path) as audit:
        await calls.whole(audit)
        os.replace(other, path)  # its own -wal stays behind, and belongs to the file that is gone
        after = await calls.whole(audit)
    assert list(view.events(path)) == [kept.query_id, after.query_id]
    assert after.audit_id > kept.audit_id
    assert view.run(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_foreign_file_put_in_its_place_is_not_written(path: str, tmp_path: Path, calls: Calls, view: FileView) -> None:
    other = str(tmp_path / "other.db")
    view.run(other, "CREATE TABLE theirs (a)")
    async with open_audit(path) as audit:
        os.replace(other, path)
        await unavailable(audit, calls, "another program's")
        os.unlink(path)
        await calls.whole(audit)


async def test_a_deleted_folder_is_made_anew(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
        for file in Path(path).parent.iterdir():
            file.unlink()
        Path(path).parent.rmdir()
        await calls.whole(audit)
        assert len(view.rows(path)) == 3


async def test_a_folder_that_another_gatewayd_took_is_its_own(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
        shutil.rmtree(Path(path).parent)
        async with open_audit(path) as other:
            await unavailable(audit, calls, "another gatewayd")
            await calls.whole(other)
        await calls.whole(audit)
        assert len(view.rows(path)) == 6
        with pytest.raises(AuditFileLocked):
            async with open_audit(path):
                raise AssertionError("two owners")


async def test_a_foreign_transaction_is_waited_for_then_refused_then_survived(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path, pace=Pace(locked_by_others_ms=50)) as audit:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        await unavailable(audit, calls, "locked")
        holder.execute("ROLLBACK")
        holder.close()
        await calls.whole(audit)
    assert [events[-1] for events in view.events(path).values()] == ["EXECUTED"]


async def test_a_row_refused_for_the_one_before_it_is_no_recovery(
    path: str, calls: Calls, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_audit(path, pace=Pace(locked_by_others_ms=300)) as audit:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        query = calls.query()
        await audit.attempted(query, calls.attempted())
        await trio.testing.wait_all_tasks_blocked()  # the row has gone to its commit, so the next one comes in a batch behind it
        with pytest.raises(AuditUnavailable, match="locked"):
            await audit.decided(query, calls.allowed)
        assert not audit.statistics().available
        assert messages(capfd.readouterr().err) == ["audit unavailable"]
        holder.execute("ROLLBACK")
        holder.close()
        await calls.whole(audit)
        assert audit.statistics().available


async def test_a_damaged_file_is_refused_while_running(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
        await given_up(audit)
        Path(path).write_bytes(b"\xff" * 8192)
        await unavailable(audit, calls, "not a database")
        Path(path).unlink()
        await calls.whole(audit)


async def test_an_attempt_that_failed_gives_no_permit_though_the_disk_is_well_again(
    path: str, calls: Calls, view: FileView
) -> None:
    async with open_audit(path) as audit, trio.open_nursery() as nursery:
        query = calls.query()
        with no_file_grows_beyond(4096):
            await audit.attempted(query, calls.attempted())
            while not audit.statistics().failures:
                await audit.answers()
        await calls.whole(audit)
        for decision in (calls.allowed, calls.denied):
            with pytest.raises(AuditUnavailable):
                await audit.decided(query, decision)
        with pytest.raises(AuditUnavailable):
            await audit.closed(query, calls.cancelled)
        assert query.query_id not in view.events(path)
        nursery.cancel_scope.cancel()


async def test_rows_that_wait_behind_a_failed_attempt_are_not_written(path: str, calls: Calls, view: FileView) -> None:
    """ATTEMPTED fails in one batch while DECIDED and a cancelled call's FAILED already wait for the next."""
    standing, go_on = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    connections: list[sqlite3.Connection] = []

    class Refusing(AuditFile):
        def connect(self) -> sqlite3.Connection:
            connections.append(super().connect())
            return connections[-1]

    def fail(_file: AuditFile) -> None:
        connections[-1].execute("PRAGMA query_only = 1")
        token.run_sync_soon(standing.set)
        go_on.wait()

    query = calls.query()
    async with open_audit(path, file_type=Refusing) as audit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(audit.call, fail)
            await standing.wait()
            for _ in range(7):
                await audit.attempted(calls.query(), calls.attempted("x" * (1 << 20)))
            await audit.attempted(query, calls.attempted("x" * (1 << 20)))  # 8 MiB: the query's later rows are not of this batch

            async def cancelled() -> None:
                with trio.move_on_after(0):
                    await audit.decided(query, calls.allowed)
                with pytest.raises(AuditUnavailable):
                    await audit.closed(query, calls.cancelled)

            nursery.start_soon(cancelled)
            await trio.testing.wait_all_tasks_blocked()
            go_on.set()
        later = await calls.whole(audit)
    assert view.events(path) == {later.query_id: ["ATTEMPTED", "DECIDED ALLOW", "EXECUTED"]}
