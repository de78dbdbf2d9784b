"""Telemetry of a running gatewayd: canaries in all that it is given, and none in anything it sends (decision 9)."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, SHOP, Agent, gatewayd
from tests.notify.receiver import receiving, status

CANARY = "canary"
SCHEMA = f"""{SHOP}
CREATE TABLE {CANARY}_table ({CANARY}_column text);
INSERT INTO {CANARY}_table VALUES ('{CANARY}-data');
"""
STATEMENTS = [
    f"SELECT {CANARY}_column FROM {CANARY}_table",
    f"SELECT * FROM {CANARY}_table WHERE {CANARY}_column = '{CANARY}-literal' -- {CANARY}-comment",
    f"SELECT {CANARY}_column::int FROM {CANARY}_table",  # PostgreSQL's message quotes the value
    f"SELECT {CANARY}_missing",
    f"DELETE FROM {CANARY}_table",
    f"{CANARY} syntax",
    f"SELECT 1; SELECT '{CANARY}'",
    f"CREATE TABLE {CANARY}_new (a int)",
]


@pytest.fixture
def canary_dsn(postgres: Postgres) -> str:
    """A database, role and password with canaries in their names."""
    dsn = postgres.create_database(SCHEMA)
    name = dsn.split("@", 1)[1].split("/", 1)[1].split("?", 1)[0]
    postgres.execute(f'ALTER DATABASE "{name}" RENAME TO "{name}_{CANARY}"')
    return dsn.replace(f"/{name}?", f"/{name}_{CANARY}?")


async def test_no_canary_is_in_any_report(canary_dsn: str, tmp_path: Path, free_port: int) -> None:
    policy = f"databases: [{{name: {CANARY}, url: '${{CANARY_URL}}', table_access: {{tables: {{secrets: deny}}}}}}]"
    async with receiving(status("204 No Content")) as receiver:
        with (
            trio.fail_after(PATIENCE_S),
            gatewayd(
                "", tmp_path, free_port, policy,
                CANARY_URL=canary_dsn, GATEWAY_TELEMETRY="1", GATEWAY_TELEMETRY_ENDPOINT=receiver.url,
                GATEWAY_TELEMETRY_HEARTBEAT_MS="50", INDEXER_TOKEN="canary-token", GATEWAY_ALLOWED_HOSTS="canary-host,127.0.0.1",
            ) as running,
        ):  # fmt: skip
            await receiver.received(1)
            async with Agent(free_port) as agent:
                agent.headers["x-gateway-token-id"] = "01ARYZ6S41TSV4RRFFQ69G5FAV"
                for sql in STATEMENTS:
                    await agent.call("query", sql=sql, intent=f"{CANARY}-intent")
                await agent.call("describe_table", table=f"{CANARY}_table")
                await agent.call("list_tables", schema=f"{CANARY}_schema")
            async with httpx.AsyncClient(
                headers={"host": "canary-host", "authorization": "Bearer canary-token"}, timeout=60
            ) as http:
                answer = await http.post(f"http://127.0.0.1:{free_port}/admin/policy", content=CANARY)
                assert answer.status_code == 400
            await receiver.received(len(receiver.requests) + 3)
            assert await trio.to_thread.run_sync(running.stop) == 0
    told = running.text
    assert told.index("telemetry notice") < told.index("gatewayd started")  # what is sent, and how not to, before anything is
    assert "GATEWAY_TELEMETRY=0" in told
    reports: list[dict[str, Any]] = [body for _, body in receiver.requests]
    assert reports[0]["event"] == "startup"
    assert {report["event"] for report in reports[1:]} == {"heartbeat"}
    usages = [report["usage"] for report in reports]
    assert sum(usage["tools"].get("query", 0) for usage in usages) == len(STATEMENTS)
    assert sum(usage["tools"].get("describe_table", 0) for usage in usages) == 1
    text = json.dumps(reports).lower()
    for secret in (
        CANARY,
        "01aryz6s41tsv4rrffq69g5fav",
        "plain agent",
        "127.0.0.1",
        str(free_port),
        str(tmp_path).lower(),
        "public",
    ):
        assert secret not in text
    for head, _ in receiver.requests:
        named = {name for name, value in head.headers if CANARY in value.decode().lower()}
        assert named == set()


@pytest.mark.parametrize(
    "off", [{"GATEWAY_TELEMETRY": "off"}, {"GATEWAY_TELEMETRY": "1", "DO_NOT_TRACK": "1"}, {"GATEWAY_TELEMETRY": "?"}]
)
async def test_switched_off_it_sends_nothing_and_leaves_nothing(
    off: dict[str, str], postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    async with receiving(status("204 No Content")) as receiver:
        given = {"GATEWAY_TELEMETRY_ENDPOINT": receiver.url, "GATEWAY_TELEMETRY_HEARTBEAT_MS": "1", **off}
        with trio.fail_after(PATIENCE_S), gatewayd(postgres.create_database(SHOP), tmp_path, free_port, **given) as running:
            async with Agent(free_port) as agent:
                assert (await agent.query("SELECT 1"))["allowed"]
            assert await trio.to_thread.run_sync(running.stop) == 0
    assert receiver.connections == 0
    assert "telemetry notice" not in running.text
    assert not (tmp_path / "install-id").exists()


async def test_debug_shows_the_report_instead_of_sending_it(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    async with receiving(status("204 No Content")) as receiver:
        given = {"GATEWAY_TELEMETRY_ENDPOINT": receiver.url, "GATEWAY_TELEMETRY": "debug"}
        with trio.fail_after(PATIENCE_S), gatewayd(postgres.create_database(SHOP), tmp_path, free_port, **given) as running:
            assert await trio.to_thread.run_sync(running.stop) == 0
    assert receiver.connections == 0
    (report,) = [json.loads(line) for line in running.text.splitlines() if '"event":"startup"' in line]
    assert report["install_id"] == (tmp_path / "install-id").read_text(encoding="ascii").strip()
