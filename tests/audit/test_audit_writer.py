"""The service: order, permits, shared commits, cancellation, shutdown."""

import sqlite3
import threading
from collections.abc import Callable

import msgspec
import pytest
import trio
import trio.testing

from gatewayd.audit.events import Event, Executed, PolicyReloaded
from gatewayd.audit.file import AuditFile
from gatewayd.audit.ids import is_ulid, ulid_value
from gatewayd.audit.service import Audit, AuditUnavailable, Under, open_audit
from tests.audit.audit_calls import Calls, FileView

WHOLE = ["ATTEMPTED", "DECIDED ALLOW", "EXECUTED"]


class Standstill:
    """Holds the writer's thread between two batches, as a disk that does not answer would."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._released = threading.Event()
        self._reached = trio.Event()

    async def __aenter__(self) -> "Standstill":
        token = trio.lowlevel.current_trio_token()

        def stand(_file: AuditFile) -> None:
            token.run_sync_soon(self._reached.set)
            self._released.wait()

        self._nursery_context = trio.open_nursery()
        self._nursery = await self._nursery_context.__aenter__()
        self._nursery.start_soon(self._audit.call, stand)
        await self._reached.wait()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._released.set()
        await self._nursery_context.__aexit__(*error)  # type: ignore[arg-type]  # handed through as it came


async def test_a_permit_comes_with_both_rows_committed(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        query = calls.query()
        permit = await calls.permit(audit, query)
        rows = view.rows(path)
        assert [row.event_type for row in rows] == ["ATTEMPTED", "DECIDED"]
        assert permit.allowed is calls.allowed
        assert (permit.query_id, permit.audit_id) == (query.query_id, rows[1].id)
        assert {row.query_id for row in rows} == {query.query_id}
        assert bytes(rows[1].payload) == (
            b'{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.users"]}'
        )
        await audit.closed(query, Executed(3, 1, rows_returned=1))
        assert view.events(path) == {query.query_id: WHOLE}


async def test_a_refusal_gives_the_id_of_its_row(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        audit_id = await calls.refuse(audit, calls.query())
        row = view.rows(path)[-1]
    assert is_ulid(audit_id)
    assert row.id == audit_id
    assert bytes(row.payload) == (
        b'{"decision":"DENY","dialect":"postgres","policy_rule":"table_access","reason":"table `users` resolves to read",'
        b'"statement_type":"DELETE","tables_touched":["public.users"]}'
    )


async def test_nothing_is_permitted_or_closed_without_the_row_before_it(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        query = calls.query()
        with pytest.raises(AuditUnavailable, match="earlier audit row"):
            await audit.decided(query, calls.allowed)
        with pytest.raises(AuditUnavailable, match="earlier audit row"):
            await audit.closed(query, calls.cancelled)
        await calls.permit(audit, query)
        with pytest.raises(AuditUnavailable):
            await audit.decided(query, calls.allowed)  # a decision is made once
        await audit.closed(query, calls.cancelled)
        with pytest.raises(AuditUnavailable):
            await audit.closed(query, calls.cancelled)
        assert view.events(path) == {query.query_id: ["ATTEMPTED", "DECIDED ALLOW", "FAILED"]}


async def test_an_attempt_that_nobody_decides_is_written_all_the_same(path: str, calls: Calls, view: FileView) -> None:
    committed = trio.Event()
    async with open_audit(path) as audit, trio.open_nursery() as nursery:
        audit.on_commit(lambda _seconds, _rows: committed.set())
        query = calls.query()
        await audit.attempted(query, calls.attempted())
        with trio.fail_after(10):
            await committed.wait()
        assert view.events(path) == {query.query_id: ["ATTEMPTED"]}
        nursery.cancel_scope.cancel()


async def test_who_waits_together_is_committed_together(path: str, calls: Calls, view: FileView) -> None:
    batches: list[int] = []
    async with open_audit(path) as audit:
        audit.on_commit(lambda _seconds, rows: batches.append(rows))
        async with trio.open_nursery() as nursery, Standstill(audit):
            for _ in range(20):
                nursery.start_soon(calls.permit, audit, calls.query())
            await trio.testing.wait_all_tasks_blocked()
            assert audit.statistics().queued == 40
    assert batches == [40]
    assert len(view.rows(path)) == 40


async def test_rows_of_a_reload_stand_together_or_not_at_all(path: str, calls: Calls, view: FileView) -> None:
    events = [
        Event(calls.query(), 1, PolicyReloaded("admin_endpoint", None, ("limits",), ("a", "b"), {}, {"limits": name}))
        for name in ("a", "b")
    ]
    async with open_audit(path) as audit:
        await audit.reloaded(events)
        assert [row.event_type for row in view.rows(path)] == ["POLICY_RELOADED"] * 2


@pytest.mark.parametrize("clock", [lambda count: 1000 - count, lambda count: 1000, lambda count: count * 1000])
async def test_ids_rise_in_commit_order_across_restarts_and_clock_steps(
    path: str, calls: Calls, view: FileView, clock: Callable[[int], int]
) -> None:
    ticks = iter(range(10_000))
    seen: list[str] = []
    for _ in range(3):
        async with open_audit(path, clock_ms=lambda: clock(next(ticks))) as audit, trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(calls.whole, audit)
        ids = [str(identity) for (identity,) in view.run(path, "SELECT id FROM audit_events ORDER BY rowid")]
        assert ids[: len(seen)] == seen
        assert sorted(set(ids)) == ids
        seen = ids
    assert len(seen) == 90


async def test_ids_rise_above_deleted_ones_when_the_clock_is_behind(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path, clock_ms=lambda: 2_000_000) as audit:
        last = (await calls.whole(audit)).audit_id
        last = view.rows(path)[-1].id
        assert await audit.delete_before(last) == 3
    assert view.rows(path) == []
    async with open_audit(path, clock_ms=lambda: 1_000_000) as audit:
        await calls.whole(audit)
    assert view.rows(path)[0].id > last


async def test_a_row_carries_the_time_of_its_event(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path, clock_ms=lambda: 1_700_000_000_123) as audit:
        await calls.whole(audit)
    for row in view.rows(path):
        assert row.ts == (ulid_value(row.id) or 0) >> 80 == 1_700_000_000_123


async def test_a_caller_cancelled_while_its_decision_is_committed_can_still_close(
    path: str, calls: Calls, view: FileView
) -> None:
    query = calls.query()

    async def call(audit: Audit) -> None:
        await audit.attempted(query, calls.attempted())
        try:
            await audit.decided(query, calls.allowed)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await audit.closed(query, calls.cancelled)
            raise

    async with open_audit(path) as audit, trio.open_nursery() as nursery, Standstill(audit):
        caller = trio.CancelScope()

        async def cancellable() -> None:
            with caller:
                await call(audit)

        nursery.start_soon(cancellable)
        await trio.testing.wait_all_tasks_blocked()
        caller.cancel()
        await trio.testing.wait_all_tasks_blocked()
    assert view.events(path) == {query.query_id: ["ATTEMPTED", "DECIDED ALLOW", "FAILED"]}


async def test_a_caller_cancelled_while_it_waits_for_room_leaves_nothing(path: str, calls: Calls, view: FileView) -> None:
    large = "x" * (1 << 20)
    async with open_audit(path) as audit, Standstill(audit):
        for _ in range(16):
            await audit.attempted(calls.query(), calls.attempted(large))
        with trio.CancelScope() as scope:
            scope.cancel()
            await audit.attempted(calls.query(), calls.attempted())
        assert scope.cancelled_caught
        assert audit.statistics().queued == 16
    assert len(view.rows(path)) == 16


async def test_a_full_queue_makes_callers_wait_and_lets_them_in_again(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        async with trio.open_nursery() as nursery, Standstill(audit):
            for _ in range(1100):
                nursery.start_soon(calls.permit, audit, calls.query())
            await trio.testing.wait_all_tasks_blocked()
            # the first 1024 ATTEMPTED are in, and with them their DECIDED, which never wait for room
            assert audit.statistics().queued <= 2 * 1024
        assert audit.statistics().queued == 0
        assert audit.statistics().queued_characters == 0
    assert len(view.rows(path)) == 2200


async def test_closing_writes_what_waits_and_takes_nothing_more(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        query = calls.query()
        await audit.attempted(query, calls.attempted())
    assert view.events(path) == {query.query_id: ["ATTEMPTED"]}
    for refused in (audit.attempted(calls.query(), calls.attempted()), audit.answers(), audit.reloaded([])):
        with pytest.raises(AuditUnavailable, match="stopped"):
            await refused


async def test_closing_is_not_cut_short_by_a_cancel(path: str, calls: Calls, view: FileView) -> None:
    with trio.CancelScope() as scope:
        async with open_audit(path) as audit:
            await calls.whole(audit)
            assert [piece async for piece in audit.page("0", 3)]  # a reading connection is open
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert not await trio.Path(path + "-wal").exists()
    assert len(view.rows(path)) == 3


async def test_the_loop_goes_on_while_the_disk_stands_still(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        async with trio.open_nursery() as nursery, Standstill(audit):
            nursery.start_soon(calls.whole, audit)
            nursery.start_soon(audit.answers)
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            assert len(nursery.child_tasks) == 2
        await audit.answers()


async def test_a_bug_in_the_thread_ends_the_service_and_every_waiter(path: str, calls: Calls) -> None:
    def bug(_file: AuditFile) -> None:
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        async with open_audit(path) as audit:
            try:
                await audit.attempted(calls.query(), calls.attempted())
                with pytest.raises(AuditUnavailable, match="stopped"):
                    await audit.call(bug)
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True), pytest.raises(AuditUnavailable, match="stopped"):
                    await calls.whole(audit)


async def test_statistics_agree_with_the_file(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        for _ in range(3):
            await calls.whole(audit)
        statistics = audit.statistics()
        assert statistics.available
        assert (statistics.rows, statistics.batches, statistics.failures, statistics.queued) == (9, 6, 0, 0)
        assert statistics.last_commit_s > 0
        assert statistics.wal_bytes > 0


async def test_a_large_log_is_carried_into_the_file_while_callers_work(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        for _ in range(80):
            await calls.whole(audit, "x" * 900_000)
        assert audit.statistics().wal_bytes < 64 * 1024 * 1024
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


async def test_a_decision_names_the_policy_that_it_was_made_by(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        query = calls.query()
        await audit.attempted(query, calls.attempted())
        await audit.decided(query, calls.denied, Under("ab" * 32, 7))
    payload = msgspec.json.decode(view.rows(path)[-1].payload)
    assert (payload["policy"], payload["bundle"]) == ("ab" * 32, 7)
