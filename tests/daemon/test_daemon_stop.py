"""Signals under load: SIGTERM loses no row and leaves no statement running; SIGKILL at any moment leaves nothing unaudited."""

import random
import signal
from pathlib import Path

import httpx
import pytest
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import (
    HELD,
    HOLDABLE,
    PATIENCE_S,
    PATIENT,
    POLICY,
    SHOP,
    Agent,
    chains,
    gatewayd,
    holding,
    kinds,
    running_there,
    until,
)

# httpx leaves the body generators of requests whose connection broke to the collector, which then warns.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]
AGENTS = 8


async def write_on(port: int, name: str, told: list[str]) -> None:
    """Writes one tag after another until the gateway goes away; `told` are the tags it was told are written."""
    try:
        async with Agent(port) as agent:
            for number in range(100_000):
                answer = await agent.query(f"INSERT INTO written VALUES ('{name}-{number}')")
                if answer.get("rowCount") == 1:
                    told.append(f"{name}-{number}")
    except (httpx.HTTPError, KeyError):
        return


async def until_written(postgres: Postgres, dsn: str, rows: int) -> None:
    await until(lambda: len(tags(postgres, dsn)) >= rows)


def tags(postgres: Postgres, dsn: str) -> set[str]:
    return {row["tag"] for row in postgres.query("SELECT tag FROM written", dsn)}


@pytest.mark.parametrize("lives", [2, pytest.param(12, marks=pytest.mark.soak)])
async def test_nothing_ran_unaudited_however_the_daemon_dies(
    lives: int, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    dsn = postgres.create_database(SHOP)
    chance = random.Random(7)
    told: list[str] = []
    with trio.fail_after(PATIENCE_S):
        for life in range(lives):
            with gatewayd(dsn, tmp_path, free_port) as running:
                async with trio.open_nursery() as nursery:
                    for number in range(AGENTS):
                        nursery.start_soon(write_on, free_port, f"{life}-{number}", told)
                    await until_written(postgres, dsn, len(tags(postgres, dsn)) + chance.randrange(1, 200))
                    running.stop(signal.SIGKILL)
    allowed = {}
    for chain in chains(tmp_path).values():
        assert kinds(chain) in ("ATTEMPTED", "ATTEMPTED ALLOW", "ATTEMPTED ALLOW EXECUTED", "ATTEMPTED ALLOW FAILED")
        if "ALLOW" in kinds(chain):
            allowed[chain[0][1]["sql_raw"].split("'")[1]] = kinds(chain)
    written = tags(postgres, dsn)
    assert len(written) >= lives
    assert written <= allowed.keys()
    assert set(told) <= {tag for tag, chain in allowed.items() if chain.endswith("EXECUTED")}


async def test_sigterm_lets_calls_finish_and_closes_every_chain(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(HOLDABLE)
    told: list[str] = []
    finished: list[int] = []

    async def ask(agent: Agent) -> None:
        finished.append((await agent.query(HELD))["rows"][0]["count"])

    grace = {"GATEWAY_SHUTDOWN_GRACE_S": str(PATIENCE_S)}
    with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, POLICY + PATIENT, **grace) as running:
        async with Agent(free_port) as agent, trio.open_nursery() as nursery:
            for number in range(AGENTS):
                nursery.start_soon(write_on, free_port, str(number), told)
            await until_written(postgres, dsn, 50)
            with holding(postgres, dsn):
                nursery.start_soon(ask, agent)
                await until(lambda: running_there(postgres, HELD) == 1)
                running.process.send_signal(signal.SIGTERM)
                await trio.to_thread.run_sync(running.wait_for, "gatewayd stopping")
                assert finished == []
            assert await trio.to_thread.run_sync(running.ended) == 0
            with pytest.raises(OSError, match="connect"):
                await trio.open_tcp_stream("127.0.0.1", free_port)
    assert finished == [7]
    found = [kinds(chain) for chain in chains(tmp_path).values()]
    assert set(found) <= {"ATTEMPTED ALLOW EXECUTED", "ATTEMPTED ALLOW FAILED"}
    assert tags(postgres, dsn) >= set(told)
    assert found.count("ATTEMPTED ALLOW EXECUTED") >= len(told) + 1


@pytest.mark.parametrize("second", [False, True], ids=["grace over", "second signal"])
async def test_a_call_that_outlasts_the_grace_is_cancelled(
    second: bool, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    dsn = postgres.create_database(SHOP)
    endless = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
    grace = str(10 * PATIENCE_S) if second else "0.3"
    with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, GATEWAY_SHUTDOWN_GRACE_S=grace) as running:
        async with Agent(free_port) as agent, trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(httpx.HTTPError):
                    await agent.query(endless)

            nursery.start_soon(ask)
            await until(lambda: running_there(postgres, endless) == 1)
            if second:
                running.process.send_signal(signal.SIGTERM)
                await trio.to_thread.run_sync(running.wait_for, "gatewayd stopping")
            assert await trio.to_thread.run_sync(running.stop) == 0
    assert not running_there(postgres, endless)
    (chain,) = chains(tmp_path).values()
    assert kinds(chain) == "ATTEMPTED ALLOW FAILED"
    assert chain[2][1]["error_class"] == "57014"
