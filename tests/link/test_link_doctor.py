"""`gatewayd doctor` of a linked gateway: each thing in order, and each thing wrong."""

import json
from pathlib import Path

from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.link.link_rig import INDEXER, POLICY, SHOP, linked, variables
from tests.link.stand_in import StandIn, listening


def looked(own: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Outcome and words by check; the last of a name."""
    shown = run(["doctor"], own)
    assert "Traceback" not in shown.stderr, shown.stderr
    found = [json.loads(line) for line in shown.stdout.splitlines()]
    return {each["check"]: (each["outcome"], f"{each['found']} {each['remedy']}") for each in found}


def test_each_thing_in_order_and_each_thing_wrong(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    shop = postgres.create_database(SHOP)
    with listening(control) as listener:
        own = variables(listener.url, shop, tmp_path, free_port, INDEXER_TOKEN=INDEXER)
        assert looked(own)["link"][0] == "FAIL"
        control.publish(POLICY, fresh_for_s=5)
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.wait_until_ready()
            found = looked(own)
            outcomes = {name: found[name][0] for name in ("link", "identity", "bundle", "control plane", "clock", "state")}
            assert outcomes == dict.fromkeys(outcomes, "OK"), found
            assert "version 1, enforced" in found["bundle"][1]
            assert "policy" not in found
            control.publish(POLICY, state="paused")
            control.wait_for(lambda status: status.state == "paused")
            outcome, words = looked(own)["state"]
            assert (outcome, words.startswith("paused")) == ("WARN", True)
            gateway.running.stop()
        assert looked(own)["state"][0] == "WARN"
    found = looked(own)  # nobody listens there any more
    assert found["control plane"][0] == "FAIL"
    assert "stays in force" in found["control plane"][1]
    (tmp_path / "state" / "identity.json").unlink()
    assert looked(own)["identity"][0] == "FAIL"
    (tmp_path / "state" / "ratchet.json").write_bytes(b"{")
    outcome, words = looked(own)["link"]
    assert outcome == "FAIL"
    assert "ratchet.json is damaged" in words
