"""Who commits: the loop's own thread what is a matter of memory, the writer's thread whatever may wait for a disk."""

import sqlite3
import threading
import time
from collections.abc import Sequence

import pytest
import trio
import trio.testing

from gatewayd.audit.file import AuditFile
from gatewayd.audit.pace import Pace
from gatewayd.audit.rows import Row
from gatewayd.audit.service import Audit, open_audit
from tests.audit.audit_calls import Calls, FileView

LOOP, THREAD, CARRIED = "loop", "thread", "carried over"
CALM = Pace(rest_s=1000, slow_s=1000)  # a crowded machine is not what these tests are about


class Noted(AuditFile):
    """Grows a list by a name per transaction of rows and per checkpoint."""

    commits: list[str]

    def insert(self, rows: Sequence[tuple[str, Row]]) -> None:
        self.commits.append(LOOP if threading.current_thread() is threading.main_thread() else THREAD)
        super().insert(rows)

    def checkpoint(self) -> None:
        super().checkpoint()
        self.commits.append(CARRIED)


@pytest.fixture
def commits() -> list[str]:
    return []


@pytest.fixture
def noted(commits: list[str]) -> type[Noted]:
    return type("NotedHere", (Noted,), {"commits": commits})


async def until_the_loop_commits(audit: Audit, calls: Calls, commits: list[str]) -> None:
    """The thread may still be at it when calls come: it takes them too then."""
    commits.clear()
    while commits[-2:] != [LOOP, LOOP]:
        assert len(commits) < 100
        await calls.whole(audit)
    commits.clear()


async def test_the_thread_begins_a_log_and_the_loop_goes_on(
    path: str, calls: Calls, view: FileView, commits: list[str], noted: type[Noted]
) -> None:
    async with open_audit(path, pace=CALM, file_type=noted) as audit:
        await calls.whole(audit)
        assert commits[0] == THREAD
        await until_the_loop_commits(audit, calls, commits)
    assert {events[-1] for events in view.events(path).values()} == {"EXECUTED"}


async def test_every_commit_that_syncs_is_the_threads(path: str, calls: Calls, commits: list[str], noted: type[Noted]) -> None:
    async with open_audit(path, "full", pace=CALM, file_type=noted) as audit:
        await calls.whole(audit)
        await calls.whole(audit)
        assert commits == [THREAD] * 4


async def test_after_a_checkpoint_the_thread_begins_the_log_again(
    path: str, calls: Calls, commits: list[str], noted: type[Noted]
) -> None:
    async with open_audit(path, pace=Pace(rest_s=0.1, slow_s=1000), file_type=noted) as audit:
        await until_the_loop_commits(audit, calls, commits)
        await calls.whole(audit)
        while commits[-1] != CARRIED:  # noqa: ASYNC110 - another thread does it, after a rest
            await trio.sleep(0.01)
        before = len(commits)
        await calls.whole(audit)
        assert commits[before] == THREAD
        await until_the_loop_commits(audit, calls, commits)


async def test_a_long_log_is_carried_over(path: str, calls: Calls, commits: list[str], noted: type[Noted]) -> None:
    async with open_audit(path, pace=Pace(rest_s=1000, slow_s=1000, log_pages=500), file_type=noted) as audit:
        while commits.count(THREAD) < 4:
            await calls.whole(audit)
            assert audit.statistics().wal_bytes < 2 * 500 * 4096
    assert commits.count(LOOP) > 50


async def test_a_slow_disk_leaves_the_loop_alone(path: str, calls: Calls, commits: list[str], noted: type[Noted]) -> None:
    is_slow = threading.Event()

    class Slow(noted):  # type: ignore[misc, valid-type]  # made by the fixture
        def insert(self, rows: Sequence[tuple[str, Row]]) -> None:
            super().insert(rows)
            if is_slow.is_set() and self.commits[-1] == LOOP:
                time.sleep(0.5)

    async with open_audit(path, pace=Pace(rest_s=1000, slow_s=0.5, slow_for_s=1000), file_type=Slow) as audit:
        await until_the_loop_commits(audit, calls, commits)
        is_slow.set()
        while LOOP not in commits:
            await calls.whole(audit)
        commits.clear()
        for _ in range(3):
            await calls.whole(audit)
    assert commits[1:6] == [THREAD] * 5  # the first may be the closing row of the call before


async def test_the_loop_never_waits_for_another_process(
    path: str, calls: Calls, view: FileView, commits: list[str], noted: type[Noted]
) -> None:
    async with open_audit(path, pace=CALM, file_type=noted) as audit, trio.open_nursery() as nursery:
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


async def test_what_is_handed_over_together_is_committed_together(
    path: str, calls: Calls, commits: list[str], noted: type[Noted]
) -> None:
    async with open_audit(path, pace=CALM, file_type=noted) as audit:
        for _ in range(20):  # the thread may still be at it, however late, and take some of them
            await until_the_loop_commits(audit, calls, commits)
            async with trio.open_nursery() as nursery:
                for _ in range(32):
                    nursery.start_soon(calls.whole, audit)
            if commits == [LOOP, LOOP]:
                return
    raise AssertionError(commits)


async def test_a_long_statement_is_the_threads(path: str, calls: Calls, commits: list[str], noted: type[Noted]) -> None:
    async with open_audit(path, pace=CALM, file_type=noted) as audit:
        await until_the_loop_commits(audit, calls, commits)
        await calls.whole(audit, "SELECT '" + "x" * 2**20 + "'")
    assert commits[0] == THREAD


async def test_a_bug_in_a_commit_ends_the_service(path: str, calls: Calls) -> None:
    is_broken = threading.Event()

    class Broken(AuditFile):
        def insert(self, rows: Sequence[tuple[str, Row]]) -> None:
            if is_broken.is_set():
                raise RuntimeError("a bug in the commit")
            super().insert(rows)

    async def call_and_serve() -> None:
        async with open_audit(path, pace=CALM, file_type=Broken) as audit:
            await calls.whole(audit)
            is_broken.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(calls.whole, audit)

    with pytest.raises(ExceptionGroup) as caught:
        await call_and_serve()
    assert caught.group_contains(RuntimeError, match="a bug in the commit")


async def test_who_asks_whether_the_writer_answers_does_not_wait_for_commit_and_checkpoint(path: str, calls: Calls) -> None:
    """Each may take three syncs, and the watchdog waits for that answer."""
    done: list[str] = []
    begun, asked = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    class Standing(AuditFile):
        def insert(self, rows: Sequence[tuple[str, Row]]) -> None:
            token.run_sync_soon(begun.set)
            asked.wait()
            super().insert(rows)
            done.append("commit")

        def checkpoint(self) -> None:
            done.append("checkpoint")
            super().checkpoint()

    async with (
        open_audit(path, "full", pace=Pace(rest_s=1000, slow_s=1000, log_pages=1), file_type=Standing) as audit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(calls.refuse, audit, calls.query())
        await begun.wait()
        nursery.start_soon(audit.call, lambda _file: done.append("answer"))
        await trio.testing.wait_all_tasks_blocked()
        asked.set()
    assert done[:3] == ["commit", "answer", "checkpoint"]
