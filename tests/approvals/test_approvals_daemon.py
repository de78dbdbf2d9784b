"""A whole gatewayd with the gate of `gatewayd approve` behind it, and the official SDK as its agent (docs/approvals.md)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp import Client

from gatewayd.approvals.desk.requests import EXPIRES_MS
from tests.approvals.desks import TOKEN, OpenDesk, desk
from tests.approvals.gates import TABLES, WRITE
from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, Agent, ask, chains, gatewayd, kinds, stdio_agent, until, variables
from tests.daemon.operators_rig import Operator, operated

# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]
POLICY = """
table_access: {default: read_write, tables: {secrets: deny}}
approvals: {writes: true, hold_s: %s}
"""
AT_ONCE, LONG = POLICY % 0, POLICY % 50
INTENT = "month end"


def given(desk_: OpenDesk) -> dict[str, str]:
    return {"GATEWAY_APPROVAL_URL": desk_.url, "GATEWAY_APPROVAL_TOKEN": TOKEN}


@asynccontextmanager
async def sdk(
    transport: str, era: str, dsn: str, folder: Path, port: int, policy: str, open_desk: OpenDesk
) -> AsyncIterator[Client]:
    with trio.fail_after(PATIENCE_S):
        if transport == "stdio":
            async with stdio_agent({**variables(dsn, folder, policy), **given(open_desk)}, era) as client:
                yield client
        else:
            with gatewayd(dsn, folder, port, policy, **given(open_desk)):
                async with Client(f"http://127.0.0.1:{port}/mcp", mode=era) as client:
                    yield client


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_held_polled_approved_run_polled(
    transport: str, era: str, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    dsn = postgres.create_database(TABLES)
    async with (
        desk(tmp_path / "r.db") as open_desk,
        sdk(transport, era, dsn, tmp_path, free_port, AT_ONCE, open_desk) as client,
    ):
        assert "check_approval" in [tool.name for tool in (await client.list_tools()).tools]
        held, is_error = await ask(client, "query", sql=WRITE, intent=INTENT)
        assert (is_error, held["allowed"], held["status"]) == (True, False, "awaiting_approval")
        assert held["retryable"] is True
        assert (held["resume"]["tool"], held["resume"]["sql"], held["resume"]["intent"]) == ("query", WRITE, INTENT)
        assert held["expires_at"].endswith("Z")

        status, is_error = await ask(client, "check_approval", approval_id=held["approval_id"])
        assert (is_error, status["status"], status["executed"], status["expires_at"]) == (
            False, "pending", False, held["expires_at"],
        )  # fmt: skip
        request = await open_desk.open_request()
        assert request.ask.preview is not None
        assert request.ask.preview.rows == 3
        assert open_desk.decide(request.approval_id, note="go on", rows_at_most=3)
        status, _ = await ask(client, "check_approval", approval_id=held["approval_id"])
        assert (status["status"], status["executed"], status["by"], status["note"]) == ("approved", False, "ann", "go on")

        other, _ = await ask(client, "query", sql=WRITE + " ", intent=INTENT)
        assert other["approval_id"] != held["approval_id"]
        done, is_error = await ask(client, "query", **{key: held["resume"][key] for key in ("sql", "intent")})
        assert (is_error, done["rowCount"]) == (False, 3)
        with trio.fail_after(60):
            while (status := (await ask(client, "check_approval", approval_id=held["approval_id"]))[0])["status"] != "executed":
                assert status["status"] == "consumed"  # until the gate is told
                assert status["executed"] is None
        assert status["executed"] is True
        unknown, _ = await ask(client, "check_approval", approval_id="nosuch")
        assert (unknown["status"], unknown["executed"]) == ("not_found", False)
        invalid, is_error = await ask(client, "check_approval", approval_id="x" * 65)
        assert (is_error, invalid["error"]) == (True, "invalid_arguments")
    assert postgres.execute("SELECT sum(balance) FROM accounts", dsn).strip() == "50503"


async def test_denied_and_expired(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(TABLES)
    async with desk(tmp_path / "r.db") as open_desk:
        with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, AT_ONCE, **given(open_desk)):
            for era in ("auto", "legacy"):
                async with Client(f"http://127.0.0.1:{free_port}/mcp", mode=era) as client:
                    await is_denied_then_expires(client, open_desk, f" -- {era}")


async def is_denied_then_expires(client: Client, open_desk: OpenDesk, mark: str) -> None:
    held, _ = await ask(client, "query", sql=WRITE + mark, intent=INTENT)
    open_desk.decide(held["approval_id"], "denied", note="<b>no</b>\x1b[31m")
    for _ in range(2):
        denied, is_error = await ask(client, "query", sql=WRITE + mark, intent=INTENT)
        assert (is_error, denied["policy_rule"]) == (True, "approval_denied")
        assert denied["reason"] == "ann refused this write: <b>no</b>\\x1b[31m"
        assert denied["auditId"]
    status, _ = await ask(client, "check_approval", approval_id=held["approval_id"])
    assert (status["status"], status["note"]) == ("denied", "<b>no</b>\\x1b[31m")

    other = "DELETE FROM log WHERE id = 1" + mark
    held, _ = await ask(client, "query", sql=other, intent=INTENT)
    open_desk.ahead_ms += EXPIRES_MS
    assert (await ask(client, "check_approval", approval_id=held["approval_id"]))[0]["status"] == "expired"
    expired, is_error = await ask(client, "query", sql=other, intent=INTENT)
    assert (is_error, expired["policy_rule"]) == (True, "approval_expired")
    again, _ = await ask(client, "query", sql=other, intent=INTENT)
    assert again["approval_id"] != held["approval_id"]


async def test_a_client_that_goes_leaves_its_request(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    """The request stays, is decided, and the next call with the same text runs."""
    dsn = postgres.create_database(TABLES)
    async with desk(tmp_path / "r.db") as open_desk:
        with trio.fail_after(PATIENCE_S), operated(dsn, tmp_path, LONG, **given(open_desk)) as operator:
            for era in ("auto", "legacy"):
                for how in ("leaves", "cancels"):
                    await goes(operator, open_desk, era, how)
    assert postgres.execute("SELECT sum(balance) FROM accounts", dsn).strip() == str(50500 + 4 * 3)


async def goes(operator: Operator, open_desk: OpenDesk, era: str, how: str) -> None:
    url, sql = f"http://127.0.0.1:{operator.port}/mcp", f"{WRITE} -- {era} {how}"
    async with trio.open_nursery() as nursery:
        cancelled = await nursery.start(asks_until_cancelled, url, era, how, sql)
        request = await open_desk.open_request()
        await until(lambda: request.approval_id in open_desk.requests.waited_for)
        cancelled.cancel()
    if how == "cancels" or era == "auto":  # in the handshake era a client that only goes away takes nothing back
        await until(lambda: operator.metrics()["gatewayd_approvals_held", ()] == 0)
        assert open_desk.decide(request.approval_id)
        async with Client(url, mode=era) as client:
            done, is_error = await ask(client, "query", sql=sql, intent=INTENT)
            assert (is_error, done.get("rowCount")) == (False, 3)
    else:
        assert open_desk.decide(request.approval_id)
        await until(lambda: operator.metrics()["gatewayd_approvals_held", ()] == 0)


async def asks_until_cancelled(url: str, era: str, how: str, sql: str, *, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    """Cancels its call and goes on, or leaves with all that it has."""
    with trio.CancelScope() as leaves:
        async with Client(url, mode=era) as client:
            with trio.CancelScope() as cancels:
                task_status.started(leaves if how == "leaves" else cancels)
                await ask(client, "query", sql=sql, intent=INTENT)
            assert (await ask(client, "query", sql="SELECT 1 AS one", intent=INTENT))[0]["rows"] == [{"one": 1}]


async def test_held_reported_decided_and_run_within_one_call(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(TABLES)
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with (
        desk(tmp_path / "r.db") as open_desk,
        sdk("http", "auto", dsn, tmp_path, free_port, LONG, open_desk) as client,
        trio.open_nursery() as nursery,
    ):
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await client.call_tool("query", {"sql": WRITE, "intent": INTENT}, progress_callback=note))

        nursery.start_soon(call)
        request = await open_desk.open_request()
        await until(lambda: bool(seen))
        open_desk.decide(request.approval_id)
    assert not answers[0].is_error
    assert 4 < seen[0] < 8


async def test_two_identical_calls_at_once_one_runs(postgres: Postgres, tmp_path: Path) -> None:
    dsn = postgres.create_database(TABLES)
    async with desk(tmp_path / "r.db") as open_desk:
        with operated(dsn, tmp_path, POLICY % 3, **given(open_desk)) as operator:
            answers: list[dict[str, Any]] = []

            async def call() -> None:
                async with Agent(operator.port) as agent:
                    answers.append(await agent.query(WRITE))

            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(call)
                request = await open_desk.open_request()
                await until(lambda: operator.metrics()["gatewayd_approvals_held", ()] == 2)
                open_desk.decide(request.approval_id)
    assert sorted(answer["allowed"] for answer in answers) == [False, True]
    assert postgres.execute("SELECT sum(balance) FROM accounts", dsn).strip() == "50503"


async def test_draining_answers_held_calls_at_once(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(TABLES)
    async with desk(tmp_path / "r.db") as open_desk:
        with gatewayd(dsn, tmp_path, free_port, LONG, **given(open_desk)) as running:
            answers: list[dict[str, Any]] = []

            async def call() -> None:
                async with Agent(free_port) as agent:
                    answers.append(await agent.query(WRITE))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                request = await open_desk.open_request()
                await until(lambda: request.approval_id in open_desk.requests.waited_for)
                began = trio.current_time()
                code = await trio.to_thread.run_sync(running.stop)
            assert (code, answers[0]["status"], answers[0]["approval_id"]) == (0, "awaiting_approval", request.approval_id)
            assert "stopping" in answers[0]["reason"]
            assert trio.current_time() - began < 5
    assert [kinds(chain) for chain in chains(tmp_path).values() if "preview_of" not in chain[0][1]] == ["ATTEMPTED"]


def reloads(operator: Operator, text: str) -> tuple[int, str]:
    answer = operator.policy(text)
    return answer.status_code, answer.text


async def test_reload_switches_approvals_on_and_off(postgres: Postgres, tmp_path: Path) -> None:
    dsn = postgres.create_database(TABLES)
    open_policy = "table_access: {default: read_write}\n"
    async with desk(tmp_path / "r.db") as open_desk:
        with operated(dsn, tmp_path, open_policy, **given(open_desk)) as operator:
            async with Agent(operator.port) as agent:
                assert (await agent.query(WRITE))["allowed"]
                assert reloads(operator, open_policy + "approvals: {row_changes: true, hold_s: 0}")[0] == 200
                held = await agent.query(WRITE)
                assert held["status"] == "awaiting_approval"
                assert operator.dry_run(database="__default__", sql=WRITE)["verdicts"][0]["reason"].endswith(
                    "waits for a human's approval (approvals.row_changes)"
                )
                assert reloads(operator, open_policy + "approvals: {writes: false}")[0] == 200
                assert (await agent.query(WRITE))["allowed"]
                row = operator.rows("POLICY_RELOADED")[0]["payload"]
                assert row["diff"]["approvals"]["hold_s"] == {"from": 20, "to": 0}
                metrics = operator.metrics()
                assert metrics["gatewayd_approvals_total", (("outcome", "pending"),)] == 1
                assert metrics["gatewayd_calls_total", (("database", "__default__"), ("outcome", "held"), ("tool", "query"))] == 1


async def test_without_a_gate_approvals_are_refused(postgres: Postgres, tmp_path: Path) -> None:
    dsn = postgres.create_database(TABLES)
    with operated(dsn, tmp_path, "table_access: {default: read_write}") as operator:
        status, text = reloads(operator, "table_access: {default: read_write}\napprovals: {writes: true}")
        assert (status, "GATEWAY_APPROVAL_URL" in text) == (400, True)
        async with Agent(operator.port) as agent:
            assert (await agent.query(WRITE))["allowed"]
    folder = tmp_path / "b"
    folder.mkdir()
    refused = await trio.to_thread.run_sync(lambda: run(["check"], variables(dsn, folder, AT_ONCE)))
    assert refused.returncode == 78
    assert "approvals that are on without a gate" in refused.stdout + refused.stderr


async def test_several_databases_each_with_its_own_approvals(postgres: Postgres, tmp_path: Path) -> None:
    first, second = postgres.create_database(TABLES), postgres.create_database(TABLES)
    policy = """
databases:
  - {name: held, url: "${HELD_URL}", table_access: {default: read_write}, approvals: {writes: true, hold_s: 0}}
  - {name: free, url: "${FREE_URL}", table_access: {default: read_write}}
"""
    async with desk(tmp_path / "r.db") as open_desk:
        more = {**given(open_desk), "HELD_URL": first, "FREE_URL": second}
        with operated(first, tmp_path, policy, **more) as operator:
            async with Agent(operator.port) as agent:
                assert (await agent.query(WRITE, database="free"))["allowed"]
                held = await agent.query(WRITE, database="held")
                assert held["resume"]["database"] == "held"
                open_desk.decide(held["approval_id"])
                assert (await agent.query(WRITE, database="held"))["allowed"]
    assert open_desk.requests is not None


async def test_neither_address_nor_token_of_the_gate_is_told(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(TABLES)
    secret = {
        "GATEWAY_APPROVAL_URL": "http://127.0.0.1:1/path-canary?key=query-canary",
        "GATEWAY_APPROVAL_TOKEN": "token-canary",
        "GATEWAY_LOG_LEVEL": "debug",
    }
    with gatewayd(dsn, tmp_path, free_port, AT_ONCE, **secret) as running:
        async with Agent(free_port) as agent:
            answers = [await agent.query(WRITE), await agent.call("check_approval", approval_id="a")]
        await trio.to_thread.run_sync(running.stop)
    assert answers[0]["status"] == "approval_unavailable"
    assert "approval_id" not in answers[0]
    assert (answers[1]["error"], answers[1]["retryable"]) == ("approval_unavailable", True)
    assert running.text.count("approval gate unreachable") == 1
    assert "canary" not in running.text + json.dumps(answers)
    all_variables = {**variables(dsn, tmp_path, AT_ONCE), **secret, "PORT": str(free_port)}
    doctor = await trio.to_thread.run_sync(run, ["doctor", "--json"], all_variables)
    [found] = [each for each in map(json.loads, doctor.stdout.splitlines()) if each["check"] == "approval gate"]
    assert found["outcome"] == "FAIL"
    assert not any(f"{part}-canary" in doctor.stdout + doctor.stderr for part in ("path", "query", "token"))


async def test_doctor_tells_a_wrong_token_from_a_right_one(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(TABLES)
    async with desk(tmp_path / "r.db") as open_desk:
        for token, outcome, words in ((TOKEN, "OK", "takes the token"), ("another", "FAIL", "is not the one it takes")):
            more = {"GATEWAY_APPROVAL_URL": open_desk.url, "GATEWAY_APPROVAL_TOKEN": token, "PORT": str(free_port)}
            variables_ = {**variables(dsn, tmp_path, AT_ONCE), **more}
            doctor = await trio.to_thread.run_sync(run, ["doctor", "--json"], variables_)
            [found] = [each for each in map(json.loads, doctor.stdout.splitlines()) if each["check"] == "approval gate"]
            assert (found["outcome"], words in found["found"]) == (outcome, True)
