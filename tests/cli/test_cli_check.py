"""`gatewayd check`: every problem on a line of its own, and the databases when asked to."""

from pathlib import Path

import pytest

from tests.cli.gatewayd_process import run
from tests.conftest import Postgres


@pytest.fixture
def configured(postgres: Postgres, tmp_path: Path) -> dict[str, str]:
    """A configuration that starts."""
    return {"DATABASE_URL": postgres.create_database("CREATE TABLE t (a integer)"), "DB_PATH": str(tmp_path / "new" / "audit.db")}


def test_valid(configured: dict[str, str]) -> None:
    shown = run(["check"], configured)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == "configuration is valid; no policy file: reads allowed, writes denied; 1 database(s)\n"


def test_it_leaves_nothing_behind(configured: dict[str, str]) -> None:
    run(["check", "--connect"], configured)
    assert not Path(configured["DB_PATH"]).parent.exists()


def test_all_problems_at_once(configured: dict[str, str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("table_access: {defualt: deny}\nlimits: {max_rows: 0}\n", encoding="utf-8")
    shown = run(["check"], {**configured, "PORT": "0", "GATEWAY_TRANSPORT": "carrier", "GATEWAY_POLICY_FILE": str(policy)})
    assert (shown.returncode, shown.stdout) == (78, "")
    lines = shown.stderr.splitlines()
    assert sorted(line.split(":")[0] for line in lines) == ["GATEWAY_POLICY_FILE"] * 2 + ["GATEWAY_TRANSPORT", "PORT"]
    assert "line 1, table_access.defualt" in shown.stderr


def test_audit_file_in_an_impossible_place(configured: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shown = run(["check"], {**configured, "DB_PATH": str(tmp_path / "file" / "audit.db")})
    assert shown.returncode == 78
    assert shown.stderr.startswith("DB_PATH: ")


def test_warnings_do_not_fail(configured: dict[str, str]) -> None:
    shown = run(["check"], {**configured, "GATEWAY_PORT": "8080"})
    assert shown.returncode == 0
    assert shown.stderr.startswith("warning: GATEWAY_PORT is not a variable of gatewayd")


def test_a_database_that_answers(configured: dict[str, str]) -> None:
    shown = run(["check", "--connect"], configured)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[1].startswith("database __default__: answers; PostgreSQL 16, ")


def test_a_wrong_password_is_told_and_not_shown(configured: dict[str, str], postgres: Postgres) -> None:
    shown = run(["check", "--connect"], {**configured, "DATABASE_URL": postgres.dsn(password="not-this-one")})
    assert shown.returncode == 69
    assert "database __default__: " in shown.stderr
    assert "28P01" in shown.stderr
    assert "not-this-one" not in shown.stdout + shown.stderr


def test_every_database_of_the_policy_is_asked(configured: dict[str, str], postgres: Postgres, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("databases:\n- {name: one, url: '${ONE}'}\n- {name: two, url: '${TWO}'}\n", encoding="utf-8")
    urls = {"ONE": postgres.dsn("there is none"), "TWO": configured.pop("DATABASE_URL")}
    shown = run(["check", "--connect"], {**configured, **urls, "GATEWAY_POLICY_FILE": str(policy)})
    assert shown.returncode == 69
    assert shown.stderr.startswith("database one: ")
    assert "3D000" in shown.stderr
    assert shown.stdout.splitlines()[1].startswith("database two: answers")
