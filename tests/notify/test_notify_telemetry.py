"""Telemetry: what it may say, where it goes, and that nothing of the users' gets in (decision 9)."""

from pathlib import Path
from typing import Literal

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from gatewayd import log
from gatewayd.audit.ids import is_ulid
from gatewayd.notify.telemetry import Telemetry
from gatewayd.notify.usage import CountedCall, Counts, Latency, Report
from tests.notify.receiver import receiving, status

CANARY = "CANARY_7f3a"
CALL = CountedCall("query", "ALLOW", None, "SELECT", None, 0.0021)


def telemetry(folder: Path, endpoint: str | None, heartbeat_ms: int = 86_400_000, *, debug: bool = False) -> Telemetry:
    return Telemetry(str(folder / "audit.db"), endpoint, heartbeat_ms, "http", "9.9.9", debug=debug)


def lines(text: str) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in text.splitlines()]


async def test_startup_is_told_first_then_heartbeats_with_counts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with receiving(status("202 Accepted")) as receiver, trio.open_nursery() as nursery:
        service = telemetry(tmp_path, receiver.url, heartbeat_ms=1)
        for _ in range(3):
            service.called(CALL)
        await nursery.start(service.run)
        with trio.fail_after(120):
            await receiver.received(3)
        nursery.cancel_scope.cancel()
    reports = [msgspec.convert(body, Report) for _, body in receiver.requests]
    assert [report.event for report in reports[:2]] == ["startup", "heartbeat"]
    assert sum(report.usage.tools.get("query", 0) for report in reports) == 3
    assert {report.install_id for report in reports} == {(tmp_path / "install-id").read_text().strip()}
    assert is_ulid(reports[0].install_id)
    assert (reports[0].version, reports[0].transport) == ("9.9.9", "http")
    (notice,) = lines(capfd.readouterr().err)
    assert notice["msg"] == "telemetry notice"
    assert "GATEWAY_TELEMETRY=0" in str(notice["switch_off"])
    assert "counts by tool" in str(notice["sent"])


async def test_the_notice_is_for_the_first_start_only(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for wanted in (1, 0):
        async with receiving(status("200 OK")) as receiver, trio.open_nursery() as nursery:
            await nursery.start(telemetry(tmp_path, receiver.url).run)
            await receiver.received(1)
            nursery.cancel_scope.cancel()
        assert len(lines(capfd.readouterr().err)) == wanted


@pytest.mark.parametrize("level", ["debug", "info"])
async def test_without_an_endpoint_nothing_is_sent_and_debug_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], level: Literal["debug", "info"]
) -> None:
    (tmp_path / "install-id").write_text("01ARYZ6S41TSV4RRFFQ69G5FAV\n")
    log.set_level(level)
    try:
        service = telemetry(tmp_path, None)
        await service.run()  # ends at once
        service.called(CALL)
    finally:
        log.set_level("info")
    said = [line["note"] for line in lines(capfd.readouterr().err)]
    assert said == (["no GATEWAY_TELEMETRY_ENDPOINT is set, nothing is sent"] if level == "debug" else [])


async def test_debug_writes_payloads_to_stderr_and_sends_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "install-id").write_text("01ARYZ6S41TSV4RRFFQ69G5FAV")
    async with receiving(status("200 OK")) as receiver, trio.open_nursery() as nursery:
        await nursery.start(telemetry(tmp_path, receiver.url, debug=True).run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert receiver.requests == []
    (payload,) = lines(capfd.readouterr().err)
    assert msgspec.convert(payload, Report).install_id == "01ARYZ6S41TSV4RRFFQ69G5FAV"


async def test_a_collector_that_fails_is_nobodys_concern(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "install-id").write_text("01ARYZ6S41TSV4RRFFQ69G5FAV")
    async with receiving(status("500 Oops")) as receiver, trio.open_nursery() as nursery:
        await nursery.start(telemetry(tmp_path, receiver.url, heartbeat_ms=1).run)
        with trio.fail_after(120):
            await receiver.received(3)
        nursery.cancel_scope.cancel()
    assert capfd.readouterr().err == ""


async def test_an_install_id_that_cannot_be_kept_means_silence(tmp_path: Path) -> None:
    (tmp_path / "install-id").mkdir()
    async with receiving(status("200 OK")) as receiver:
        await telemetry(tmp_path, receiver.url).run()
    assert receiver.requests == []


async def test_a_spoilt_install_id_is_made_anew(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for content in (b"", b"\xff\xff", CANARY.encode()):
        (tmp_path / "install-id").write_bytes(content)
        await telemetry(tmp_path, None).run()
        assert "switch_off" in lines(capfd.readouterr().err)[0]  # as at a first start
        assert is_ulid((tmp_path / "install-id").read_text().strip())


async def test_calls_that_come_faster_than_they_are_counted_are_dropped_and_counted(tmp_path: Path) -> None:
    service = telemetry(tmp_path, None)
    for _ in range(300):
        service.called(CALL)
    assert service.dropped == 44
    await service.run()  # and so closed


@given(st.text(max_size=20), st.text(max_size=20), st.floats(0, 1e6))
def test_no_text_from_outside_gets_into_a_report(statement_type: str, error_class: str, overhead_s: float) -> None:
    counts = Counts()
    counts.add(CountedCall("query", "DENY", "table_access", CANARY + statement_type, "CA" + CANARY + error_class, overhead_s))
    counts.add(CountedCall("query", "DENY", "parse_error", statement_type + CANARY, CANARY, overhead_s))
    counts.add(CountedCall("query", "ALLOW", None, "CREATE " + CANARY, "23" + CANARY, overhead_s))
    text = msgspec.json.encode(counts.taken()).decode()
    assert "CANARY" not in text
    assert "7f3a" not in text


def test_counts_and_latencies() -> None:
    counts = Counts()
    for overhead_ms in range(1, 101):
        counts.add(CountedCall("query", "ALLOW", None, "CREATE TABLE AS", None, overhead_ms / 1000))
    counts.add(CountedCall("list_tables", "DENY", "table_access", "SELECT", None, 0))
    counts.add(CountedCall("describe_table", "ALLOW", None, "SELECT", "42P01", 0))
    counts.add(CountedCall("query", "ALLOW", None, "SELECT", "column_masking", 1e9))
    usage = counts.taken()
    assert usage.tools == {"query": 101, "list_tables": 1, "describe_table": 1}
    assert usage.decisions == {"ALLOW": 102, "DENY": 1}
    assert usage.rules == {"table_access": 1}
    assert usage.statement_types == {"CREATE": 100, "SELECT": 3}
    assert usage.sqlstate_classes == {"42": 1, "column_masking": 1}
    assert usage.overhead_ms == Latency(50, 130, 130)
    empty = counts.taken()
    assert (empty.tools, empty.overhead_ms) == ({}, Latency())
