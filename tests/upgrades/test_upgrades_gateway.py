"""What an early linked gateway left on its disk (identity, enrolment, trust, bundle cache, audit file) under this version.

The artefact's control plane has the keys of the seeds 01… and 02…, which are in force for centuries.
"""

import shutil
from pathlib import Path

import pytest

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import load_identity
from gatewayd.link.kept import Kept
from tests.cli.gatewayd_process import run, serving
from tests.conftest import Postgres
from tests.link.link_rig import POLICY, SHOP, WRITES, Linked, linked, variables
from tests.link.stand_in import Gateway, StandIn, listening

ARTEFACTS = Path(__file__).parent / "artefacts" / "linked"


@pytest.fixture
def shop(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A copy of what was left; git keeps no permissions."""
    folder = tmp_path / "gateway"
    shutil.copytree(ARTEFACTS, folder)
    (folder / "state").chmod(0o700)
    for path in (folder / "state").iterdir():
        path.chmod(0o600)
    return folder


def the_control_plane(folder: Path) -> StandIn:
    """The one that the gateway was enrolled at."""
    control = StandIn()
    control.root, control.working = SigningKey(bytes([1]) * 32), SigningKey(bytes([2]) * 32)
    control.trusts.clear()
    control.trust_version = 1  # what it issues next is newer than what the gateway has
    control.new_trust()
    enrolled, identity = Kept(str(folder / "state")).enrolled(), load_identity(str(folder / "state"), None)
    assert enrolled is not None
    assert identity is not None
    control.gateways[enrolled.gateway] = Gateway(enrolled.gateway, identity.public, enrolled.project)
    return control


def test_the_kept_bundle_is_enforced_without_a_control_plane(shop: str, left: Path, free_port: int) -> None:
    own = variables("http://127.0.0.1:9", shop, left, free_port, INDEXER_TOKEN="t")
    with serving([], own) as running:
        running.wait_for("gatewayd started")
        gateway = Linked(running, free_port, left, the_control_plane(left))
        with gateway.http:
            assert gateway.query("SELECT count(*) FROM orders")["rows"] == [{"count": 20}]
            assert gateway.query("SELECT * FROM payroll")["policy_rule"] == "table_access"
        running.stop()
    verified = run(["audit", "verify"], own)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_the_link_goes_on_where_it_was(shop: str, left: Path, free_port: int) -> None:
    control = the_control_plane(left)
    control.publish(POLICY, version=1)
    with listening(control) as listener, linked(listener, shop, left, free_port) as gateway:
        control.publish(WRITES, version=2)
        control.wait_for(lambda status: (status.state, status.version) == ("enforcing", 2))
        assert gateway.query("INSERT INTO orders VALUES (21, 'new')")["allowed"] is True
        held = len(gateway.rows())
        control.wait_for(lambda status: status.acked is not None and status.acked.size >= held)
        gateway.running.stop()
