"""The audit push: every row of the page's table, over a real gateway, a real file and answers that go wrong."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from gatewayd.audit.heads import unproved_head
from tests.cli.gatewayd_process import serving
from tests.conftest import Postgres
from tests.link.link_rig import INDEXER, POLICY, SHOP, linked
from tests.link.stand_in import Answer, StandIn, listening, told


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


def test_what_runs_is_pushed_and_what_goes_wrong_is_told_until_it_has_recovered(
    shop: str, tmp_path: Path, free_port: int
) -> None:
    control = StandIn()
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY)
        gateway.wait_until_ready()
        gateway.query("SELECT 'first'")
        rows = control.wait_for_rows(lambda rows: len(rows) == 4)
        assert [row.row["event_type"] for row in rows] == ["POLICY_RELOADED", "ATTEMPTED", "DECIDED", "EXECUTED"]
        assert json.loads(str(rows[1].row["payload"]))["sql_raw"] == "SELECT 'first'"

        other = StandIn()
        wrong: dict[str, Answer] = {  # the control plane took them all: only its answers are lost on the way
            "audit push failed": (503, b""),
            "control plane audit answer did not verify": (200, b"<html>sign in</html>"),
            "control plane does not take audit events yet": (404, b"{}"),  # looked at again after five minutes, or a restart
        }
        for number, (msg, answer) in enumerate(wrong.items()):
            listener.spoil = lambda path, good, answer=answer: answer if path.endswith("/audit") else good  # type: ignore[misc]
            gateway.query(f"SELECT {number}")
            gateway.running.wait_for(msg)
        listener.spoil = lambda path, good: (200, _signed_by(other, good)) if path.endswith("/audit") else good
        gateway.running.stop()
        with linked(listener, shop, tmp_path, free_port) as again:
            again.running.wait_for("control plane audit answer did not verify")
            listener.spoil = lambda _path, good: good
            again.running.wait_for("audit push recovered")
            held = control.wait_for_rows(lambda rows: len(rows) == 14)
            assert [row.seq for row in held] == list(range(1, 15))
            again.running.stop()


def _signed_by(other: StandIn, good: Answer) -> bytes:
    """The right ack under a key that is not the control plane's."""
    from gatewayd.keys.envelope import parse, sign

    envelope = parse(good[1])
    return sign(envelope.payload_type, envelope.payload, [other.working])


def test_a_restored_file_forks_once_and_the_control_plane_has_every_event(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    with listening(control) as listener:
        control.publish(POLICY)
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.wait_until_ready()
            gateway.query("SELECT 1")
            control.wait_for_rows(lambda rows: len(rows) == 4)
            gateway.running.stop()
        note = control.the_gateway().statuses[-1].note
        assert note is not None
        assert unproved_head(note).size == 4  # its last word was the head over all that it leaves, which the journal has, too
        assert note in [each.get("note") for each in told(gateway.running.text)]
        shutil.copy(tmp_path / "audit.db", tmp_path / "backup.db")
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.query("SELECT 2")
            control.wait_for_rows(lambda rows: len(rows) == 8)
            gateway.running.stop()
        for name in ("audit.db", "audit.db-wal", "audit.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        shutil.copy(tmp_path / "backup.db", tmp_path / "audit.db")
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.query("SELECT 3")
            forked = told(gateway.running.wait_for("audit file forked"))[0]
            held = control.wait_for_rows(lambda rows: sum("SELECT 3" in str(row.row["payload"]) for row in rows) == 1)
            gateway.running.stop()
        trees = control.the_gateway().trees
        assert len(trees) == 2
        assert forked["from"] in trees
        assert {row.row["payload"] for row in held if "sql_raw" in str(row.row["payload"])} == {
            row.row["payload"] for row in held if row.row["event_type"] == "ATTEMPTED"
        }
        with sqlite3.connect(tmp_path / "audit.db") as file:
            (previous,) = file.execute("SELECT value FROM meta WHERE key = 'previous_instances'").fetchone()
        file.close()
        assert [each["reason"] for each in json.loads(previous)] == ["rows missing"]


@pytest.mark.parametrize("statements", ["redacted", "none"])
def test_no_constant_leaves_the_machine(statements: str, shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY, audit={"statements": statements})
        gateway.wait_until_ready()
        gateway.query("SELECT 'canary-one', 918273 /* canary-two */ FROM orders WHERE status = 'canary-three'", "canary-intent")
        gateway.query("SELECT 'canary-four' FROM", "canary-intent")
        gateway.query("SELECT 1/0 + 'canary-five'::int", "canary-intent")
        rows = control.wait_for_rows(lambda rows: len(rows) == 9)
        gateway.running.stop()
        sent = b"\n".join(control.seen_payloads())
        for canary in (b"canary", b"918273", shop.encode(), INDEXER.encode()):
            assert canary not in sent, canary
        attempts = [row for row in rows if row.row["event_type"] == "ATTEMPTED"]
        if statements == "redacted":
            assert attempts[0].statement == "SELECT ? , ? FROM orders WHERE status = ?"
            assert "audit event sent without its details" in gateway.running.text
        else:
            assert {row.statement for row in attempts} == {None}
        assert "canary" not in gateway.running.text


def test_local_mode_tells_of_what_the_link_owed(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    with listening(control) as listener:
        listener.spoil = lambda path, good: (503, b"") if path.endswith("/audit") else good
        control.publish(POLICY)
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.wait_until_ready()
            gateway.running.wait_for("audit push failed")
            gateway.running.stop()
        alone = {"DATABASE_URL": shop, "DB_PATH": str(tmp_path / "audit.db"), "PORT": str(free_port), "GATEWAY_HOST": "127.0.0.1"}
        with serving([], {**alone, "GATEWAY_STATE_DIR": str(tmp_path / "state"), "GATEWAY_TELEMETRY": "0"}) as running:
            assert told(running.wait_for("never reached the control plane"))[0]["events"] == 1
            running.stop()
