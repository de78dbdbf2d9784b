"""`gatewayd link rotate`: a new identity, whatever is cut short on the way."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gatewayd.keys.identity import FILE_NAME, NEXT_NAME, load_identity
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.rotation import next_key, rotate_body
from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.link import link_documents as made
from tests.link.link_rig import POLICY, SHOP, linked
from tests.link.stand_in import StandIn, listening


def test_only_the_next_key_itself_proves_that_it_asks() -> None:
    body = rotate_body(made.OTHER, gateway=made.GATEWAY, signer=made.IDENTITY.public, nonce="n")
    assert next_key(body, gateway=made.GATEWAY, signer=made.IDENTITY.public) == made.OTHER.public
    stolen = rotate_body(made.WORKING, gateway=made.GATEWAY, signer=made.IDENTITY.public, nonce="n")
    wrong = [
        (replace(body, public_key=stolen.public_key), made.GATEWAY, made.IDENTITY.public),
        (replace(body, proof=stolen.proof), made.GATEWAY, made.IDENTITY.public),
        (replace(body, proof="?"), made.GATEWAY, made.IDENTITY.public),
        (body, "01JANOTHER0000000000000000", made.IDENTITY.public),
        (body, made.GATEWAY, made.OTHER.public),
    ]
    for changed, gateway, signer in wrong:
        with pytest.raises(DocumentRefused):
            next_key(changed, gateway=gateway, signer=signer)


def test_a_rotated_identity_goes_on_and_owes_nothing(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    control = StandIn()
    shop = postgres.create_database(SHOP)
    own = {"GATEWAY_STATE_DIR": str(tmp_path / "state"), "DB_PATH": str(tmp_path / "audit.db")}
    rotate = ["link", "rotate", "--yes"]
    with listening(control) as listener:
        control.publish(POLICY)
        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.wait_until_ready()
            gateway.query("SELECT 1 AS before")
            assert run(rotate, own).returncode == 69  # it runs
            gateway.running.stop()
        before = load_identity(own["GATEWAY_STATE_DIR"])
        assert before is not None

        listener.spoil = lambda path, good: None if path.endswith("/rotate") else good  # asked, and the answer is lost
        lost = run(rotate, own)
        assert lost.returncode == 69, lost.stderr
        listener.spoil = lambda _path, good: good
        done = run(rotate, own)
        assert done.returncode == 0, done.stderr
        after = load_identity(own["GATEWAY_STATE_DIR"])
        assert after is not None
        assert after.key_id != before.key_id
        assert control.the_gateway().key == after.public
        assert not (tmp_path / "state" / NEXT_NAME).exists()

        with linked(listener, shop, tmp_path, free_port) as gateway:
            gateway.wait_until_ready()
            gateway.query("SELECT 1 AS after")
            rows = gateway.rows()
            control.wait_for_rows(lambda held: len(held) >= len(rows))
            gateway.running.stop()
        assert "audit goes on under a new identity" in gateway.running.text
        assert "audit file forked" not in gateway.running.text
    held = control.held()
    assert [row.seq for row in held] == sorted({row.seq for row in held})
    assert len(control.the_gateway().trees) == 2  # an instance of each key


def test_an_answer_that_is_not_the_control_planes_changes_nothing(tmp_path: Path) -> None:
    control = StandIn()
    own = {"GATEWAY_STATE_DIR": str(tmp_path / "state"), "DB_PATH": str(tmp_path / "audit.db")}
    with listening(control) as listener:
        enrol = run(["link", "--control", listener.url], {**own, "GATEWAY_ENROL_TOKEN": control.token()})
        assert enrol.returncode == 0, enrol.stderr
        before = (tmp_path / "state" / FILE_NAME).read_bytes()
        kept = (tmp_path / "state" / "link.json").read_bytes()
        for answer in ((200, b"<html>log in</html>"), (403, b"{}"), (404, b""), (500, b"")):
            listener.spoil = lambda path, good, answer=answer: answer if path.endswith("/rotate") else good  # type: ignore[misc]
            assert run(["link", "rotate", "--yes"], own).returncode == 69
            assert (tmp_path / "state" / FILE_NAME).read_bytes() == before
            assert (tmp_path / "state" / "link.json").read_bytes() == kept
        listener.spoil = lambda _path, good: good
        for reason, words in (("cut", "a person who may manage gateways restores it"), ("duplicated", "another process uses")):
            control.cut(reason)  # type: ignore[arg-type]
            refused = run(["link", "rotate", "--yes"], own)
            assert (refused.returncode, words in refused.stderr, "404" in refused.stderr) == (69, True, False), refused.stderr
            assert (tmp_path / "state" / FILE_NAME).read_bytes() == before
        control.cut(None)
        control.clock_off_ms = 24 * 3600 * 1000
        done = run(["link", "rotate", "--yes"], own)
        assert done.returncode == 0, done.stderr
