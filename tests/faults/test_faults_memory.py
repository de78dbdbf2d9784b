"""One call makes gatewayd grow by at most 64 MiB, whatever the database has to say: read from a real process."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENT, Agent, gatewayd

MIB = 1024 * 1024
MOST = 64 * MIB
COLUMNS = [f"c{number}" for number in range(30)]
MASKED = f"""
{PATIENT}table_access: {{default: read}}
column_masks: {{wide: {{{", ".join(f"{column}: consistent-hash" for column in COLUMNS)}}}}}
"""
WIDE = f"""
CREATE TABLE wide (id int, {", ".join(f"{column} text" for column in COLUMNS)});
INSERT INTO wide SELECT 1, {", ".join(["repeat('x', 5000000)"] * 30)};
INSERT INTO wide SELECT g, {", ".join(["repeat('y', 100000)"] * 30)} FROM generate_series(2, 40) AS g;
CREATE TABLE plain (id int, note text);
"""
_LITERAL = "x" * 30_000
_TWENTY = " UNION ALL SELECT * FROM "
PLAN = (
    f"WITH a AS NOT MATERIALIZED (SELECT id FROM plain WHERE note <> '{_LITERAL}'), "
    f"b AS NOT MATERIALIZED (SELECT * FROM {_TWENTY.join(['a'] * 20)}), "
    f"c AS NOT MATERIALIZED (SELECT * FROM {_TWENTY.join(['b'] * 20)}) SELECT * FROM {_TWENTY.join(['c'] * 10)}"
)
"""120 MB of plan for 32 kB of text: the condition stands in it 4000 times."""
STATEMENTS = {
    "plan": (f"EXPLAIN {PLAN}", "cut"),
    "plan as one value": (f"EXPLAIN (FORMAT JSON) {PLAN}", "54000"),
    "words of an error": ("SELECT repeat('x', 200000000)::int", "54000"),
    "one row of large masked values": (f"SELECT {', '.join(COLUMNS)} FROM wide WHERE id = 1", "cut"),
    "many rows of masked values": (f"SELECT {', '.join(COLUMNS)} FROM wide WHERE id > 1", "whole"),
    "large values": ("SELECT repeat('x', 20000000) FROM generate_series(1, 3)", "cut"),
}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


class Process:
    """Its memory, as the kernel counts it."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def begin(self) -> int:
        """Forgets the peak; what is resident now."""
        (self._folder / "clear_refs").write_text("5", encoding="ascii")
        return self._status("VmRSS")

    def peak(self) -> int:
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        for line in (self._folder / "status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(name)


@asynccontextmanager
async def served(postgres: Postgres, folder: Path, port: int) -> AsyncIterator[tuple[Agent, Process]]:
    dsn = postgres.create_database(WIDE)
    with gatewayd(dsn, folder, port, MASKED, GATEWAY_MASK_SALT="salt of the tests, long enough") as running:
        async with Agent(port) as agent:
            await agent.query("SELECT 1 AS one")
            yield agent, Process(running.process.pid)


async def test_no_call_makes_it_grow_by_more(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    grown: dict[str, int] = {}
    async with served(postgres, tmp_path, free_port) as (agent, process):
        for what, (sql, outcome) in STATEMENTS.items():
            before = process.begin()
            answer = await agent.query(sql)
            grown[what] = (process.peak() - before) // MIB
            is_cut = "cut" if answer.get("truncated") else "whole"
            assert (answer["error"]["sqlstate"] if "error" in answer else is_cut) == outcome, what
            assert (await agent.query("SELECT 1 AS one"))["rows"] == [{"one": 1}]
    assert max(grown.values()) <= MOST // MIB, grown
