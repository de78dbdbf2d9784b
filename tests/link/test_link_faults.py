"""What goes wrong around a link: cut, copied, late, restored, damaged; and who may come in."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.formats.agent_tokens import token_mac
from tests.conftest import Postgres, reserved_port
from tests.link.link_rig import POLICY, SHOP, linked
from tests.link.stand_in import StandIn, listening, told


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


def test_only_a_signed_refusal_cuts_and_a_cut_is_taken_back(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY)
        gateway.wait_until_ready()
        listener.spoil = lambda path, good: (403, b"<html>forbidden</html>") if path.endswith("/poll") else good
        with control.changed:
            control.publish(POLICY)
        gateway.running.wait_for("control plane unreachable")
        listener.spoil = lambda _path, good: good
        gateway.running.wait_for("control plane reachable")
        assert "link cut" not in gateway.running.text
        control.cut("cut")
        gateway.running.wait_for("link cut")
        assert gateway.query("SELECT 1 AS one")["rows"] == [{"one": 1}]  # on_stale is `keep`
        assert gateway.ready() == (200, "ready")
        gateway.running.stop()
        control.cut(None)
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        control.publish(POLICY, on_stale="halt")
        control.wait_for(lambda status: status.version == 3)
        control.cut("cut")
        gateway.running.wait_for("gateway halted")
        assert gateway.query("SELECT 1")["error"] == "gateway_halted"
        gateway.running.stop()


def test_a_copied_identity_is_noticed(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    control.publish(POLICY)
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    with listening(control) as listener, reserved_port() as port:
        with linked(listener, shop, one, free_port) as gateway:
            gateway.wait_until_ready()
            gateway.running.stop()
        shutil.copytree(one, two)
        control.holds = False
        with linked(listener, shop, one, free_port) as gateway, linked(listener, shop, two, port) as copy:
            gateway.running.wait_for("link cut")
            assert "gateway identity in use elsewhere" in gateway.running.text
            assert control.the_gateway().cut == "duplicated"
            gateway.running.stop()
            copy.running.stop()


def test_a_clock_that_is_off_by_a_day_and_a_root_that_changed_twice(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    control.clock_off_ms = 86_400_000
    control.publish(POLICY)
    with listening(control) as listener:
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.wait_until_ready()
            gateway.running.stop()
        control.clock_off_ms = 0
        for _ in range(2):
            control.new_trust(working=SigningKey.generate(), root=SigningKey.generate())
        control.publish(POLICY)
        with linked(listener, shop, tmp_path, free_port) as gateway:
            status = control.wait_for(lambda status: status.version == 2)
            assert status.trust_version == 3
            gateway.running.stop()
        stranger = SigningKey.generate()
        control.root, kept = stranger, control.root  # signs trust that does not follow
        control.new_trust(working=stranger)
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.running.wait_for("trust rejected")
            assert gateway.query("SELECT 1 AS one")["rows"] == [{"one": 1}]
            gateway.running.stop()
        assert kept is not stranger


def test_a_control_plane_that_was_restored_learns_what_it_once_signed(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    control.publish(POLICY, version=5)
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        gateway.wait_until_ready()
        control.bundles.clear()
        control.publish(POLICY, version=3)  # of yesterday
        status = control.wait_for(lambda status: bytes(status.newest) != b"null")
        assert b"payload" in bytes(status.newest)
        assert (status.version, status.seen_version) == (5, 5)
        gateway.running.stop()


@pytest.mark.parametrize(
    ("damage", "ready"),
    [
        (lambda state: (state / "ratchet.json").write_bytes(b"{"), "halted"),
        (lambda state: (state / "ratchet.json").unlink(), "halted"),
        (lambda state: (state / "trust.json").write_bytes((state / "trust.json").read_bytes().replace(b"A", b"B", 1)), "halted"),
        (lambda state: (state / "bundle.json").write_bytes(b"\0" * 100), "waiting"),
        (lambda state: (state / "bundle.json").unlink(), "waiting"),
    ],
    ids=["ratchet damaged", "ratchet gone", "trust changed", "bundle damaged", "bundle gone"],
)
def test_what_is_damaged_on_the_disk_is_never_enforced(
    damage: Callable[[Path], object], ready: str, shop: str, tmp_path: Path, free_port: int
) -> None:
    control = StandIn()
    control.publish(POLICY)
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        gateway.wait_until_ready()
        gateway.running.stop()
    damage(tmp_path / "state")
    with linked(listener, shop, tmp_path, free_port) as gateway:  # without a network
        assert gateway.ready() == (503, ready)
        gateway.running.stop()


TOKENS = {"a": "gw_live_" + "a" * 32 + "_aaaaaa", "b": "gw_live_" + "b" * 32 + "_bbbbbb"}
KEY = hashlib.sha256(b"token key").digest()


def agents(*names: str, **more: object) -> dict[str, object]:
    made = [
        {"id": f"01J{name.upper() * 23}", "mac": token_mac(KEY, TOKENS[name]), "name": name, "person": f"person {name}", **more}
        for name in names
    ]
    return {"token_key": KEY.hex(), "tokens": made}


def test_agents_come_in_by_token_and_a_session_is_its_tokens_own(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    control.publish(POLICY, agents=agents("a", "b"), public_urls=["https://agents.example.com/mcp"])
    a, b = ({"authorization": f"Bearer {TOKENS[name]}"} for name in "ab")
    with (
        listening(control) as listener,
        linked(listener, shop, tmp_path, free_port, GATEWAY_PROXY_SECRET="proxy-secret") as gateway,
    ):
        gateway.wait_until_ready()
        gateway.running.wait_for("public URL not registered")
        assert gateway.initialize().status_code == 401
        assert gateway.initialize(authorization="Bearer wrong").status_code == 401
        claimed = "01J" + "C" * 23
        assert gateway.initialize(**{"x-gateway-token-id": claimed}).status_code == 401
        assert gateway.query("SELECT 1 AS one", **a)["rows"] == [{"one": 1}]
        assert gateway.post("tools/list", {}, **b).status_code == 404
        assert gateway.post("tools/list", {}).status_code == 401
        assert gateway.initialize(**{"x-gateway-token-id": claimed, "x-gateway-proxy-secret": "proxy-secret"}).status_code == 200
        assert {row["mcp_token_id"] for row in gateway.rows("ATTEMPTED")} == {"01J" + "A" * 23}
        control.publish(POLICY, agents=agents("b"))
        control.wait_for(lambda status: status.version == 2)
        assert gateway.initialize(**a).status_code == 401
        assert gateway.initialize(**b).status_code == 200
        control.publish(POLICY, agents=agents("b", expires_at=1))
        control.wait_for(lambda status: status.version == 3)
        assert gateway.initialize(**b).status_code == 401
        gateway.running.stop()
        people = [line.get("person") for line in told(gateway.running.text) if line["msg"] == "mcp client"]
        assert people == ["person a", None, "person b"]
        for secret in (*TOKENS.values(), "proxy-secret", KEY.hex()):
            assert secret not in gateway.running.text


def test_a_bundles_own_tests_must_pass(shop: str, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    tests = "- {sql: 'SELECT * FROM payroll', expect: table_access}\n- {sql: SELECT 1, expect: allow}\n"
    control.publish(POLICY, tests=tests)
    with listening(control) as listener, linked(listener, shop, tmp_path, free_port) as gateway:
        gateway.wait_until_ready()
        assert gateway.query("SELECT 1 AS one")["rows"] == [{"one": 1}]
        control.publish(POLICY.replace("deny", "read"), tests=tests)
        status = control.wait_for(lambda status: status.state == "halted")
        assert status.problem is not None
        assert "expected table_access, found allow" in status.problem.error
        gateway.running.stop()
