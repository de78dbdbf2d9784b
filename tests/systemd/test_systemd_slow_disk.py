"""The watchdog of the units and a disk that takes 5 s for each fsync: slow is not stuck, and is no reason for a restart."""

import itertools
import time
from pathlib import Path

import pytest
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, Agent
from tests.faults.disks import SlowDisk
from tests.systemd.unit import unit

WATCHDOG_S = 30  # as in the units
LARGE = " -- " + "x" * 1_000_000  # so that the log is soon so long that it is carried over under load
AGENTS = 12


@pytest.mark.soak
@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_it_is_fed_while_each_fsync_takes_five_seconds(
    synchronous: str, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    disk = SlowDisk(tmp_path)
    folder = tmp_path / "unit"
    folder.mkdir()
    more = {"GATEWAY_AUDIT_SYNCHRONOUS": synchronous, "WATCHDOG_USEC": str(WATCHDOG_S * 1_000_000), **disk.variables}
    answered = 0

    async def ask_until(ends: float) -> None:
        nonlocal answered
        async with Agent(free_port) as agent:
            while time.monotonic() < ends:
                assert (await agent.query(f"SELECT {answered}{LARGE}"))["allowed"]
                answered += 1

    with trio.fail_after(PATIENCE_S), unit(folder, postgres.create_database(), free_port, **more) as service:
        service.until("WATCHDOG=1")
        with disk.waits("5"):
            ends = time.monotonic() + 4 * WATCHDOG_S
            async with trio.open_nursery() as nursery:
                for _ in range(AGENTS):
                    nursery.start_soon(ask_until, ends)
        fed = [*service.fed_at, time.monotonic()]
        assert service.process.poll() is None
    assert answered > AGENTS
    assert max(after - before for before, after in itertools.pairwise(fed)) < WATCHDOG_S, fed
