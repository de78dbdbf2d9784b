"""A database that is absent, stopped, restarted, deaf or refuses gatewayd: said, recorded, and mended without a restart."""

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, SHOP, Agent, chains, gatewayd, just_started, kinds, running_there, until

POLICY = "table_access: {default: read, tables: {written: read_write}}\nlimits: {statement_timeout_ms: 5000}"
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
# The longest a call may take: connecting 10 s, or the statement's 5 s and twice 5 s for a server that is silent.
LONGEST_S = 20.0
SLACK_S = 15.0  # of a machine that is busy with other things too


def failed(answer: dict[str, Any], *sqlstates: str) -> bool:
    return answer["allowed"] and answer.get("error", {}).get("sqlstate") in sqlstates and bool(answer["error"]["message"])


async def until_it_answers(agent: Agent) -> None:
    """The gateway has no restart in between: calls alone show when the database is back."""
    while not (await agent.query("SELECT 1")).get("rows"):  # noqa: ASYNC110 - another process
        await trio.sleep(0.05)


def lines(text: str, msg: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if f'"msg":"{msg}"' in line]


async def test_absent_at_start_then_there(own_postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = own_postgres.create_database(SHOP)
    own_postgres.stop()
    with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, POLICY) as running:
        async with Agent(free_port) as agent:
            answer = await agent.query("SELECT 1")
            assert failed(answer, "08001")
            assert "does not exist" in answer["error"]["message"] or "nothing listens" in answer["error"]["message"]
            assert failed(await agent.call("list_tables"), "08001")
            own_postgres.start()
            await until_it_answers(agent)
            running.wait_for("database reachable")
            assert (await agent.query("SELECT count(*) FROM orders"))["rows"] == [{"count": 200}]
        assert await trio.to_thread.run_sync(running.stop) == 0
    (away,) = lines(running.text, "database unreachable")
    assert (away["database"], away["code"], away["level"]) == ("__default__", "08001", "error")
    assert away["error"]
    assert len(lines(running.text, "database reachable")) == 1
    found = [kinds(chain) for chain in chains(tmp_path).values()]
    assert set(found) == {"ATTEMPTED ALLOW FAILED", "ATTEMPTED ALLOW EXECUTED"}
    assert all(chain[2][1]["error_class"] == "08001" for chain in chains(tmp_path).values() if kinds(chain).endswith("FAILED"))


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_restarted_while_calls_run(mode: str, own_postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = own_postgres.create_database(SHOP)
    answers: list[dict[str, Any]] = []

    async def ask(sql: str) -> None:
        async with Agent(free_port) as agent:
            answers.append(await agent.query(sql))

    with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, POLICY.replace("5000", "60000")) as running:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask, ENDLESS)
            await until(lambda: running_there(own_postgres, ENDLESS) == 3)
            await trio.to_thread.run_sync(own_postgres.stop, mode)
        assert all(failed(answer, "57P01", "08006", "57P02") for answer in answers), answers
        async with Agent(free_port) as agent:
            assert failed(await agent.query("SELECT 1"), "08001", "08006")
            await trio.to_thread.run_sync(running.wait_for, "database unreachable")
            own_postgres.start()
            await until_it_answers(agent)
            await trio.to_thread.run_sync(running.wait_for, "database reachable")
        assert await trio.to_thread.run_sync(running.stop) == 0
    assert set(map(kinds, chains(tmp_path).values())) == {"ATTEMPTED ALLOW FAILED", "ATTEMPTED ALLOW EXECUTED"}


async def test_a_wrong_password_is_said_and_not_shown(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'right'")
    try:
        dsn = postgres.create_database(SHOP, user="guest", password="wrong-canary", tcp=True)
        with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, POLICY) as running:
            async with Agent(free_port) as agent:
                answer = await agent.query("SELECT 1")
                assert failed(answer, "28P01")
                assert "credentials" in answer["error"]["message"]
                postgres.execute("ALTER ROLE guest PASSWORD 'wrong-canary'")
                await until_it_answers(agent)
            await trio.to_thread.run_sync(running.wait_for, "database reachable")
            assert await trio.to_thread.run_sync(running.stop) == 0
        assert [line["code"] for line in lines(running.text, "database unreachable")] == ["28P01"]
        assert "canary" not in running.text
        assert "canary" not in str(chains(tmp_path))
        assert "guest" not in running.text
    finally:
        postgres.execute("DROP ROLE guest")


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("which", ["deaf", "refused"])
async def test_nothing_hangs_longer_than_the_timeouts(which: str, deaf_port: int, tmp_path: Path, free_port: int) -> None:
    port = deaf_port if which == "deaf" else 1
    dsn = f"postgresql://agent:password-canary@127.0.0.1:{port}/shop"
    with trio.fail_after(PATIENCE_S), just_started(dsn, tmp_path, free_port, POLICY) as running:
        async with Agent(free_port) as agent:
            with trio.fail_after(LONGEST_S + SLACK_S):
                assert failed(await agent.query("SELECT 1"), "08001")
            denied = await agent.query("DELETE FROM written")  # decided without the database
            assert denied["policy_rule"] == "dangerous_statement"
        assert await trio.to_thread.run_sync(running.stop) == 0
    assert len(lines(running.text, "database unreachable")) == 1
    assert "canary" not in running.text


async def test_a_server_that_freezes_ends_in_a_failure(own_postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = own_postgres.create_database(SHOP)
    with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, POLICY.replace("5000", "3000")) as running:
        async with Agent(free_port) as agent, trio.open_nursery() as nursery:
            answers: list[dict[str, Any]] = []

            async def ask() -> None:
                answers.append(await agent.query(ENDLESS))

            nursery.start_soon(ask)
            await until(lambda: bool(running_there(own_postgres, ENDLESS) or answers))
            own_postgres.server.signal(signal.SIGSTOP)
            with trio.fail_after(LONGEST_S + SLACK_S):
                while not answers:  # noqa: ASYNC110 - bounded just above
                    await trio.sleep(0.01)
            assert failed(answers[0], "57014", "08006")
            own_postgres.server.signal(signal.SIGCONT)
            await until_it_answers(agent)
        assert await trio.to_thread.run_sync(running.stop) == 0
    assert {kinds(chain) for chain in chains(tmp_path).values()} <= {"ATTEMPTED ALLOW FAILED", "ATTEMPTED ALLOW EXECUTED"}


async def test_one_database_down_leaves_the_others(
    own_postgres: Postgres, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    up, down = postgres.create_database(SHOP), own_postgres.create_database(SHOP)
    own_postgres.stop()
    policy = 'databases: [{name: up, url: "${UP_URL}"}, {name: down, url: "${DOWN_URL}"}]'
    with trio.fail_after(PATIENCE_S), gatewayd("", tmp_path, free_port, policy, UP_URL=up, DOWN_URL=down):
        async with Agent(free_port) as agent:
            assert (await agent.query("SELECT 1 AS one", database="up"))["rows"] == [{"one": 1}]
            assert failed(await agent.query("SELECT 1", database="down"), "08001")
            found = (await agent.post("tools/call", {"name": "list_tables", "arguments": {}})).json()["result"]
            databases = json.loads(found["content"][0]["text"])["databases"]
            assert not found.get("isError", False)
            assert len(databases["up"]["tables"]) == 5
            assert databases["down"]["allowed"] is False
            assert "08001" in databases["down"]["error"]


async def test_a_table_made_by_others_is_found_by_the_very_text_that_was_refused(
    postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    """A name that was unknown is not answered from memory once it is there."""
    dsn = postgres.create_database(SHOP)
    with trio.fail_after(60), gatewayd(dsn, tmp_path, free_port):  # a policy that hides something refuses what it does not know
        async with Agent(free_port) as agent:
            unknown = await agent.query("SELECT count(*) FROM made_late")
            assert unknown["error"]["sqlstate"] == "42P01"
            postgres.execute("CREATE TABLE made_late ()", dsn)
            while "error" in await agent.query("SELECT count(*) FROM made_late"):  # noqa: ASYNC110 - another process
                await trio.sleep(0.1)
