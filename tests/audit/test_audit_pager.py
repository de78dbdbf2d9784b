"""Reading by pages while others write and delete: nothing is missed, nothing comes twice (decision 7)."""

import os
import tracemalloc

import msgspec
import pytest
import trio

from gatewayd.audit.service import Audit, open_audit
from tests.audit.audit_calls import Calls, FileView

MEBIBYTE = 1 << 20


async def page(audit: Audit, cursor: str, limit: int) -> tuple[list[dict[str, object]], str | None]:
    text = b"".join([piece async for piece in audit.page(cursor, limit)])
    decoded = msgspec.json.decode(text)
    assert list(decoded) == ["rows", "next_cursor"]
    return decoded["rows"], decoded["next_cursor"]


async def test_pages_cover_the_file_in_order(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        assert await page(audit, "0", 5) == ([], None)
        for _ in range(4):
            await calls.whole(audit)
        wanted = [row.id for row in view.rows(path)]
        found: list[object] = []
        cursor: str | None = "0"
        sizes = []
        while cursor is not None:
            rows, cursor = await page(audit, cursor, 5)
            found += [row["id"] for row in rows]
            sizes.append(len(rows))
        assert found == wanted
        assert sizes == [5, 5, 2]
        assert await page(audit, wanted[-1], 5) == ([], None)
        assert (await page(audit, "0", 12))[1] is None  # exactly the last row: no larger id exists


async def test_a_row_has_the_columns_as_keys_and_its_payload_as_object(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        query = calls.query()
        permit = await calls.permit(audit, query, "SELECT '\U0001f418'")
        (attempted, decided), _ = await page(audit, "0", 2)
    assert list(attempted) == [
        "id", "query_id", "tenant_id", "database", "agent_name", "agent_version", "agent_intent", "mcp_token_id", "ts",
        "event_type", "payload", "schema_version", "seq", "instance",
    ]  # fmt: skip
    assert attempted["payload"] == {"sql_raw": "SELECT '\U0001f418'", "sql_fingerprint": "0123456789abcdef"}
    assert decided["id"] == permit.audit_id
    assert decided["agent_intent"] == query.intent


async def test_eight_writers_one_reader_one_deleter(path: str, calls: Calls) -> None:
    told: list[str] = []
    read: list[str] = []
    acknowledged = "0"
    deleted = 0
    is_written = trio.Event()

    async def write(audit: Audit) -> None:
        for _ in range(60):
            query = calls.query()
            if len(told) % 3:
                told.append((await calls.permit(audit, query)).audit_id)
                await audit.closed(query, calls.cancelled)
            else:
                told.append(await calls.refuse(audit, query))

    async def follow(audit: Audit) -> None:
        nonlocal acknowledged
        cursor = "0"
        while True:
            ended = is_written.is_set()  # before the page: what is committed by then must be in it
            rows, more = await page(audit, cursor, 7)
            read.extend(str(row["id"]) for row in rows)
            if rows:
                cursor = acknowledged = read[-1]
            if ended and more is None:
                return

    async def delete(audit: Audit) -> None:
        nonlocal deleted
        while not is_written.is_set():
            deleted += await audit.delete_before(acknowledged)
            await trio.lowlevel.checkpoint()

    async with open_audit(path) as audit:
        async with trio.open_nursery() as services:
            services.start_soon(follow, audit)
            services.start_soon(delete, audit)
            async with trio.open_nursery() as writers:
                for _ in range(8):
                    writers.start_soon(write, audit)
            is_written.set()
        rows_written = audit.statistics().rows
        deleted += await audit.delete_before(acknowledged)
    assert sorted(set(read)) == read
    assert len(read) == rows_written == deleted
    assert set(told) <= set(read)


async def test_deletion_includes_the_cursor_and_can_be_repeated(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        for _ in range(400):  # several chunks
            await calls.refuse(audit, calls.query())
        ids = [row.id for row in view.rows(path)]
        assert await audit.delete_before("0") == 0
        assert await audit.delete_before(ids[700]) == 701
        assert await audit.delete_before(ids[700]) == 0
        assert [row.id for row in view.rows(path)] == ids[701:]
        assert await audit.delete_before("7ZZZZZZZZZZZZZZZZZZZZZZZZZ") == 99


async def test_a_page_of_large_statements_is_never_in_memory_as_a_whole(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        for _ in range(12):
            await audit.attempted(calls.query(), calls.attempted("x" * MEBIBYTE))
        await calls.whole(audit)
        tracemalloc.start()
        try:
            size = 0
            async for piece in audit.page("0", 1000):
                size += len(piece)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert size > 12 * MEBIBYTE
    assert peak < 8 * MEBIBYTE


async def test_a_reader_holds_nothing_open_between_pieces(path: str, calls: Calls, view: FileView) -> None:
    async with open_audit(path) as audit:
        for _ in range(3):
            await calls.whole(audit, "x" * MEBIBYTE)
        slow = audit.page("0", 1000)
        await slow.begin()
        await audit.answers()
        assert view.run(path, "PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]  # busy when a snapshot were still held
        rest = b"".join([piece async for piece in slow])
        assert len(msgspec.json.decode(rest)["rows"]) == 9


async def test_the_reader_follows_a_file_that_was_replaced(path: str, calls: Calls) -> None:
    async with open_audit(path) as audit:
        await calls.whole(audit)
        assert len((await page(audit, "0", 10))[0]) == 3
        os.unlink(path)
        with pytest.raises(FileNotFoundError):
            await audit.page("0", 10).begin()
        permit = await calls.whole(audit)
        assert {row["query_id"] for row in (await page(audit, "0", 10))[0]} == {permit.query_id}
