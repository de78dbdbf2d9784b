"""Mixed load with a random fault every few seconds: nothing leaks, every answered call has a complete chain, every chain a call.

Fifteen seconds of it in `make test`, an hour in `make soak` (GATEWAYD_SOAK_MINUTES).
"""

import contextlib
import gc
import json
import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, POLICY, SHOP, Agent, chains, gatewayd, kinds
from tests.faults.resources import resources

AGENTS = 8
TOKEN = "token-of-the-soak"
STATEMENTS = (
    "SELECT id, name FROM customers WHERE id = {n}",
    "SELECT * FROM orders ORDER BY id LIMIT 50",
    "INSERT INTO written VALUES ('{tag}')",
    "SELECT count(*) FROM generate_series(1, {n}000) a",
    "SELECT 1 / ({n} - {n})",
    "SELECT * FROM secrets WHERE id = {n}",
    "DELETE FROM written",
    "SELEC {n}",
)


class Soak:
    """One run: agents ask, faults fall, answers are kept by their auditId."""

    def __init__(self, postgres: Postgres, dsn: str, port: int, seed: int) -> None:
        self.postgres, self.dsn, self.port = postgres, dsn, port
        self.chance = random.Random(seed)
        self.answers: dict[str, str] = {}  # auditId -> how the answer says the call ended
        self.written: set[str] = set()  # tags of writes that were answered as done
        self.outcomes: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    async def run(self, seconds: float, every_s: float) -> None:
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for number in range(AGENTS):
                    nursery.start_soon(self._agent, number)
                await self._faults(every_s)

    async def _agent(self, number: int) -> None:
        chance = random.Random(f"{self.chance.random()} {number}")
        count = 0
        while True:
            try:
                async with Agent(self.port) as agent:
                    for _ in range(chance.randrange(1, 400)):
                        count += 1
                        await self._ask(agent, chance, f"{number}-{count}")
            except (httpx.HTTPError, KeyError, json.JSONDecodeError):
                self.outcomes["connection lost"] += 1
                await trio.sleep(0.05)

    async def _ask(self, agent: Agent, chance: random.Random, tag: str) -> None:
        sql = chance.choice(STATEMENTS).format(n=chance.randrange(1, 20), tag=tag)
        if chance.random() < 0.02:
            with trio.move_on_after(chance.random() * 0.02) as impatient:
                self._note(await agent.query(sql), sql)
            if impatient.cancelled_caught:
                raise httpx.ReadError("the client went away")
            return
        self._note(await agent.query(sql), sql)

    def _note(self, answer: dict[str, Any], sql: str) -> None:
        ended = "EXECUTED" if "rows" in answer else "FAILED" if answer.get("allowed") else str(answer.get("error", "DENY"))
        self.outcomes[ended] += 1
        if answer.get("auditId"):
            self.answers[answer["auditId"]] = ended
        if ended == "EXECUTED" and sql.startswith("INSERT"):
            self.written.add(sql.split("'")[1])

    async def _faults(self, every_s: float) -> None:
        kinds_of_fault: dict[str, Callable[[], Awaitable[None]]] = {
            "backends killed": self._kill_backends,
            "database restarted": self._restart,
            "database stopped for a second": self._freeze,
            "policy reloaded": self._reload,
            "audit pulled": self._pull,
        }
        while True:
            await trio.sleep(every_s * self.chance.uniform(0.5, 1.5))
            name = self.chance.choice(list(kinds_of_fault))
            self.faults[name] += 1
            await kinds_of_fault[name]()

    async def _kill_backends(self) -> None:
        await trio.to_thread.run_sync(
            self.postgres.execute,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'gatewayd'",
        )

    async def _restart(self) -> None:
        await trio.to_thread.run_sync(self.postgres.server.restart)

    async def _freeze(self) -> None:
        running = self.postgres.server.postmaster()
        assert running is not None
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii").split()
        stopped = [running.pid, *map(int, children)]

        def send(number: signal.Signals) -> None:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

        send(signal.SIGSTOP)
        try:
            await trio.sleep(1.0)
        finally:  # the run may end meanwhile, and a server that stays frozen cannot even be stopped
            send(signal.SIGCONT)

    async def _reload(self) -> None:
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            headers = {"authorization": f"Bearer {TOKEN}"}
            answer = await client.post(f"http://127.0.0.1:{self.port}/admin/policy", content=POLICY, headers=headers)
            assert answer.status_code == 200, answer.text

    async def _pull(self) -> None:
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            headers = {"authorization": f"Bearer {TOKEN}"}
            answer = await client.get(f"http://127.0.0.1:{self.port}/audit/since/0?limit=100", headers=headers)
            assert 0 < len(answer.json()["rows"]) <= 100  # fewer, where the machine has been slow so far


async def soak(postgres: Postgres, folder: Path, port: int, seconds: float, every_s: float, seed: int) -> Soak:
    dsn = postgres.create_database(SHOP, tcp=True)
    with gatewayd(dsn, folder, port, INDEXER_TOKEN=TOKEN) as daemon:
        run = Soak(postgres, dsn, port, seed)
        # Warm: what is opened once is open, and what is remembered has filled its bounds, which takes some twenty thousand calls.
        await run.run(max(min(seconds, 10), min(seconds / 12, 300)), every_s)
        rss_before, _ = resources(daemon.process.pid)
        await run.run(seconds, every_s)
        await trio.sleep(1)  # the clients' connections end
        gc.collect()  # their sockets, while the warnings about them are still ignored
        rss_after, descriptors = resources(daemon.process.pid)
        code = await trio.to_thread.run_sync(daemon.stop)
    print(f"calls {run.outcomes.total()}: {dict(run.outcomes)}; faults {run.faults.total()}: {dict(run.faults)}")
    print(f"resident KiB {rss_before} -> {rss_after}; descriptors at the end {descriptors}")
    assert code == 0
    assert rss_after - rss_before < 20 * 1024
    assert descriptors < 60
    return run


def check(run: Soak, folder: Path, postgres: Postgres) -> None:
    """Every answer has its complete chain and says what it says; what is written was recorded as allowed before."""
    found = {query: chain for query, chain in chains(folder).items() if chain[0][0] != "POLICY_RELOADED"}
    assert {kinds(chain) for chain in found.values()} <= {
        "ATTEMPTED DENY",
        "ATTEMPTED ALLOW EXECUTED",
        "ATTEMPTED ALLOW FAILED",
    }
    by_audit_id = decided_ids(folder)
    for audit_id, ended in run.answers.items():
        assert kinds(found[by_audit_id[audit_id]]).endswith(ended)
    written = {row["tag"] for row in postgres.query("SELECT tag FROM written", run.dsn)}
    executed = {
        chain[0][1]["sql_raw"].split("'")[1]
        for chain in found.values()
        if chain[0][1]["sql_raw"].startswith("INSERT") and kinds(chain) == "ATTEMPTED ALLOW EXECUTED"
    }
    unknown = {
        chain[0][1]["sql_raw"].split("'")[1]
        for chain in found.values()
        if chain[0][1]["sql_raw"].startswith("INSERT") and chain[-1][1].get("error_class") in ("08007", "08006", "57P01", "57014")
    }
    assert run.written <= executed <= written
    assert written <= executed | unknown


def decided_ids(folder: Path) -> dict[str, str]:
    """The query of each DECIDED row."""
    with sqlite3.connect(f"file:{folder / 'audit.db'}?mode=ro", uri=True) as file:
        return dict(file.execute("SELECT id, query_id FROM audit_events WHERE event_type = 'DECIDED'"))


@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_a_short_soak(own_postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    run = await soak(own_postgres, tmp_path, free_port, seconds=12, every_s=2, seed=1)
    check(run, tmp_path, own_postgres)
    assert run.outcomes["EXECUTED"] > 50


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
async def test_a_long_soak(own_postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    minutes = float(os.environ.get("GATEWAYD_SOAK_MINUTES", "60"))
    run = await soak(own_postgres, tmp_path, free_port, seconds=minutes * 60, every_s=10, seed=int(minutes * 1000))
    check(run, tmp_path, own_postgres)
