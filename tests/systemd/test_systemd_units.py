"""The units: what they promise is in them, both are hardened alike, and systemd itself finds nothing to say (operations C1)."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from gatewayd.config.variables import DEFAULTS, NAMES

ROOT = Path(__file__).parents[2]
UNITS = ["gatewayd.service", "gatewayd@.service"]
INSTALLED = "/opt/gatewayd/bin/gatewayd"
EXPOSURE = 2.0
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="no systemd-analyze on this machine")


@cache
def settings(unit: str) -> dict[str, list[str]]:
    """Key -> its values in their order. Keys are unique over the sections of these units."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "systemd" / unit).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "[")):
            key, separator, value = line.partition("=")
            assert separator, line
            assert "#" not in value, f"systemd has no comments behind values: {line}"
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_runs_gatewayd_as_it_wants_to_be_run(unit: str) -> None:
    found = settings(unit)
    assert found["Type"] == ["notify", "notify-reload"]  # the second holds where systemd knows it
    assert found["ExecStartPre"] == [f"{INSTALLED} check"]
    assert found["ExecStart"] == [f"{INSTALLED} serve"]
    assert found["NotifyAccess"] == ["main"]
    assert int(found["WatchdogSec"][0]) > 0
    assert int(found["TimeoutStopSec"][0]) > float(DEFAULTS["GATEWAY_SHUTDOWN_GRACE_S"] or 0) + 30
    assert "78" in found["RestartPreventExitStatus"][0].split()
    assert found["DynamicUser"] == ["yes"]
    assert int(found["LimitNOFILE"][0]) >= 4096 + 256  # connections and what is kept for the rest
    assert "ReadWritePaths" not in found


@pytest.mark.parametrize("unit", UNITS)
def test_secrets_come_as_credentials_under_names_that_gatewayd_reads(unit: str) -> None:
    for value in settings(unit)["LoadCredential"]:
        name, _, path = value.partition(":")
        assert name.upper().replace("-", "_") in NAMES | {"DATABASE_URL"}
        assert path.endswith(f"/secrets/{name}")
    assert not [value for value in settings(unit).get("Environment", []) if "URL" in value or "TOKEN" in value]


def test_instances_share_nothing_but_the_hardening() -> None:
    one, many = settings(UNITS[0]), settings(UNITS[1])
    assert one.keys() == many.keys()
    differing = {key for key in one if one[key] != many[key]}
    assert differing == {"Description", "EnvironmentFile", "LoadCredential", "StateDirectory", "SyslogIdentifier"}
    for key in differing:
        assert all("%i" in value for value in many[key]), key
        assert not any("%" in value for value in one[key]), key
    assert one["StateDirectory"] != many["StateDirectory"]


def test_the_sample_environment_does_not_move_the_state_or_hold_secrets() -> None:
    """A DB_PATH outside of the state directory could not be written under ProtectSystem=strict."""
    sample = (ROOT / "conf" / "gatewayd.service.env").read_text(encoding="utf-8")
    names = set(re.findall(r"^#?([A-Z_]+)=", sample, flags=re.MULTILINE))
    assert names <= NAMES
    assert not names & {"DB_PATH", "DATABASE_URL", "INDEXER_TOKEN", "GATEWAY_MASK_SALT", "GATEWAY_APPROVAL_TOKEN"}


@cache
def version() -> int:
    assert ANALYZE is not None
    text = subprocess.run([ANALYZE, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    return int(text.split()[1])


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as they would stand in /etc/systemd/system, with a program that exists."""
    program = tmp_path / "gatewayd"
    program.symlink_to(sys.executable)
    for unit in UNITS:
        text = (ROOT / "systemd" / unit).read_text(encoding="utf-8").replace(INSTALLED, str(program))
        (tmp_path / unit.replace("@", "@shop")).write_text(text, encoding="utf-8")
    return tmp_path


@needs_systemd
@pytest.mark.parametrize("unit", [unit.replace("@", "@shop") for unit in UNITS])
def test_systemd_has_nothing_to_say_about_the_unit(installed: Path, unit: str) -> None:
    assert ANALYZE is not None
    found = subprocess.run(
        [ANALYZE, "verify", "--man=no", str(installed / unit)], capture_output=True, text=True, check=False, timeout=60
    )
    said = [line for line in (found.stdout + found.stderr).splitlines() if unit in line]
    if version() < 253:
        said = [line for line in said if not line.endswith("ignoring: notify-reload")]
    assert (found.returncode, said) == (0, [])


@needs_systemd
@pytest.mark.parametrize("unit", [unit.replace("@", "@shop") for unit in UNITS])
def test_the_exposure_is_low(installed: Path, unit: str) -> None:
    assert ANALYZE is not None
    found = subprocess.run(
        [ANALYZE, "security", "--no-pager", "--offline=yes", str(installed / unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", found.stdout)
    assert level is not None, found.stderr
    assert float(level[1]) <= EXPOSURE
