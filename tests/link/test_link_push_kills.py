"""A kill, a power cut, an hour without a network in the audit push: the control plane has each event once, or it is told."""

import copy
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trio.testing

from gatewayd.audit.file import AuditFile
from gatewayd.audit.ids import RisingIds
from gatewayd.audit.pruning import plan_pruning
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.service import open_audit
from gatewayd.keys.identity import load_identity
from gatewayd.link.formats.answers import TreeHead
from gatewayd.link.formats.bundle import AuditTerms
from tests.link.pushed import Between, messages, pushing, record, until
from tests.link.stand_in import Answer, Tree

FRAME = 4096 + 24


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """What is slower than this in a thread only lets a pause end sooner."""
    return trio.testing.MockClock(autojump_threshold=0.01)


def away(path: str, data: bytes) -> Answer:
    return 503, b""


def fork(file: AuditFile) -> None:
    file.begin_instance("fork", 4)


def prune(file: AuditFile) -> None:
    """What is acknowledged, in pieces."""
    with closing(connect_for_reading(str(file.path))) as reader:
        (cursor,) = reader.execute("SELECT id FROM audit_events WHERE seq = 3").fetchone()
        plan = plan_pruning(reader, file.meta, cursor, 3)
    file.keep_plan(plan)
    while file.delete_before(cursor, 1, plan):
        pass


def killed(folder: Path, places: Path, work: Callable[[AuditFile], None]) -> Iterator[Path]:
    """Folders with the file as a kill leaves it after each half of each frame that `work` writes to the log."""
    identity = load_identity(str(folder))
    assert identity is not None
    path, log = folder / "audit.db", folder / "audit.db-wal"
    file = AuditFile(str(path), "normal", identity)
    file.start(RisingIds(os.urandom))
    data, before = path.read_bytes(), log.read_bytes()
    work(file)
    after = log.read_bytes()
    assert path.read_bytes() == data
    file.close()
    for end in range(32, len(after) + 1, FRAME // 2):
        if after[:end] == before[:end] and end < len(before):
            continue
        place = places / str(end)
        shutil.copytree(folder, place)
        (place / "audit.db").write_bytes(data)
        (place / "audit.db-wal").write_bytes(after[:end] + before[end:])
        (place / "audit.db-shm").unlink(missing_ok=True)
        yield place


@pytest.mark.parametrize("work", [fork, prune])
async def test_killed_at_each_step_of_a_fork_or_of_pruning_every_event_arrives_once(
    work: Callable[[AuditFile], None], tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    between, folder = Between(), tmp_path / "gateway"
    between.terms = AuditTerms(retention_h=10**6)
    folder.mkdir()
    async with pushing(between, folder) as audit:
        await record(audit, 3)
        await until(lambda: len(between.control.held()) == 3)
    gateway = between.control.the_gateway()
    (first,) = gateway.trees
    if work is fork:
        gateway.trees[first].leaves.append(b"\1" * 32)  # what this file never said
    held = TreeHead(first, len(gateway.trees[first].leaves), gateway.trees[first].range().root().hex())
    async with open_audit(str(folder / "audit.db")) as audit:
        await record(audit, 2)
    trees = gateway.trees
    begun: set[int] = set()
    for place in killed(folder, tmp_path, work):
        gateway.trees = copy.deepcopy(trees)
        gateway.newest_instance = first
        async with pushing(between, place, held) as audit:
            begun.add(len((await audit.meta()).previous_instances) if work is fork else (await audit.meta()).pruned_to)
            await until(lambda: len(between.control.held()) == 5)
            meta = await audit.meta()
        assert [row.seq for row in between.control.held()] == [1, 2, 3, 4, 5]
        assert len({row.row["id"] for row in between.control.held()}) == 5
        assert [each.reason for each in meta.previous_instances] == (["fork"] if work is fork else [])
        assert len(gateway.trees) == (2 if work is fork else 1)
    assert begun >= {0, 1 if work is fork else 3}, "killed before it was done, and after"


@pytest.mark.parametrize("disk", ["honest", "lies"])
async def test_after_a_power_cut_what_was_acknowledged_is_there_or_the_file_forks(
    disk: str,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`synchronous=NORMAL`: a commit is on the disk when the log is synced next, which the push does before rows leave. A disk
    that only says so is found out by the control plane."""
    between, folder, cut = Between(), tmp_path / "gateway", tmp_path / "cut"
    between.terms = AuditTerms(retention_h=10**6)
    folder.mkdir()
    fsync, on_disk = os.fsync, dict[str, bytes]()

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("audit.db-wal") and (disk == "honest" or not on_disk):
            on_disk.update({name: (folder / name).read_bytes() for name in ("audit.db", "audit.db-wal")})

    monkeypatch.setattr(os, "fsync", synced)
    async with pushing(between, folder) as audit:
        await record(audit, 3)
        await until(lambda: len(between.control.held()) == 3)
        await record(audit, 3)
        await until(lambda: len(between.control.held()) == 6)
        handle = between.control.handle
        between.control.handle = away  # type: ignore[method-assign]
        frozen = dict(on_disk)
        await record(audit, 1)  # is in memory alone
        shutil.copytree(folder, cut)
    between.control.handle = handle  # type: ignore[method-assign]
    for name, data in frozen.items():
        (cut / name).write_bytes(data)
    (cut / "audit.db-shm").unlink(missing_ok=True)
    gateway = between.control.the_gateway()
    (first,) = gateway.trees
    acknowledged = [(row.seq, row.row["id"]) for row in between.control.held()]
    assert len(acknowledged) == 6
    messages(capfd)
    tree: Tree = gateway.trees[first]
    async with pushing(between, cut, TreeHead(first, len(tree.leaves), tree.range().root().hex())) as audit:
        await record(audit, 2)
        await until(lambda: len(between.control.held()) == 8)
    held = [(row.seq, row.row["id"]) for row in between.control.held()]
    assert held[:6] == acknowledged
    forked = [line for line in messages(capfd) if line["msg"] == "audit file forked from what the control plane holds"]
    if disk == "honest":
        assert [seq for seq, _ in held] == [1, 2, 3, 4, 5, 6, 7, 8]
        assert (forked, len(gateway.trees)) == ([], 1)
    else:
        assert [line["seq"] for line in forked] == [4], "events that were acknowledged are gone here"
        assert len(gateway.trees) == 2


async def test_an_hour_without_a_network_costs_few_attempts_and_no_event(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    between = Between()
    between.terms = AuditTerms(retention_h=10**6)
    async with pushing(between, tmp_path) as audit:
        await record(audit, 2)
        await until(lambda: len(between.control.held()) == 2)
        handle, tried = between.control.handle, len(between.sent)
        between.control.handle = away  # type: ignore[method-assign]
        await record(audit, 2)
        await trio.sleep(3600)  # of a clock that jumps
        assert 8 <= len(between.sent) - tried <= 30
        await record(audit, 2)
        between.control.handle = handle  # type: ignore[method-assign]
        await until(lambda: len(between.control.held()) == 6)
        await trio.sleep(60)  # the last answer is taken
    assert [row.seq for row in between.control.held()] == [1, 2, 3, 4, 5, 6]
    assert [line["msg"] for line in messages(capfd)] == ["audit push failed", "audit push recovered"]
