"""What it costs that the audit can be proved: a row in the writer and in the file, a start, `verify`, and a call of w1.

    .venv/bin/python -m tests.bench.bench_audit [--rows 1000000]

Processor time, the least of several rounds, so that a busy machine changes little. Each pair alternates. "Before" is the table
without what format 2 added, written by the same statement; in w1 it is gatewayd with leaves and salts that are constants.
Aims (docs/audit-format.md): 8 µs and 160 bytes a row, a start no slower, 100 000 rows a second on one core, 5 % of a w1.
"""

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from time import process_time

import msgspec

from gatewayd.audit.events import EVENT_TYPE, SCHEMA_VERSION, Agent, Attempted, Decided, Event, Executed, Query, QueryId
from gatewayd.audit.file import AuditFile
from gatewayd.audit.ids import RisingIds, new_ulid
from gatewayd.audit.reader import connect_for_reading
from gatewayd.audit.rows import COLUMNS, row_of
from gatewayd.audit.verify import Verifier
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.identity import verifier_of
from tests.audit import format_1
from tests.bench.run import postgresql
from tests.bench.servers import gatewayd, generator, running

KEY = SigningKey(bytes(range(32)))
NOW_MS = 1_750_000_000_000
CALLS = 4000  # of three rows each, in a round
ROUNDS = 7
SQL = "SELECT id, name, price FROM public.products WHERE id = 42 ORDER BY name LIMIT 10"
FORMAT_1 = f"INSERT INTO audit_events ({', '.join(COLUMNS)}) VALUES " + ", ".join([f"({', '.join('?' * len(COLUMNS))})"] * 3)
WITHOUT_TREE = """
import hashlib
from gatewayd.audit import file, rows
file.leaf_of = lambda seq, envelope, commitment: bytes(32)
file.commitment_of = lambda salt, details: bytes(32)
rows._halves = lambda payload, text, intent: (b"{}", b"{}")
file.CompactRange.append = lambda self, leaf: None
file.AuditFile.draft_head = lambda self: None
from gatewayd.__main__ import main
main()
"""
encode = msgspec.json.Encoder(order="sorted").encode


def calls(count: int) -> Iterator[tuple[Event, Event, Event]]:
    for number in range(count):
        now = NOW_MS + number
        query = Query(QueryId(new_ulid(now, os.urandom)), "__default__", Agent("claude-code", "1.2"), "look up the order")
        decided = Decided("ALLOW", "SELECT", ("public.products",), dialect="postgres", policy="ab" * 32)
        payloads = (Attempted(SQL, "0123456789abcdef"), decided, Executed(3, 1, rows_returned=10))
        first, second, third = (Event(query, now, payload) for payload in payloads)
        yield first, second, third


def columns_of(event: Event) -> tuple[object, ...]:
    query, agent = event.query, event.query.agent
    payload = encode(event.payload).decode()
    kind = EVENT_TYPE[type(event.payload)]
    who = (agent.name, agent.version, query.intent, agent.token_id)
    return (query.query_id, query.tenant_id, query.database, *who, event.ts_ms, kind, payload, SCHEMA_VERSION)


def format_1_file(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = normal", "wal_autocheckpoint = 0", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.executescript(format_1.TABLES)
    return connection


def spent(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began


def writer(folder: Path) -> None:
    made = list(calls(CALLS))
    rows = 3 * CALLS
    before: list[float] = []
    now: list[float] = []
    for number in range(ROUNDS):
        ids = RisingIds(os.urandom)
        with closing(format_1_file(folder / f"{number}.1.db")) as connection:

            def write_before(connection: sqlite3.Connection = connection, ids: RisingIds = ids) -> None:
                for events in made:
                    values: list[object] = []
                    for event in events:
                        values += (ids.next(event.ts_ms), *columns_of(event))
                    connection.execute(FORMAT_1, values)

            before.append(spent(write_before) / rows * 1e6)
        file, ids = AuditFile(str(folder / f"{number}.2.db"), "normal", KEY), RisingIds(os.urandom)
        file.start(ids)

        def write(file: AuditFile = file, ids: RisingIds = ids) -> None:
            for events in made:
                file.insert([(ids.next(event.ts_ms), row_of(event)) for event in events])

        now.append(spent(write) / rows * 1e6)
        file.close()
    sizes = [(folder / f"0.{format_}.db").stat().st_size / rows for format_ in (1, 2)]
    print(f"writer, three rows a commit   {min(before):6.1f} → {min(now):6.1f} µs a row: +{min(now) - min(before):.1f}")
    print(f"file                          {sizes[0]:6.0f} → {sizes[1]:6.0f} bytes a row: +{sizes[1] - sizes[0]:.0f}")


def large_file(path: Path, rows: int) -> None:
    file, ids = AuditFile(str(path), "normal", KEY), RisingIds(os.urandom)
    file.start(ids)
    for events in calls(rows // 3):
        file.insert([(ids.next(event.ts_ms), row_of(event)) for event in events])
        if file.size % 30_000 == 0:
            file.checkpoint()
    file.head_now()
    file.close()


def start_and_verify(path: Path, rows: int) -> None:
    large_file(path, rows)

    def start_before() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("SELECT max(id) FROM audit_events").fetchone()

    def start() -> None:
        file = AuditFile(str(path), "normal", KEY)
        file.start(RisingIds(os.urandom))
        file.close()

    pairs = [(spent(start_before), spent(start)) for _ in range(ROUNDS)]
    before, now = (min(each) * 1000 for each in zip(*pairs, strict=True))
    print(f"start with {rows} rows     {before:6.1f} → {now:6.1f} ms")
    with closing(connect_for_reading(str(path))) as connection:
        connection.execute("PRAGMA mmap_size = 268435456")

        def verify() -> None:
            assert not Verifier(connection, [verifier_of(KEY)]).run().faults

        print(f"verify                        {rows / min(spent(verify) for _ in range(3)):6.0f} rows a second on one core")


def whole_calls(folder: Path) -> None:
    """Server CPU of a w1 at 8 clients."""
    with ExitStack() as stack:
        database = stack.enter_context(postgresql(folder / "pg"))
        kinds: Sequence[tuple[str, Sequence[str]]] = (("before", (sys.executable, "-c", WITHOUT_TREE)), ("now", ()))
        servers = [gatewayd(database, folder / name, name, command) for name, command in kinds]
        found: dict[str, list[float]] = {"before": [], "now": []}
        for turn in range(ROUNDS):
            for server in servers if turn % 2 == 0 else servers[::-1]:
                with running(server, folder / f"{server.name}.log") as pid:
                    tool, arguments, _ = server.calls["w1"]
                    words = ["--url", server.url, "--tool", tool, "--args", arguments, "--workload", "w1", "--clients", "8"]
                    told = generator([*words, "--seconds", "2", "--warmup", "1", "--pid", str(pid), "--label", server.name])
                    found[server.name].append(told["server_cpu_s_per_1000"] * 1000)
    before, now = min(found["before"]), min(found["now"])
    ratio = statistics.median(now / before for before, now in zip(found["before"], found["now"], strict=True))
    print(f"w1 at 8 clients, server's CPU {before:6.0f} → {now:6.0f} µs a call; median of the pairs' ratios {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=150_000, help="of the file that is opened and verified")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        writer(folder)
        start_and_verify(folder / "large.db", options.rows)
        whole_calls(folder)


if __name__ == "__main__":
    main()
