"""Expensive statements against a running gatewayd: `/health` answers all the while, and each stays within its bounds (soak)."""

from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest
import trio

from tests.bench.drive import Health, cpu_s, probe_health
from tests.conftest import Postgres
from tests.cost.judged import COLUMNS, POLICY_TEXT, VIEWS
from tests.cost.run import MOST_CPU_S, MOST_GROWN_MIB, MOST_HELD_S
from tests.cost.texts import LONGEST, drawn, written
from tests.daemon.daemon_rig import Agent, gatewayd

DRAWN: Final = 120
SCHEMA: Final = "".join(
    [
        *(f"CREATE TABLE {name} ({', '.join(f'{each} text' for each in columns.split())});" for name, columns in COLUMNS.items()),
        *(f"CREATE VIEW {name} AS {query};" for name, query in VIEWS.items()),
    ]
)
NAMED: Final = {
    "sums": "SELECT 1" + " + 1" * 25_000,
    "names": "SELECT " + "a," * ((LONGEST - 20) // 2) + "a FROM users",
    "constants": "SELECT 1 FROM users WHERE id IN ('1'" + ", '1'" * 100_000 + ")",
    "filtered calls": "SELECT " + ", ".join(f"pg_get_constraintdef({n})" for n in range(60)),
    "too many filtered calls": "SELECT " + ", ".join(f"pg_get_constraintdef({n})" for n in range(600)),
    "column lists": "WITH " + ", ".join(f"q{n} (a) AS (DELETE FROM notes RETURNING id)" for n in range(1_900)) + " SELECT 1",
    "stars": "SELECT " + ", ".join("*" * 600) + " FROM wide",
    "unions": "SELECT 1" + " UNION SELECT 1" * 30_000,
    "wide joins": "SELECT 1 FROM " + ", ".join(f"(wide a{n} NATURAL JOIN wide b{n})" for n in range(600)),
    "rows": "INSERT INTO notes VALUES " + ", ".join(["('1', 'two')"] * 60_000) + " RETURNING id",
}  # fmt: skip


def peak_mib(pid: int, field: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(field))


@pytest.mark.soak
@pytest.mark.parametrize("rewriting", [True, False], ids=["source_rewrite", "post_exec"])
async def test_no_statement_holds_health(postgres: Postgres, tmp_path: Path, free_port: int, rewriting: bool) -> None:
    policy = f"{POLICY_TEXT}mask_source_rewrite: {str(rewriting).lower()}\n"
    texts = {**NAMED, **{f"drawn {seed}": written(drawn(Random(seed))) for seed in range(DRAWN)}}
    salted = {"GATEWAY_MASK_SALT": "salt of sixteen bytes"}
    dsn = postgres.create_database(SCHEMA)
    with gatewayd(dsn, tmp_path, free_port, policy, **salted) as daemon:
        pid = daemon.process.pid
        worst = {"cpu": (0.0, ""), "held": (0.0, ""), "grown": (0.0, "")}

        async def send(agent: Agent, name: str, sql: str) -> None:
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
            resident, spent, health = peak_mib(pid, "VmRSS"), cpu_s(pid), Health([], [])
            done = trio.Event()

            async def probe() -> None:
                while not done.is_set():
                    found = await trio.to_thread.run_sync(partial(probe_health, free_port, seconds=0.05, pid=pid, pause_s=0.002))
                    health.took_s.extend(found.took_s)
                    health.cpu_s.extend(found.cpu_s)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(probe)
                await agent.query(sql)
                done.set()
            found = {"cpu": cpu_s(pid) - spent, "held": max(health.cpu_s), "grown": peak_mib(pid, "VmHWM") - resident}
            for aim, cost in found.items():
                worst[aim] = max(worst[aim], (cost, name))
            assert float("inf") not in health.took_s, name

        async with Agent(free_port) as agent:
            for name, sql in texts.items():
                await send(agent, name, sql)
        print(worst)
        assert await trio.to_thread.run_sync(daemon.stop) == 0
    assert worst["cpu"][0] <= MOST_CPU_S, worst
    assert worst["grown"][0] <= MOST_GROWN_MIB, worst
    assert worst["held"][0] <= MOST_HELD_S, worst
