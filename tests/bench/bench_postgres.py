"""What a read costs below the corridor: `execute()` alone on one session, no HTTP, no audit, no decision.

    .venv/bin/python -m tests.bench.bench_postgres [--dsn …] [--rounds 20]

CPU a call of this process and of the PostgreSQL backend (schedstat, Linux), median and least of the rounds. Without --dsn a
PostgreSQL with seed.sql is started. Compare two checkouts by alternating short runs against one --dsn: on a crowded machine
single figures say little.
"""

import argparse
import tempfile
from pathlib import Path
from random import Random
from statistics import median
from time import process_time_ns

import trio

from gatewayd.catalog import Catalog, Column, Relation
from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.pool import Pool
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.bench.mcp_load import WORKLOADS
from tests.bench.run import postgresql

TIMES = {"w1": 100, "w2": 50, "w3": 20}
TABLES = {
    "users": ("id", "org_id", "name", "email", "ssn", "created_at"),
    "orders": ("id", "user_id", "amount", "status", "note", "placed_at"),
}
CATALOG = Catalog(
    revision=1,
    database="postgres",
    relations={
        ("public", name): Relation(16384 + oid, "public", name, "table", tuple(Column(column, "text") for column in columns))
        for oid, (name, columns) in enumerate(TABLES.items())
    },
)


def permit(sql: str) -> Permit:
    statement = analyze(sql)
    assert isinstance(statement, Statement)
    return Permit(Allowed(statement, (), ""), "query", "audit")


async def measure(dsn: str, rounds: int) -> None:
    pool = Pool("bench", dsn, Limits(), size=1)
    async with pool.connection() as connection:
        (row,) = await connection.fetch("SELECT pg_catalog.pg_backend_pid()")
    schedstat = Path(f"/proc/{row[0]}/schedstat")

    def backend_ns() -> int:
        return int(schedstat.read_text().split()[0])

    chance = Random(1)
    print(f"{'':<12}{'gateway':>18}{'PostgreSQL':>18}   µs a call: median (least)")
    for workload, times in TIMES.items():
        template, _, _, high, _ = WORKLOADS[workload]
        own: list[float] = []
        backend: list[float] = []
        for turn in range(rounds + 1):
            permits = [permit(template.replace("{i}", str(chance.randint(1, high)))) for _ in range(times)]
            began, there = process_time_ns(), backend_ns()
            for each in permits:
                await execute(pool, each, pool.limits, CATALOG)
            if turn:  # the first warms
                own.append((process_time_ns() - began) / times / 1000)
                backend.append((backend_ns() - there) / times / 1000)
        print(f"{workload:<12}{median(own):>10.0f} ({min(own):>4.0f}){median(backend):>11.0f} ({min(backend):>4.0f})")
    await pool.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if options.dsn:
        trio.run(measure, options.dsn, options.rounds)
        return
    with tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        with postgresql(folder / "pg") as database:
            trio.run(measure, database.url, options.rounds)


if __name__ == "__main__":
    main()
