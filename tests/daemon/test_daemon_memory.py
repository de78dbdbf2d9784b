"""Ten million rows through a running gatewayd: the answer is cut, memory stays, and PostgreSQL stops working on it."""

from pathlib import Path

import pytest
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, POLICY, SHOP, Agent, chains, gatewayd, running_there, until

ROWS = 10_000_000
GROWTH_BYTES = 20 * 1024 * 1024
MAX_ROWS = 1000
MAX_BYTES = 1_048_576


def memory_bytes(pid: int, field: str) -> int:
    """VmRSS is what the process holds now, VmHWM the most it ever held."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(f"{field}:"))


@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.soak)])
async def test_ten_million_rows_are_cut_early_and_cost_little(
    rounds: int, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    dsn = postgres.create_database(SHOP)
    narrow = f"SELECT a, 'row ' || a AS text FROM generate_series(1, {ROWS}) a"
    wide = f"SELECT a, repeat('x', 10000) AS text FROM generate_series(1, {ROWS}) a"
    huge = "SELECT repeat('x', 4 * 1024 * 1024) AS text FROM generate_series(1, 50) a"
    with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, POLICY) as running:
        pid = running.process.pid
        async with Agent(free_port) as agent:
            for _ in range(20):
                assert len((await agent.query("SELECT * FROM orders"))["rows"]) == 200
            before = memory_bytes(pid, "VmRSS")
            for _ in range(rounds):
                answer = await agent.query(narrow)
                assert (answer["rowCount"], answer["truncated"], answer["rows"][-1]["a"]) == (MAX_ROWS, True, MAX_ROWS)
                answer = await agent.query(wide)
                assert answer["truncated"]
                assert 100 <= answer["rowCount"] <= MAX_BYTES // 10000
                answer = await agent.query(huge)
                assert (answer["rows"], answer["truncated"]) == ([], True)  # a row that alone is too large is left out
            await until(lambda: running_there(postgres, str(ROWS)) == 0)
            assert memory_bytes(pid, "VmHWM") - before < GROWTH_BYTES
    executed = [chain[2][1] for chain in chains(tmp_path).values() if chain[2][1].get("truncated")]
    assert len(executed) == 3 * rounds
    assert {payload["rows_returned"] for payload in executed} >= {0, MAX_ROWS}


async def test_a_write_that_returns_ten_thousand_rows_counts_all_of_them(
    postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    dsn = postgres.create_database(SHOP)
    with trio.fail_after(PATIENCE_S), gatewayd(dsn, tmp_path, free_port, POLICY):
        async with Agent(free_port) as agent:
            answer = await agent.query("INSERT INTO written SELECT 'tag ' || a FROM generate_series(1, 10000) a RETURNING tag")
    assert (answer["rowCount"], len(answer["rows"]), answer["truncated"]) == (10_000, MAX_ROWS, True)
    assert postgres.query("SELECT count(*) FROM written", dsn) == [{"count": 10_000}]
