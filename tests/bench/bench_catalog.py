"""Time and memory of reading a large catalog (decision 12: 10 000 tables, 200 000 columns: at most 2 s and 150 MB).

    .venv/bin/python tests/bench/bench_catalog.py [TABLES [COLUMNS_EACH]]

Every table and column has a name of its own, the worst case for memory. `stall` is the longest time that another Trio task, which
wants to run every 2 ms, was kept waiting.
"""

import sys
import tempfile
from pathlib import Path
from time import perf_counter

import trio

from gatewayd.policy.file.model import Limits
from gatewayd.postgres.catalog.refresher import CatalogRefresher
from gatewayd.postgres.embedded import EmbeddedPostgres
from gatewayd.postgres.pool import Pool

TYPES = ("bigint NOT NULL", "text", "numeric(12,2)", "timestamptz", "jsonb")


def schema(tables: int, columns: int) -> str:
    statements = [f"CREATE SCHEMA s{number};" for number in range(10)]
    for table in range(tables):
        listed = ", ".join(f"column_{table}_{column} {TYPES[column % len(TYPES)]}" for column in range(columns))
        statements.append(f"CREATE TABLE s{table % 10}.table_{table} ({listed});")
    return "\n".join(statements)


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096 / 2**20


async def measure(dsn: str) -> None:
    pool = Pool("bench", dsn, Limits())
    async with pool.connection() as connection:
        await connection.fetch("SELECT 1")
    refresher = CatalogRefresher("bench", pool)
    stall_s = 0.0

    async def watch() -> None:
        nonlocal stall_s
        while True:
            slept_from = perf_counter()
            await trio.sleep(0.002)
            stall_s = max(stall_s, perf_counter() - slept_from - 0.002)

    before_mib = resident_mib()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await nursery.start(refresher.run)
        for _ in range(5):
            await refresher.unknown()
            read = refresher.statistics()
            columns = sum(len(relation.columns) for relation in refresher.catalog.relations.values())
            print(
                f"{read.relations} relations, {columns} columns: read {read.last_read_s:.2f} s, "
                f"memory +{resident_mib() - before_mib:.0f} MiB, stall {stall_s * 1000:.0f} ms"
            )
            stall_s = 0.0
            refresher.wrote(ddl=True)
        nursery.cancel_scope.cancel()
    await pool.aclose()


def main(tables: int = 10_000, columns: int = 20) -> None:
    with tempfile.TemporaryDirectory(prefix="gw", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        server = EmbeddedPostgres(Path(folder) / "server", settings={"fsync": "off"})
        server.initialise()
        server.start()
        try:
            server.psql(schema(tables, columns), "postgres")
            trio.run(measure, server.url(user="postgres", database="postgres"))
        finally:
            server.stop("immediate")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
