"""The audit pulled over HTTP while agents write and an operator deletes: no row missing or twice, in order (decisions 4, 7)."""

from pathlib import Path
from typing import Any

import httpx
import trio

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, SHOP, Agent
from tests.daemon.operators_rig import BEARER, operated

AGENTS = 8
CALLS = 25
STATEMENTS = [
    "SELECT count(*) FROM orders",
    "SELECT * FROM secrets",
    "INSERT INTO written VALUES ('x')",
    "SELECT 1/0",
    "nonsense",
]


async def test_eight_agents_one_reader_one_deleter(postgres: Postgres, tmp_path: Path) -> None:
    told: list[list[str]] = [[] for _ in range(AGENTS)]
    pulled: list[dict[str, Any]] = []
    acknowledged = "0"
    deleted = 0
    is_written = trio.Event()

    async def write(port: int, mine: list[str], number: int) -> None:
        async with Agent(port) as agent:
            asked = [STATEMENTS[(number + call) % len(STATEMENTS)] for call in range(CALLS)]
            mine += [(await agent.query(sql))["auditId"] for sql in asked]

    async def follow(http: httpx.AsyncClient) -> None:
        nonlocal acknowledged
        cursor = "0"
        while True:
            ended = is_written.is_set()  # before the page: what was told by then must be in it
            page = (await http.get(f"/audit/since/{cursor}?limit=7")).json()
            assert len(page["rows"]) <= 7
            pulled.extend(page["rows"])
            if page["rows"]:
                cursor = acknowledged = pulled[-1]["id"]
            assert page["next_cursor"] in (None, cursor)
            if ended and page["next_cursor"] is None:
                return

    async def delete(http: httpx.AsyncClient) -> None:
        nonlocal deleted
        while not is_written.is_set():
            deleted += (await http.delete(f"/audit/before/{acknowledged}")).json()["deleted"]

    with trio.fail_after(PATIENCE_S), operated(postgres.create_database(SHOP), tmp_path) as operator:
        base = f"http://127.0.0.1:{operator.port}"
        async with httpx.AsyncClient(base_url=base, headers=BEARER, timeout=60) as http:
            async with trio.open_nursery() as operators:
                operators.start_soon(follow, http)
                operators.start_soon(delete, http)
                async with trio.open_nursery() as agents:
                    for number, mine in enumerate(told):
                        agents.start_soon(write, operator.port, mine, number)
                is_written.set()
            deleted += (await http.delete(f"/audit/before/{acknowledged}")).json()["deleted"]
            assert (await http.get("/audit/since/0")).json() == {"rows": [], "next_cursor": None}
    ids = [row["id"] for row in pulled]
    assert ids == sorted(set(ids))
    assert deleted == len(ids)
    decided = [row["id"] for row in pulled if row["event_type"] == "DECIDED"]
    assert sorted(audit_id for mine in told for audit_id in mine) == decided
    for mine in told:
        assert mine == sorted(mine)  # each agent was told in the order of the file
