"""Every message of a linked gateway that docs/link-protocol.md lists is one of log.py, and a test makes it happen."""

import re
import sqlite3
import threading
from pathlib import Path

import pytest
import trio.testing

from gatewayd import log
from gatewayd.link.formats.bundle import AuditTerms
from gatewayd.link.formats.requests import ReadRequest
from tests.conftest import Postgres
from tests.link.link_rig import PATIENCE_S, POLICY, SHOP, linked
from tests.link.pushed import Between, messages, pushing, record, until
from tests.link.stand_in import Answer, Gateway, StandIn, listening, told

ROOT = Path(__file__).parents[2]
HERE = "tests/link/test_link_messages.py"
MADE_BY = {
    "gateway halted": "tests/link/test_link_faults.py::test_only_a_signed_refusal_cuts_and_a_cut_is_taken_back",
    "bundle rejected": "tests/link/test_link_serving.py::test_bundles_that_are_not_ours_change_nothing",
    "audit write after execution failed": (
        "tests/faults/test_faults_disk.py::test_what_fails_between_permit_and_closing_row_is_said"
    ),
    "audit push failed": (
        "tests/link/test_link_push.py::test_what_runs_is_pushed_and_what_goes_wrong_is_told_until_it_has_recovered"
    ),
    "audit push waiting (control plane keeps answering 429)": (
        "tests/link/test_link_push_answers.py::test_429_is_silent_for_two_minutes_and_then_told"
    ),
    "control plane audit answer did not verify": (
        "tests/link/test_link_push.py::test_what_runs_is_pushed_and_what_goes_wrong_is_told_until_it_has_recovered"
    ),
    "audit file forked from what the control plane holds": (
        "tests/link/test_link_push_answers.py::test_another_event_held_at_a_seq_forks_the_file_once"
    ),
    "control plane holds another event for the new instance too": (
        "tests/link/test_link_push_answers.py::test_another_event_held_at_a_seq_forks_the_file_once"
    ),
    "control plane lost acknowledged audit events": (
        "tests/link/test_link_push_answers.py::test_a_control_plane_that_lost_events_gets_them_again"
    ),
    "control plane refused audit events": (
        "tests/link/test_link_push_answers.py::test_a_refused_batch_is_halved_down_to_the_event_and_none_is_skipped"
    ),
    "control plane does not take audit events yet": f"{HERE}::test_a_control_plane_without_an_audit_is_asked_again_later",
    "audit event sent without its details": "tests/link/test_link_push.py::test_no_constant_leaves_the_machine",
    "audit pruning failed": f"{HERE}::test_rows_that_cannot_be_deleted_are_told_of_once_and_deleted_later",
    "audit events recorded while linked never reached the control plane; local mode does not send them": (
        "tests/link/test_link_push.py::test_local_mode_tells_of_what_the_link_owed"
    ),
    "database unreachable": "tests/daemon/test_daemon_database.py::test_absent_at_start_then_there",
    "link cut": "tests/link/test_link_faults.py::test_only_a_signed_refusal_cuts_and_a_cut_is_taken_back",
    "taint check failed; the grant counts as tainted": (
        "tests/containment/test_containment_linked.py::test_an_answer_that_is_none_contains_and_keeps_the_rows_here"
    ),
    "public URL not registered": "tests/link/test_link_faults.py::test_agents_come_in_by_token_and_a_session_is_its_tokens_own",
    "view definitions withheld from the cloud": f"{HERE}::test_a_view_that_cannot_be_redacted_is_withheld_and_told_of",
    "mcp client": "tests/link/test_link_faults.py::test_agents_come_in_by_token_and_a_session_is_its_tokens_own",
    "status refused": f"{HERE}::test_a_refused_status_leaves_the_policy_in_force",
    "policy stale": f"{HERE}::test_a_policy_that_nobody_confirms_halts_where_the_bundle_says_so",
}


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


def test_each_message_of_the_page_is_logged_and_has_its_test() -> None:
    page = (ROOT / "docs" / "link-protocol.md").read_text(encoding="utf-8")
    section = page.partition("## Log lines\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", section, flags=re.MULTILINE)
    assert set(listed) - {"msg"} == set(MADE_BY)
    assert set(MADE_BY) <= {value for value in vars(log).values() if isinstance(value, str)}
    for message, test in MADE_BY.items():
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name}" in text, message


def test_a_refused_status_leaves_the_policy_in_force(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY)
        gateway.wait_until_ready()
        control.holds = False
        control.refuse_status = "it reports features that are not known here; upgrade the control plane first"
        line = told(gateway.running.wait_for("status refused"))[0]
        assert (line["level"], line["reason"]) == ("error", control.refuse_status)
        assert gateway.query("SELECT count(*) FROM orders")["rows"] == [{"count": 20}]
        assert gateway.query("SELECT * FROM payroll")["policy_rule"] == "table_access"
        assert gateway.ready() == (200, "ready")
        control.refuse_status = None
        gateway.running.wait_for("status taken again")
        gateway.running.stop()


def test_a_policy_that_nobody_confirms_halts_where_the_bundle_says_so(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY, fresh_for_s=3, on_stale="halt")
        gateway.wait_until_ready()
        listener.lose_requests = True
        assert told(gateway.running.wait_for("policy stale"))[0]["version"] == 1
        gateway.running.wait_for("gateway halted")
        assert gateway.query("SELECT 1")["error"] == "gateway_halted"
        assert gateway.ready() == (503, "halted")
        listener.lose_requests = False
        gateway.running.wait_for("policy fresh again")
        gateway.running.wait_for("gateway enforcing")
        assert gateway.query("SELECT 1 AS one")["rows"] == [{"one": 1}]
        control.publish(POLICY, fresh_for_s=3, on_stale="keep")
        control.wait_for(lambda status: status.version == 2)
        listener.lose_requests = True
        gateway.running.wait_for("policy stale")
        assert gateway.query("SELECT 1 AS one")["rows"] == [{"one": 1}]
        gateway.running.stop()


def test_a_view_that_cannot_be_redacted_is_withheld_and_told_of(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    depth = 600  # beyond what the parser's bounds let through
    deep = "(" * depth + "1" + " + 1)" * depth
    views = f"CREATE VIEW deep AS SELECT {deep} AS n; CREATE VIEW plain AS SELECT 'canary' AS word;"
    dsn = postgres.create_database(SHOP + views)
    control = StandIn()
    arrived = threading.Event()

    def take(_gateway: Gateway, _found: ReadRequest) -> Answer:
        arrived.set()
        return 200, b"{}"

    control.handlers["catalog"] = take
    with listening(control) as listener, linked(listener, dsn, tmp_path, free_port) as gateway:
        control.publish(POLICY)
        gateway.wait_until_ready()
        line = told(gateway.running.wait_for("view definitions withheld from the cloud"))[0]
        assert (line["level"], line["database"], line["count"]) == ("warning", "shop", 1)
        assert arrived.wait(PATIENCE_S)
        gateway.running.stop()
    sent = b"\n".join(control.seen_payloads())
    assert b"canary" not in sent


async def test_a_control_plane_without_an_audit_is_asked_again_later(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    between = Between()
    between.change = lambda _answer: (404, b"")
    async with pushing(between, tmp_path) as audit:
        await record(audit, 3)
        await until(lambda: len(between.sent) >= 3)
        between.change = lambda answer: answer
        told_of: list[str] = []

        def recovered() -> bool:
            told_of.extend(line["msg"] for line in messages(capfd))
            return "audit push recovered" in told_of

        await until(recovered)
    assert len(between.control.held()) == 3
    assert told_of == [
        "control plane does not take audit events yet",
        "audit push recovered",
    ]


async def test_rows_that_cannot_be_deleted_are_told_of_once_and_deleted_later(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, capfd: pytest.CaptureFixture[str]
) -> None:
    between = Between()
    between.terms = AuditTerms(retention_h=0)

    def count() -> int:
        with sqlite3.connect(f"file:{tmp_path}/audit.db?mode=ro", uri=True) as file:
            (rows,) = file.execute("SELECT count(*) FROM audit_events").fetchone()
        file.close()
        return int(rows)

    def change(sql: str) -> None:
        with sqlite3.connect(tmp_path / "audit.db") as file:
            file.execute(sql)
        file.close()

    async with pushing(between, tmp_path) as audit:
        change("CREATE TRIGGER kept BEFORE DELETE ON audit_events BEGIN SELECT RAISE(ABORT, 'no deletion here'); END")
        await record(audit, 5)
        told_of: list[str] = []

        def is_told(message: str) -> bool:
            told_of.extend(line["msg"] for line in messages(capfd))
            return message in told_of

        await until(lambda: is_told("audit pruning failed"))
        assert count() == 5
        change("DROP TRIGGER kept")
        await until(lambda: count() == 0)
        await until(lambda: is_told("audit pruning recovered"))
    assert told_of.count("audit pruning failed") == 1
    assert len(between.control.held()) == 5
