"""The audit push against each answer of its table: a real audit file, answers of the stand-in's own code, a clock that jumps."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.audit.erasing import ErasureChoice
from gatewayd.audit.events import Agent, Event, PolicyReloaded, Query, QueryId
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.service import Audit, open_audit
from gatewayd.audit.tree import CompactRange
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.batches import Batch
from gatewayd.link.client import ControlAnswer, LinkClock, Unreachable
from gatewayd.link.formats.answers import TreeHead
from gatewayd.link.formats.bundle import AuditTerms
from gatewayd.link.formats.documents import read
from gatewayd.link.formats.requests import LinkRequest, RequestKind, SentRequest, sign_request
from gatewayd.link.formats.rows import AuditBody
from gatewayd.link.formats.trust import Trust
from gatewayd.link.push import Push
from tests.audit.audit_calls import Calls
from tests.audit.recorded import faults_of
from tests.link.stand_in import Answer, Gateway, StandIn, told

IDENTITY = SigningKey(b"\7" * 32)
Change = Callable[[Answer], Answer]


class Between:
    """What stands in the place of the network: the stand-in answers, and `change` may answer something else."""

    def __init__(self) -> None:
        self.control = StandIn()
        self.clock = LinkClock()
        self.gateway = "01JGATEWAY0000000000000000"
        self.sent: list[LinkRequest] = []
        self.change: Change = lambda answer: answer
        self.terms = AuditTerms()
        self._n = 0
        self.control.gateways[self.gateway] = Gateway(self.gateway, IDENTITY.public, self.control.project)

    @property
    def trust(self) -> Trust:
        from gatewayd.keys.envelope import parse

        return read(parse(self.control.trusts[-1]).payload, Trust)

    def numbered(self, kind: RequestKind, body: msgspec.Struct) -> SentRequest:
        self._n += 1
        raw = msgspec.Raw(msgspec.json.encode(body))
        now_ms = self.clock.now_ms()
        return sign_request(LinkRequest("https://control.example.com", self.gateway, kind, "run", self._n, now_ms, raw), IDENTITY)

    async def send(self, sent: SentRequest, within_s: float, trust: Trust) -> ControlAnswer:
        await trio.lowlevel.checkpoint()
        self.sent.append(sent.request)
        status, data = self.change(self.control.handle("/link/v1/audit", sent.data))
        if status == 429 or status >= 500:
            raise Unreachable(f"answered status {status}", status=status, retry_after_s=5.0 if status == 429 else None)
        return ControlAnswer(status, data, sent)

    def push(self, audit: Audit) -> Push:
        return Push(self, audit, lambda: self.trust, lambda: self.terms)  # type: ignore[arg-type]  # all that it uses is here


async def record(audit: Audit, rows: int) -> None:
    for _ in range(rows):
        query = Query(QueryId(new_ulid(1, lambda size: bytes(size))), "shop", Agent(), None)
        await audit.reloaded([Event(query, 1, PolicyReloaded("bundle", None, (), ("shop",), {}, {}))])


@asynccontextmanager
async def pushing(between: Between, folder: Path, held: TreeHead | None = None) -> AsyncIterator[Audit]:
    async with open_audit(str(folder / "audit.db")) as audit, trio.open_nursery() as nursery:
        nursery.start_soon(between.push(audit).run, lambda: held)
        yield audit
        nursery.cancel_scope.cancel()


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(100_000):
        while not holds():  # noqa: ASYNC110 - the other side has no event
            await trio.sleep(30)  # of a clock that jumps


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """What is slower than this in a thread only lets a pause end sooner."""
    return trio.testing.MockClock(autojump_threshold=0.01)


def messages(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [line for line in told(capfd.readouterr().err) if line["level"] != "debug" and line["msg"] != "audit checkpoint"]


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
            wait_s = await push._send(Batch(body, CompactRange(), (), ()))
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
