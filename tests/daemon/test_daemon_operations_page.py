"""docs/operations.md's commands, run as written against a gatewayd under its own sample policy."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Postgres
from tests.daemon.daemon_rig import SHOP
from tests.daemon.operators_rig import TOKEN, operated

ROOT = Path(__file__).parents[2]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_every_curl_of_the_page_works(postgres: Postgres, tmp_path: Path) -> None:
    section = OPERATIONS.split("## Operators' routes\n")[1].split("\n## ")[0]
    commands = re.findall(r"^curl .*$", section, flags=re.MULTILINE)
    routes = ["/audit/since/", "/audit/before/", "/admin/policy", "/admin/dry-run", "/admin/dry-run"]
    routes += ["/admin/taint", "/admin/taint", "/metrics"]
    assert [any(route in command for command in commands) for route in routes] == [True] * len(routes)
    with operated(postgres.create_database(SHOP), tmp_path, GATEWAY_DENY_WEBHOOK="http://127.0.0.1:1/") as operator:
        given = {**os.environ, "TOKEN": TOKEN, "GATEWAY": f"http://127.0.0.1:{operator.port}"}
        answers = [
            subprocess.run(
                ["sh", "-euc", command + " --fail"], cwd=ROOT, env=given, capture_output=True, text=True, check=True, timeout=60
            ).stdout
            for command in commands
        ]
    found = dict(zip(routes, answers, strict=True))
    assert found["/audit/since/"].startswith('{"rows":[')
    assert found["/audit/before/"] == '{"deleted":0}'
    assert found["/admin/policy"].startswith('{"ok":true,')
    assert '"matched_rule":' in found["/admin/dry-run"]
    assert found["/admin/taint"] == '{"cleared":[]}'
    named = re.findall(r"`(gatewayd_\w+)", section)
    assert len(named) > 12
    for metric in named:
        assert metric in found["/metrics"], metric


def test_the_service_section_names_files_that_exist() -> None:
    section = OPERATIONS.split("## Run it as a service\n")[1].split("\n## ")[0]
    for path in (
        "requirements.lock",
        "conf/gatewayd.service.env",
        "conf/policy.yaml",
        "systemd/gatewayd.service",
        "systemd/gatewayd@.service",
    ):
        assert path in section
        assert (ROOT / path).exists()
