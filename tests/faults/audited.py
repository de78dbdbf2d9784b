"""A gatewayd over one audit file, an agent that writes, and what of it is in the table and in the file."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import trio

from tests.cli.gatewayd_process import Running
from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, PATIENT, SHOP, Agent, chains, gatewayd, kinds
from tests.daemon.operators_rig import BEARER, TOKEN

POLICY = "table_access: {default: read, tables: {written: read_write}}\n" + PATIENT
PADDING = " -- " + "x" * 65536  # a row so long that no page which lies there already takes it


class Daemon:
    """One gatewayd over one audit file, an agent, and what the table says was written."""

    def __init__(self, postgres: Postgres, dsn: str, folder: Path, port: int, running: Running, agent: Agent) -> None:
        self.postgres, self.dsn, self.folder, self.port = postgres, dsn, folder, port
        self.running, self.agent = running, agent

    async def write(self, tag: str) -> dict[str, Any]:
        return await self.agent.query(f"INSERT INTO written VALUES ('{tag}'){PADDING}")

    async def is_refused(self, tag: str, reason: str) -> bool:
        """Whether the write was refused for want of an audit, in words that give away no path; else it was audited and done."""
        answer = await self.write(tag)
        if answer["allowed"]:
            assert answer["rowCount"] == 1
            return False
        assert (answer["error"], answer["auditId"]) == ("audit_unavailable", None)
        assert any(word in answer["reason"] for word in reason.split("|")), answer["reason"]
        assert str(self.folder) not in str(answer)
        assert "audit.db" not in str(answer)
        return True

    async def until_written(self, tag: str) -> None:
        while not (await self.write(tag))["allowed"]:  # noqa: ASYNC110 - another process
            await trio.sleep(0.05)

    async def told(self, line: str) -> None:
        await trio.to_thread.run_sync(self.running.wait_for, f'"{line}"')

    async def is_available(self) -> bool:
        """What Prometheus is told; /health goes on saying that the process serves."""
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE_S, headers=BEARER) as http:
            assert (await http.get("/health")).json() == {"ok": True}
            metrics = (await http.get("/metrics")).text
        return "gatewayd_audit_available 1.0" in metrics

    def tags(self) -> Counter[str]:
        return Counter(row["tag"] for row in self.postgres.query("SELECT tag FROM written", self.dsn))


@asynccontextmanager
async def daemon(postgres: Postgres, folder: Path, port: int, **more: str) -> AsyncIterator[Daemon]:
    dsn = postgres.create_database(SHOP)
    with trio.fail_after(PATIENCE_S), gatewayd(dsn, folder, port, POLICY, INDEXER_TOKEN=TOKEN, **more) as running:
        async with Agent(port) as agent:
            yield Daemon(postgres, dsn, folder, port, running, agent)
        assert await trio.to_thread.run_sync(running.stop) == 0


def executed(folder: Path) -> Counter[str]:
    return Counter(tag_of(chain) for chain in chains(folder).values() if kinds(chain) == "ATTEMPTED ALLOW EXECUTED")


def tag_of(chain: list[tuple[str, dict[str, Any]]]) -> str:
    return str(chain[0][1]["sql_raw"].split("'")[1])


def lines(running: Running, msg: str) -> int:
    return sum(json.loads(line)["msg"] == msg for line in running.text.splitlines())
