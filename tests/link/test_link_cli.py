"""`gatewayd link`: enrol, status, check, accept-version, leave; and what a wrong control plane is told."""

import json
from pathlib import Path

from gatewayd.link.formats.enrolment import EnrolmentToken, read_token, token_text
from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.link.link_rig import POLICY, SHOP, linked
from tests.link.stand_in import StandIn, listening


def test_a_gateway_is_linked_looked_at_let_back_and_unlinked_by_hand(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    control, faked = StandIn(), StandIn()
    own = {"GATEWAY_STATE_DIR": str(tmp_path / "state"), "DB_PATH": str(tmp_path / "audit.db")}
    with listening(faked) as elsewhere:
        wrong = EnrolmentToken(read_token(faked.token()).secret, read_token(control.token()).fingerprint)
        enrol = run(["link", "--control", elsewhere.url], {**own, "GATEWAY_ENROL_TOKEN": token_text(wrong)})
        assert enrol.returncode == 69
        assert "nothing of it was believed" in enrol.stderr
        assert run(["link", "status"], own).returncode == 78
    with listening(control) as listener:
        token = control.token()
        enrol = run(["link", "--control", listener.url], {**own, "GATEWAY_ENROL_TOKEN": token})
        assert enrol.returncode == 0, enrol.stderr
        assert token not in enrol.stdout + enrol.stderr
        assert "already linked" in run(["link", "--control", listener.url], {**own, "GATEWAY_ENROL_TOKEN": token}).stderr
        control.publish(POLICY, version=7)
        with linked(listener, postgres.create_database(SHOP), tmp_path, free_port) as gateway:
            gateway.wait_until_ready()
            status = json.loads(run(["link", "status", "--json"], own).stdout)
            assert (status["bundle"], status["highest_version_seen"], status["state"]) == (7, 7, "enforced")
            check = run(["link", "check"], own)
            assert check.returncode == 0, check.stderr
            control.publish(POLICY, version=5)
            gateway.running.wait_for("bundle rejected")
            assert run(["link", "accept-version", "9", "--yes"], own).returncode == 2
            assert run(["link", "accept-version", "5", "--yes"], own).returncode == 0
            control.publish(POLICY, version=6, state="paused")
            gateway.running.wait_for("bundle version accepted by hand")
            control.wait_for(lambda status: status.version == 6)
            assert [row["payload"]["source"] for row in gateway.rows("POLICY_RELOADED")] == ["bundle", "accept_version", "bundle"]
            assert run(["link", "leave", "--yes"], own).returncode == 69  # it runs
            gateway.running.stop()
    assert run(["link", "leave", "--yes"], own).returncode == 0
    assert run(["link", "status"], own).returncode == 78
    assert (tmp_path / "state" / "identity.json").exists()
