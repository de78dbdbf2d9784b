"""The audit push against each answer of its table: a real audit file, answers of the stand-in's own code, a clock that jumps."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.audit.erasing import ErasureChoice
from gatewayd.audit.service import open_audit
from gatewayd.audit.tree import CompactRange
from gatewayd.link.batches import Batch
from gatewayd.link.formats.answers import TreeHead
from gatewayd.link.formats.bundle import AuditTerms
from gatewayd.link.formats.rows import AuditBody
from tests.audit.audit_calls import Calls
from tests.audit.recorded import faults_of
from tests.link.pushed import Between, messages, pushing, record, until
from tests.link.stand_in import Answer


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """What is slower than this in a thread only lets a pause end sooner."""
    return trio.testing.MockClock(autojump_threshold=0.01)


def span(sent: Any) -> tuple[int, int]:
    """The first and the last event of a batch that was sent."""
    body = msgspec.json.decode(bytes(sent.body))
    return body["from_seq"], body["to_seq"]


async def test_a_refused_batch_is_halved_down_to_the_event_and_none_is_skipped(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    between = Between()
    handle = between.control.handle

    def refusing(path: str, data: bytes) -> Answer:
        from gatewayd.keys.envelope import parse

        body = msgspec.json.decode(parse(data).payload)["body"]
        return (422, b"{}") if body["from_seq"] <= 6 <= body["to_seq"] else handle(path, data)

    between.control.handle = refusing  # type: ignore[method-assign]
    async with pushing(between, tmp_path) as audit:
        await record(audit, 10)
        await until(lambda: len(between.control.held()) == 5 and len(between.sent) > 6 and span(between.sent[-1]) == (6, 6))
        between.control.handle = handle  # type: ignore[method-assign]
        await until(lambda: len(between.control.held()) == 10)
    lines = messages(capfd)
    assert [(line["msg"], line.get("from"), line.get("to")) for line in lines] == [
        ("control plane refused audit events", 6, 6),
        ("audit push recovered", None, None),
    ]


@pytest.mark.parametrize("taken", ["the control plane had them before", "they never arrived"])
async def test_what_is_erased_while_it_is_pushed_is_pushed_erased_and_proves_the_same(
    taken: str, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    between, calls = Between(), Calls()
    handle, lost = between.control.handle, True

    def losing(path: str, data: bytes) -> Answer:
        if lost and taken == "they never arrived":
            return 503, b""
        answer = handle(path, data)
        return (503, b"") if lost else answer

    between.control.handle = losing  # type: ignore[method-assign]
    async with pushing(between, tmp_path) as audit:
        await record(audit, 2)
        personal = await calls.whole(audit, "SELECT 'Ada Lovelace'")
        await calls.whole(audit, "SELECT 'kept'")
        await until(lambda: bool(between.sent) and span(between.sent[-1]) == (1, 8))
        assert await audit.erase(ErasureChoice((personal.query_id,)), "asked for") > 0
        tried, lost = len(between.sent), False
        await until(lambda: len(between.control.held()) == 9)
    sent_since = b"".join(bytes(request.body) for request in between.sent[tried:])
    assert b"Lovelace" not in sent_since
    assert b"kept" in sent_since
    held = between.control.held()
    assert [row.seq for row in held] == list(range(1, 10))
    assert held[-1].row["event_type"] == "ERASED"
    assert faults_of(tmp_path / "audit.db", keys=()) == []


async def test_429_is_silent_for_two_minutes_and_then_told(
    tmp_path: Path, mock_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    between = Between()
    between.change = lambda _answer: (429, b"")
    body = AuditBody("01JINSTANCE", 1, 1, 3, (), 3, "00" * 32)
    async with open_audit(str(tmp_path / "audit.db")) as audit:
        push = between.push(audit)
        spent_s = 0.0
        told_at: list[tuple[str, int, int, int]] = []
        while len(told_at) < 3:
            wait_s = await push.send(Batch(body, CompactRange(), (), ()))
            told_at += [(line["msg"], round(spent_s), line["from"], line["to"]) for line in messages(capfd)]
            assert 3.9 <= wait_s <= 6.1
            mock_clock.jump(wait_s)
            spent_s += wait_s
    assert [msg for msg, *_ in told_at] == [
        "audit push waiting (control plane keeps answering 429)",
        "audit push failed",
        "audit push failed",
    ]
    assert told_at[0][1] in range(120, 127)
    assert told_at[0][2:] == (1, 3)


async def test_another_event_held_at_a_seq_forks_the_file_once(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    between = Between()
    async with pushing(between, tmp_path) as audit:
        await record(audit, 3)
        await until(lambda: len(between.control.held()) == 3)
        gateway = between.control.the_gateway()
        (first,) = gateway.trees
        tree = gateway.trees[first]
        tree.leaves.append(b"\1" * 32)  # what this file never said
        await record(audit, 2)
        await until(lambda: len(gateway.trees) == 2 and len(between.control.held()) == 5)
        meta = await audit.meta()
        assert [each.reason for each in meta.previous_instances] == ["fork"]
        assert meta.first_seq == 4
        second, count = str(meta.instance), len(between.sent)
        gateway.trees[second].leaves.append(b"\2" * 32)
        await record(audit, 1)
        await until(lambda: len(between.sent) > count + 3)
        assert [each.instance for each in (await audit.meta()).previous_instances] == [first]
    found = messages(capfd)
    assert [line["msg"] for line in found] == [
        "audit file forked from what the control plane holds",
        "control plane holds another event for the new instance too",
    ]
    assert found[0]["from"] == first


@pytest.mark.parametrize("differs", [0, 1, 70, 198, 199])
async def test_the_first_difference_of_a_fork_is_found_by_halving(
    differs: int, tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rows that were acknowledged long ago are held otherwise, as after somebody changed the file: no batch comes near them."""
    between = Between()
    between.terms = AuditTerms(retention_h=10**6)
    async with pushing(between, tmp_path) as audit:
        await record(audit, 200)
        await until(lambda: len(between.control.held()) == 200)
        gateway = between.control.the_gateway()
        (first,) = gateway.trees
        gateway.trees[first].leaves[differs] = b"\1" * 32
        count = len(between.sent)
        await record(audit, 1)
        await until(lambda: len(gateway.trees) == 2 and len(between.control.held()) == 401 - differs)
        meta = await audit.meta()
        assert [(each.instance, each.size, each.reason) for each in meta.previous_instances] == [(first, differs, "fork")]
        assert meta.first_seq == differs + 1
        assert len(between.sent) - count <= 1 + 8 + 1 + 1, "one conflict, log2(200) rows, the difference itself, the rest"
    (forked,) = messages(capfd)
    assert (forked["from"], forked["seq"]) == (first, differs + 1)


async def test_rows_of_an_ended_instance_that_are_held_otherwise_are_told(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    """Restored from a backup, it recorded other rows and then went on as a new instance, all of it without the control plane."""
    between = Between()
    async with pushing(between, tmp_path) as audit:
        await record(audit, 6)
        await until(lambda: len(between.control.held()) == 6)
        await audit.begin_instance("damaged")
    gateway = between.control.the_gateway()
    (first,) = gateway.trees
    tree = gateway.trees[first]
    tree.leaves[4:] = [b"\1" * 32, b"\2" * 32, b"\3" * 32]
    tree.rows = {seq: row for seq, row in tree.rows.items() if seq <= 4}
    async with pushing(between, tmp_path, TreeHead(first, 7, tree.range().root().hex())) as audit:
        await record(audit, 2)
        await until(lambda: len(gateway.trees) == 2 and len(between.control.held()) == 6)
    told_of = [(line["msg"], line.get("from"), line.get("to"), line.get("seq")) for line in messages(capfd)]
    assert told_of == [
        ("audit file forked from what the control plane holds", first, None, 7),
        ("control plane refused audit events", 6, 6, None),
        ("audit push recovered", None, None, None),
    ]


async def test_a_conflict_that_shows_our_own_event_or_has_no_proof_is_no_conflict(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    from gatewayd.keys.envelope import parse, sign

    between = Between()
    async with pushing(between, tmp_path) as audit:
        await record(audit, 1)
        await until(lambda: len(between.control.held()) == 1)
        tree = next(iter(between.control.the_gateway().trees.values()))
        tree.leaves.append(b"\1" * 32)

        def without_proof(answer: Answer) -> Answer:
            envelope = parse(answer[1])
            fields = {**msgspec.json.decode(envelope.payload), "leaf": "02" * 32}
            return 409, sign(envelope.payload_type, msgspec.json.encode(fields), [between.control.working])

        between.change = without_proof
        count = len(between.sent)
        await record(audit, 1)
        await until(lambda: len(between.sent) > count + 2)
        assert (await audit.meta()).previous_instances == ()
    assert [line["msg"] for line in messages(capfd)] == ["control plane audit answer did not verify"]


async def test_a_control_plane_that_lost_events_gets_them_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    between = Between()
    async with pushing(between, tmp_path) as audit:
        await record(audit, 6)
        await until(lambda: len(between.control.held()) == 6)
    tree = next(iter(between.control.the_gateway().trees.values()))
    del tree.leaves[2:]
    tree.rows = {seq: row for seq, row in tree.rows.items() if seq <= 2}
    instance = next(iter(between.control.the_gateway().trees))
    held = TreeHead(instance, 2, tree.range().root().hex())
    async with pushing(between, tmp_path, held):
        await until(lambda: [row.seq for row in between.control.held()] == [1, 2, 3, 4, 5, 6])
    (lost,) = messages(capfd)
    assert (lost["msg"], lost["from"], lost["to"]) == ("control plane lost acknowledged audit events", 3, 6)
