"""Far more load than gatewayd can carry: what it refuses it refuses with a time to return, and the rest goes on."""

from functools import partial
from pathlib import Path

import pytest
import trio

from tests.bench.drive import Health, Load, drive, probe_health
from tests.conftest import Postgres
from tests.daemon.daemon_rig import SHOP, Agent, chains, gatewayd, kinds
from tests.faults.resources import resources

GROWTH_KIB = 20 * 1024
CALL = "SELECT id, name FROM customers WHERE id = {}"
SLOW = "SELECT count(*) FROM generate_series(1, 20000) a WHERE a > {}"  # so that it takes few to be too many


class Seen:
    load = Load()
    health = Health()


async def overload(port: int, connections: int, seconds: float, sql: str) -> Seen:
    """As much as `connections` can offer, and somebody who asks /health all the while."""
    seen = Seen()

    async def offer() -> None:
        ask = partial(drive, port, lambda number: sql.format(number % 20), seconds=seconds, connections=connections)
        seen.load = await trio.to_thread.run_sync(ask)

    async def probe() -> None:
        seen.health = await trio.to_thread.run_sync(partial(probe_health, port, seconds=seconds, pause_s=0.1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(offer)
        nursery.start_soon(probe)
    return seen


async def hold_on(postgres: Postgres, folder: Path, port: int, connections: int, seconds: float) -> None:
    with gatewayd(postgres.create_database(SHOP), folder, port) as daemon:
        await overload(port, connections, seconds / 2, CALL)  # what is opened once is open
        before, _ = resources(daemon.process.pid)
        seen = await overload(port, connections, seconds, SLOW)
        after, _ = resources(daemon.process.pid)
        async with Agent(port) as agent:
            assert (await agent.query("SELECT 1 AS one"))["rows"] == [{"one": 1}]
        assert await trio.to_thread.run_sync(daemon.stop) == 0
    print(f"{seen.load.outcomes}; health asked {len(seen.health.took_s)} times; resident KiB {before} -> {after}")
    assert set(seen.load.outcomes) <= {"rows", "refused", "503"}
    assert seen.load.outcomes["rows"] > 0
    assert seen.load.outcomes.get("refused", 0) + seen.load.outcomes.get("503", 0) > 0
    assert seen.load.without_retry == 0
    assert seen.health.took_s
    assert float("inf") not in seen.health.took_s
    assert after - before < GROWTH_KIB
    assert "unexpected failure" not in daemon.text
    # What was admitted ran to its end; what was refused left no row: nothing was attempted.
    assert {kinds(chain) for chain in chains(folder).values()} == {"ATTEMPTED ALLOW EXECUTED"}


async def test_overload(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    await hold_on(postgres, tmp_path, free_port, connections=500, seconds=4)


@pytest.mark.soak
async def test_long_overload(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    await hold_on(postgres, tmp_path, free_port, connections=3000, seconds=120)
