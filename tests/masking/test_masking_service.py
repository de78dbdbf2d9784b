"""Masks in a running gatewayd: what the audit says, what boot and reload refuse, and canaries that must show up nowhere."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, Agent, chains, gatewayd, kinds, variables
from tests.masking.honest_statements import STATEMENTS
from tests.masking.masking_shop import HIDING, SCHEMA, SHOWING, data
from tests.masking.refused_writes import REFUSED

SALT = {"GATEWAY_MASK_SALT": "salt-canary-58213"}
TOKEN = "operators-token"
CANARY = re.compile(r"(?:mail|ssn|tel|card|[lt])\d{9}|salt-canary|\"secret\\*\": \d{3}")
"""Raw values as the shop's data makes them, and the salt."""


@pytest.fixture(scope="session")
def dsn(postgres: Postgres) -> str:
    return postgres.create_database(SCHEMA + data(21))


def raw_values(postgres: Postgres, dsn: str) -> set[str]:
    rows: list[dict[str, Any]] = postgres.query("SELECT email, ssn, phone, tags[1] AS tag FROM users", dsn)
    return {str(value) for row in rows for value in row.values() if value}


@pytest.mark.parametrize("mode", ["source_rewrite", "post_exec"])
async def test_canaries_show_up_nowhere(postgres: Postgres, tmp_path: Path, free_port: int, mode: str) -> None:
    dsn = postgres.create_database(SCHEMA + data(21))  # of its own: post_exec answers some of the writes
    assert all(CANARY.search(value) for value in raw_values(postgres, dsn))
    policy = SHOWING if mode == "source_rewrite" else SHOWING.replace("rewrite: true", "rewrite: false")
    given = {**SALT, "INDEXER_TOKEN": TOKEN, "GATEWAY_LOG_LEVEL": "debug"}
    answers: list[dict[str, Any]] = []
    with gatewayd(dsn, tmp_path, free_port, policy, **given) as running, trio.fail_after(PATIENCE_S):
        async with Agent(free_port) as agent:
            asked = (*STATEMENTS, *REFUSED.values(), "SELECT email::int FROM users", "SELECT 1/length(ssn) - 'x' FROM users")
            answers += [await agent.query(sql) for sql in asked]
            answers.append(await agent.call("describe_table", table="users"))
            answers.append(await agent.query("SELECT query FROM pg_stat_activity"))
        async with httpx.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S) as http:
            metrics = (await http.get(f"http://127.0.0.1:{free_port}/metrics")).text
    events = chains(tmp_path)
    payloads = [
        json.dumps({key: value for key, value in payload.items() if key != "sql_raw"})
        for chain in events.values()
        for _, payload in chain
    ]
    for text in (json.dumps(answers), metrics, running.text, *payloads):
        assert not CANARY.search(text), CANARY.search(text)
    assert {payload.get("masking_path") for chain in events.values() for _, payload in chain} == {None, mode}
    assert sum("rows" in answer for answer in answers) > 100


async def test_the_audit_tells_what_was_masked_and_what_was_withheld(dsn: str, tmp_path: Path, free_port: int) -> None:
    with gatewayd(dsn, tmp_path, free_port, HIDING, **SALT), trio.fail_after(PATIENCE_S):
        async with Agent(free_port) as agent:
            masked = await agent.query("SELECT id, ssn FROM users WHERE id = 1")
            withheld = await agent.query("SELECT id FROM users FOR UPDATE")
            await agent.query("SELECT title FROM products WHERE id = 1")
    assert masked["rows"] == [{"id": 1, "ssn": "***"}]
    assert (withheld["allowed"], withheld["policy_rule"]) == (False, "column_masking")
    one, two, three = chains(tmp_path).values()
    assert one[-1][1]["columns_masked"] == ["public.users.ssn"]
    assert one[-1][1]["masking_path"] == "source_rewrite"
    assert kinds(two).startswith("ATTEMPTED ALLOW FAILED")
    assert (two[-1][1]["error_class"], two[-1][1]["masking_stage"], two[-1][1]["exec_ms"]) == ("column_masking", "gate", 0)
    assert "columns_masked" not in three[-1][1]


UNFIT = {
    "table": ("column_masks: {nobody: {ssn: full-redact}}", 'column_masks."public.nobody"'),
    "column": ("column_masks: {users: {nothing: full-redact}}", 'column_masks."public.users".nothing'),
    "type": (
        "column_masks: {users: {salary: {t: partial}}}",
        'column_masks."public.users".salary: found a column of type numeric',
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_masks_that_do_not_fit_the_database_do_not_boot(dsn: str, tmp_path: Path, free_port: int, case: str) -> None:
    policy, named = UNFIT[case]
    ended = run(["serve"], {**variables(dsn, tmp_path, policy), **SALT, "GATEWAY_HOST": "127.0.0.1", "PORT": str(free_port)})
    assert ended.returncode == 78
    assert named in json.loads(next(line for line in ended.stderr.splitlines() if "configuration invalid" in line))["error"]


def test_masks_without_a_salt_do_not_boot(dsn: str, tmp_path: Path) -> None:
    ended = run(["serve"], variables(dsn, tmp_path, HIDING))
    assert ended.returncode == 78
    assert "GATEWAY_MASK_SALT" in ended.stdout + ended.stderr


async def test_a_reload_of_masks_that_do_not_fit_changes_nothing(dsn: str, tmp_path: Path, free_port: int) -> None:
    given = {**SALT, "INDEXER_TOKEN": TOKEN}
    with gatewayd(dsn, tmp_path, free_port, HIDING, **given), trio.fail_after(PATIENCE_S):
        bearer = {"authorization": f"Bearer {TOKEN}"}
        async with (
            Agent(free_port) as agent,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{free_port}", headers=bearer, timeout=60) as http,
        ):
            for policy, named in UNFIT.values():
                answer = await http.post("/admin/policy", content="table_access: {default: read}\n" + policy)
                assert answer.status_code == 400
                assert named in answer.json()["error"]
            assert (await agent.query("SELECT ssn FROM users WHERE id = 1"))["rows"] == [{"ssn": "***"}]
            body = "table_access: {default: read}\ncolumn_masks: {users: {name: null-out, ssn: full-redact}}"
            assert (await http.post("/admin/policy", content=body)).status_code == 200
            assert (await agent.query("SELECT name, ssn FROM users WHERE id = 1"))["rows"] == [{"name": None, "ssn": "***"}]
