"""gatewayd killed between the claim of an approval and the run: nothing ran, the approval is spent, and it is said."""

import os
import signal
from pathlib import Path

import httpx
import pytest
import trio

from gatewayd.approvals.messages import Approved, GateAnswer, GateAsk
from tests.approvals.desks import TOKEN, WatchedRequests, desk
from tests.approvals.gates import TABLES, WRITE
from tests.conftest import Postgres
from tests.daemon.daemon_rig import Agent, chains, gatewayd, kinds, until

POLICY = "table_access: {default: read_write}\napprovals: {writes: true, hold_s: 0}\n"


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


class StopsAtTheClaim(WatchedRequests):
    pid: int | None = None

    def answer(self, ask: GateAsk, now_ms: int) -> GateAnswer:
        """The claim is on the disk and the answer about to be sent, to a process that does not read it."""
        said = super().answer(ask, now_ms)
        if self.pid is not None:
            assert isinstance(said, Approved)
            os.kill(self.pid, signal.SIGSTOP)
        return said


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
async def test_killed_with_the_approval_in_its_hands(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    dsn = postgres.create_database(TABLES)
    async with desk(tmp_path / "r.db", requests_type=StopsAtTheClaim) as open_desk:
        given = {"GATEWAY_APPROVAL_URL": open_desk.url, "GATEWAY_APPROVAL_TOKEN": TOKEN}
        with gatewayd(dsn, tmp_path, free_port, POLICY, **given) as running:
            pid = running.process.pid
            async with Agent(free_port) as agent:
                first = await agent.query(WRITE)
                assert open_desk.decide(first["approval_id"])
                requests = open_desk.requests
                assert isinstance(requests, StopsAtTheClaim)
                requests.pid = pid

                async def run_it() -> None:
                    with pytest.raises(httpx.HTTPError):
                        await agent.query(WRITE)

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(run_it)
                    await until(lambda: state_of(pid) == "T")
                    running.process.kill()
                requests.pid = None
        assert [kinds(chain) for chain in chains(tmp_path).values() if "preview_of" not in chain[0][1]] == ["ATTEMPTED"] * 2
        with gatewayd(dsn, tmp_path, free_port, POLICY, **given):
            async with Agent(free_port) as agent:
                status = await agent.call("check_approval", approval_id=first["approval_id"])
                assert (status["status"], status["executed"]) == ("consumed", None)
                again = await agent.query(WRITE)
                assert again["status"] == "awaiting_approval"
                assert again["approval_id"] != first["approval_id"]
    assert postgres.execute("SELECT sum(balance) FROM accounts", dsn).strip() == "50500"
