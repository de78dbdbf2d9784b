"""An audit file as the first release wrote it (format 1), under this version: nothing is lost, and what follows is proved."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.cli.gatewayd_process import run, serving
from tests.conftest import Postgres
from tests.daemon.daemon_rig import variables

ARTEFACT = Path(__file__).parent / "artefacts" / "audit-format-1.db"
ROWS = 21
POLICY = "table_access: {default: read}\n"


def test_a_file_of_the_first_release_is_read_verified_and_gone_on_with(
    postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    path = tmp_path / "audit.db"
    shutil.copyfile(ARTEFACT, path)
    own = variables(postgres.create_database("CREATE TABLE orders (id integer)"), tmp_path, POLICY)
    own |= {"DB_PATH": str(path), "PORT": str(free_port), "GATEWAY_HOST": "127.0.0.1"}
    before = rows(own)
    assert len(before) == ROWS
    assert {row["payload"]["decision"] for row in before if row["event_type"] == "DECIDED"} == {"ALLOW", "DENY"}
    verified = run(["audit", "verify"], own)
    assert (verified.returncode, "format 1" in verified.stdout + verified.stderr) == (0, True)

    with serving([], own) as running:
        running.wait_for("gatewayd started")
        asked = run(["query", "SELECT count(*) AS n FROM orders", "--intent", "after the upgrade"], own)
        running.stop()
    assert (asked.returncode, asked.stdout) == (0, '{"n":0}\n'), asked.stderr
    after = rows(own)
    assert after[:ROWS] == before
    assert [row["seq"] for row in after[ROWS:]] == [1, 2, 3]
    verified = run(["audit", "verify"], own)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert f"{ROWS} rows are from before format 2" in verified.stdout + verified.stderr
    proof = run(["audit", "prove", after[-1]["query_id"]], own)
    assert proof.stdout.startswith("c2sp.org/tlog-proof@v1"), proof.stderr


def rows(own: dict[str, str]) -> list[dict[str, Any]]:
    shown = run(["audit", "since", "0"], own)
    assert shown.returncode == 0, shown.stderr
    found: list[dict[str, Any]] = [json.loads(line) for line in shown.stdout.splitlines()]
    return found
