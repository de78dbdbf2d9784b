"""Who commits: the loop's own thread what is a matter of memory, the writer's thread whatever may wait for a disk."""

import sqlite3
import threading
import time

import pytest
import trio
import trio.testing

from gatewayd.audit.file import AuditFile
from gatewayd.audit.pace import Pace
from gatewayd.audit.service import Audit, open_audit
from tests.audit.audit_calls import Calls, FileView

LOOP, THREAD = "loop", "thread"
CALM = Pace(rest_s=1000, slow_s=1000)  # a crowded machine is not what these tests are about


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by a name per transaction of rows."""
    made: list[str] = []
    insert = AuditFile.insert

    def noted(file: AuditFile, rows: object) -> None:
        made.append(LOOP if threading.current_thread() is threading.main_thread() else THREAD)
        insert(file, rows)  # type: ignore[arg-type]  # handed through as they came

    monkeypatch.setattr(AuditFile, "insert", noted)
    return made


async def until_the_loop_commits(audit: Audit, calls: Calls, commits: list[str]) -> None:
    """The thread may still be at it when calls come: it takes them too then."""
    commits.clear()
    while commits[-2:] != [LOOP, LOOP]:
        assert len(commits) < 100
        await calls.whole(audit)
    commits.clear()


async def test_the_thread_begins_a_log_and_the_loop_goes_on(path: str, calls: Calls, view: FileView, commits: list[str]) -> None:
    async with open_audit(path, pace=CALM) as audit:
        await calls.whole(audit)
        assert commits[0] == THREAD
        await until_the_loop_commits(audit, calls, commits)
    assert {events[-1] for events in view.events(path).values()} == {"EXECUTED"}


async def test_every_commit_that_syncs_is_the_threads(path: str, calls: Calls, commits: list[str]) -> None:
    async with open_audit(path, "full", pace=CALM) as audit:
        await calls.whole(audit)
        await calls.whole(audit)
    assert commits == [THREAD] * 4


async def test_after_a_checkpoint_the_thread_begins_the_log_again(path: str, calls: Calls, commits: list[str]) -> None:
    async with open_audit(path, pace=CALM) as audit:
        await until_the_loop_commits(audit, calls, commits)
        with audit._queue._committer.owner:
            audit._queue._committer.checkpoint()
        await calls.whole(audit)
        assert commits[0] == THREAD
        await until_the_loop_commits(audit, calls, commits)


async def test_a_long_log_is_carried_over(path: str, calls: Calls, commits: list[str]) -> None:
    async with open_audit(path, pace=Pace(rest_s=1000, slow_s=1000, log_pages=500)) as audit:
        while commits.count(THREAD) < 4:
            await calls.whole(audit)
            assert audit.statistics().wal_bytes < 2 * 500 * 4096
    assert commits.count(LOOP) > 50


async def test_a_slow_disk_leaves_the_loop_alone(
    path: str, calls: Calls, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = AuditFile.insert

    def slow(file: AuditFile, rows: object) -> None:
        time.sleep(0.01)
        noted(file, rows)  # type: ignore[arg-type]  # handed through as they came

    async with open_audit(path, pace=CALM) as audit:
        await until_the_loop_commits(audit, calls, commits)
        monkeypatch.setattr(AuditFile, "insert", slow)
        audit._queue._committer.pace = Pace(rest_s=1000, slow_s=0.01, slow_for_s=1000)
        while LOOP not in commits:
            await calls.whole(audit)
        commits.clear()
        for _ in range(3):
            await calls.whole(audit)
    assert commits[1:] == [THREAD] * 5  # the first may be the closing row of the call before


async def test_the_loop_never_waits_for_another_process(path: str, calls: Calls, view: FileView, commits: list[str]) -> None:
    async with open_audit(path, pace=CALM) as audit, trio.open_nursery() as nursery:
        await until_the_loop_commits(audit, calls, commits)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        nursery.start_soon(calls.whole, audit)
        with trio.fail_after(60):
            while THREAD not in commits:  # noqa: ASYNC110 - the thread waits for the holder, and this loop goes round
                await trio.sleep(0.01)
        holder.execute("COMMIT")
        holder.close()
    assert {events[-1] for events in view.events(path).values()} == {"EXECUTED"}


async def test_what_is_handed_over_together_is_committed_together(path: str, calls: Calls, commits: list[str]) -> None:
    async with open_audit(path, pace=CALM) as audit:
        for _ in range(20):  # the thread may still be at it, however late, and take some of them
            await until_the_loop_commits(audit, calls, commits)
            async with trio.open_nursery() as nursery:
                for _ in range(32):
                    nursery.start_soon(calls.whole, audit)
            if commits == [LOOP, LOOP]:
                return
    raise AssertionError(commits)


async def test_a_long_statement_is_the_threads(path: str, calls: Calls, commits: list[str]) -> None:
    async with open_audit(path, pace=CALM) as audit:
        await until_the_loop_commits(audit, calls, commits)
        await calls.whole(audit, "SELECT '" + "x" * 2**20 + "'")
    assert commits[0] == THREAD


async def test_a_bug_in_a_commit_ends_the_service(path: str, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(_file: AuditFile, _rows: object) -> None:
        raise RuntimeError("a bug in the commit")

    async def call_and_serve() -> None:
        async with open_audit(path, pace=CALM) as audit:
            await calls.whole(audit)
            monkeypatch.setattr(AuditFile, "insert", bug)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(calls.whole, audit)

    with pytest.raises(ExceptionGroup) as caught:
        await call_and_serve()
    assert caught.group_contains(RuntimeError, match="a bug in the commit")


async def test_who_asks_whether_the_writer_answers_does_not_wait_for_commit_and_checkpoint(
    path: str, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may take three syncs, and the watchdog waits for that answer."""
    done: list[str] = []
    begun, asked = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()
    insert, checkpoint = AuditFile.insert, AuditFile.checkpoint

    def inserting(file: AuditFile, rows: object) -> None:
        token.run_sync_soon(begun.set)
        asked.wait()
        insert(file, rows)  # type: ignore[arg-type]  # handed through as they came
        done.append("commit")

    def carrying_over(file: AuditFile) -> None:
        done.append("checkpoint")
        checkpoint(file)

    monkeypatch.setattr(AuditFile, "insert", inserting)
    monkeypatch.setattr(AuditFile, "checkpoint", carrying_over)
    async with (
        open_audit(path, "full", pace=Pace(rest_s=1000, slow_s=1000, log_pages=1)) as audit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(calls.refuse, audit, calls.query())
        await begun.wait()
        nursery.start_soon(audit._queue.call, lambda _file: done.append("answer"))
        await trio.testing.wait_all_tasks_blocked()
        asked.set()
    assert done[:3] == ["commit", "answer", "checkpoint"]
