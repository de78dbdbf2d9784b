"""The audit file overwritten by somebody while gatewayd has it open, and at rest."""

import contextlib
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import trio

from gatewayd import log
from tests.cli.gatewayd_process import run
from tests.conftest import Postgres
from tests.daemon.daemon_rig import PATIENCE_S, until
from tests.daemon.operators_rig import BEARER
from tests.faults.audited import daemon, executed, lines


async def test_overwritten_while_it_is_open(postgres: Postgres, tmp_path: Path, free_port: int) -> None:
    """What gatewayd has in memory mends the header, with the next call. Beyond that nothing runs: nobody could read of it."""
    path = tmp_path / "audit.db"

    async def write(tag: str) -> dict[str, Any]:
        return await there.agent.query(f"INSERT INTO written VALUES ('{tag}')")  # short: the file need not grow for it

    async def overwritten_at_rest(size: int) -> None:
        """All is in the file by then, nothing in its log that would stand in for it."""
        await until(lambda: is_carried_over(path))
        with path.open("r+b") as file:
            file.write(b"\xff" * size)

    async def unreadable() -> str:
        """What a command and a route say to who reads."""
        told = await trio.to_thread.run_sync(run, ["audit", "since", "1h"], {"DB_PATH": str(path)})
        assert (told.returncode, told.stdout) == (1, "")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{free_port}", timeout=PATIENCE_S, headers=BEARER) as http:
            assert (await http.get("/audit/since/0")).status_code == 503
        return told.stderr

    async with daemon(postgres, tmp_path, free_port) as there:
        assert (await write("before"))["rowCount"] == 1
        await overwritten_at_rest(100)
        assert "not a database" in await unreadable()
        assert (await write("mended"))["rowCount"] == 1
        assert executed(tmp_path) == there.tags() == Counter(("before", "mended"))
        assert lines(there.running, log.AUDIT_UNAVAILABLE) == 0

        await overwritten_at_rest(path.stat().st_size)
        for _ in range(2):
            assert (await write("refused"))["error"] == "audit_unavailable"
        await there.told(log.AUDIT_UNAVAILABLE)
        assert not await there.is_available()
        assert await unreadable()
        path.unlink()
        await there.until_written("after")
        await there.told(log.AUDIT_RECOVERED)
        assert there.tags() == Counter(("before", "mended", "after"))
    assert executed(tmp_path) == Counter(("after",))
    assert lines(there.running, log.AUDIT_UNAVAILABLE) == lines(there.running, log.AUDIT_RECOVERED) == 1


def rows_in(path: Path, how: str = "mode=ro") -> int:
    with closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True)) as file:
        found: int = file.execute("SELECT count(*) FROM audit_events").fetchone()[0]
    return found


def is_carried_over(path: Path) -> bool:
    """Whether all that is in the log is in the file too, in which SQLite writes the first page first."""
    with contextlib.suppress(sqlite3.DatabaseError):
        return rows_in(path, "immutable=1") == rows_in(path)
    return False
