"""A process that is killed while it writes leaves a sound file, and every permit it had told of is in it."""

import signal
import sqlite3
import subprocess
import sys
import textwrap

from gatewayd.audit.service import open_audit
from tests.audit.audit_calls import Calls, FileView

WRITER = textwrap.dedent(
    """
    import os, sys, time, trio
    from gatewayd.audit.events import Agent, Attempted, Executed, Query
    from gatewayd.audit.ids import new_ulid
    from gatewayd.audit.service import open_audit
    from gatewayd.policy.decide.outcomes import Allowed
    from gatewayd.sql.facts.statement import Statement

    allowed = Allowed(Statement("SELECT 1", "SELECT", "read", "0" * 16), (), "default:read")

    async def call(audit):
        while True:
            query = Query(new_ulid(time.time_ns() // 1_000_000, os.urandom), "__default__", Agent(), None)
            await audit.attempted(query, Attempted("SELECT 1", "0" * 16))
            permit = await audit.decided(query, allowed)
            os.write(1, f"{permit.query_id} {permit.audit_id}\\n".encode())
            await audit.closed(query, Executed(1, 1))

    async def main():
        async with open_audit(sys.argv[1]) as audit, trio.open_nursery() as nursery:
            for _ in range(16):
                nursery.start_soon(call, audit)

    trio.run(main)
    """
)


async def test_a_killed_writer_leaves_every_permit_it_gave(path: str, calls: Calls, view: FileView) -> None:
    told: dict[str, str] = {}
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(200):
                query_id, audit_id = writer.stdout.readline().split()
                told[query_id] = audit_id
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout.read().splitlines():
                if len(line.split()) == 2 and len(line) == 53:  # the last may be cut
                    query_id, audit_id = line.split()
                    told[query_id] = audit_id
        assert writer.returncode == -signal.SIGKILL
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    async with open_audit(path) as audit:
        after = await calls.whole(audit)
    rows = view.rows(path)
    decided = {row.query_id: row.id for row in rows if row.event_type == "DECIDED"}
    assert told.items() <= decided.items()
    assert rows[-1].id > after.audit_id > max(told.values())
    allowed_chains = [["ATTEMPTED"], ["ATTEMPTED", "DECIDED ALLOW"], ["ATTEMPTED", "DECIDED ALLOW", "EXECUTED"]]
    for events in view.events(path).values():
        assert events in allowed_chains
