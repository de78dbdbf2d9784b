"""A linked gateway from enrolment on: what it serves in each state, and what it makes of each bundle."""

from pathlib import Path

import pytest

from gatewayd.keys.ed25519 import SigningKey
from tests.conftest import Postgres
from tests.link.link_rig import INDEXER, POLICY, SHOP, WRITES, linked
from tests.link.stand_in import StandIn, listening, told


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


def test_from_waiting_over_enforcing_and_paused_to_halted_and_back(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        assert gateway.http.get("/healthz").text == "ok"
        assert gateway.ready() == (503, "waiting")
        waiting = gateway.initialize()
        assert (waiting.status_code, waiting.content) == (503, b"")

        control.publish(POLICY)
        gateway.wait_until_ready()
        assert gateway.ready() == (200, "ready")
        assert gateway.query("SELECT count(*) FROM orders")["rows"] == [{"count": 20}]
        assert gateway.query("SELECT * FROM payroll")["policy_rule"] == "table_access"
        (reloaded,) = gateway.rows("POLICY_RELOADED")
        assert reloaded["payload"]["source"] == "bundle"
        assert reloaded["payload"]["bundle"] == 1
        assert {row["tenant_id"] for row in gateway.rows()} == {control.tenant}
        assert {row["database"] for row in gateway.rows()} == {"shop"}

        control.publish(POLICY, state="paused")
        control.wait_for(lambda status: status.state == "paused")
        assert gateway.ready() == (503, "paused")
        before = len(gateway.rows())
        refused = gateway.query("SELECT 1")
        assert refused["error"] == "gateway_paused"
        assert refused["allowed"] is False
        assert len(gateway.rows()) == before

        control.publish("databases:\n  - name: shop\n    tabel_access: {default: read}\n")
        status = control.wait_for(lambda status: status.state == "halted")
        assert status.problem is not None
        assert (status.problem.check, status.problem.version) == ("enforceable", 3)
        assert gateway.ready() == (503, "halted")
        assert gateway.query("SELECT 1")["error"] == "gateway_halted"

        control.publish(WRITES)
        control.wait_for(lambda status: status.version == 4)
        assert gateway.query("DELETE FROM payroll WHERE amount = 1")["allowed"] is True

        admin = gateway.http.post("/admin/policy", content=b"table_access: {}", headers={"authorization": f"Bearer {INDEXER}"})
        assert admin.status_code == 400
        assert "policy comes from the control plane" in admin.text
        assert gateway.running.stop() == 0
        lines = told(gateway.running.text)
    states = [line["msg"] for line in lines if line["msg"].startswith("gateway ") and "started" not in line["msg"]]
    assert states == [
        "gateway waiting for a first bundle",
        "gateway linked",
        "gateway enforcing",
        "gateway paused",
        "gateway halted",
        "gateway enforcing",
    ]


def test_a_restart_without_a_network_serves_what_was_enforced_last(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    with listening(control) as listener:
        control.publish(POLICY)
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.wait_until_ready()
            gateway.running.process.kill()
            gateway.running.ended()
    with linked(listener, shop, tmp_path, free_port) as gateway:  # nobody listens there any more
        assert gateway.query("SELECT count(*) FROM orders")["rows"] == [{"count": 20}]
        assert gateway.query("DELETE FROM orders")["allowed"] is False
        gateway.running.wait_for("control plane unreachable")
        gateway.running.stop()


def test_bundles_that_are_not_ours_change_nothing(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    stranger = SigningKey.generate()
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY)
        gateway.wait_until_ready()
        for check, bundle in {
            "envelope": {"signer": stranger},
            "issuer": {"issuer": "https://else.example.com"},
            "project": {"project": "01JANOTHER0000000000000000"},
        }.items():
            control.publish(WRITES, version=9, **bundle)  # type: ignore[arg-type]
            line = told(gateway.running.wait_for("bundle rejected"))[0]
            assert line["check"] == check
            control.bundles.pop()
        control.publish(POLICY, version=5)
        control.wait_for(lambda status: status.version == 5)
        control.publish(WRITES, version=4)
        assert told(gateway.running.wait_for("bundle rejected"))[0]["check"] == "version"
        control.bundles.pop()
        control.publish(WRITES, version=5)
        assert told(gateway.running.wait_for("bundle rejected"))[0]["check"] == "version"
        assert gateway.query("DELETE FROM orders")["allowed"] is False
        assert gateway.ready() == (200, "ready")
        gateway.running.stop()
