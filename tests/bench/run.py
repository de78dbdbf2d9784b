"""`make bench`: the same work on gatewayd and its peers, in one run, alternating; medians, ratios, a table and a chart.

Everything shares two cores: PostgreSQL, the server under test and the generator. Compare figures within one run only.
"""

import argparse
import itertools
import os
import shlex
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.bench.report import chart, table
from tests.bench.servers import Database, Server, dbhub, gatewayd, generator, install_peers, running, toolbox

HERE = Path(__file__).parent
WORKLOADS = ("w1", "w2", "w3", "w4", "w5")
CLIENTS = (1, 8, 64)
Cell = tuple[str, str, int]  # server, workload, clients


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--workloads", nargs="*", default=WORKLOADS)
    parser.add_argument("--clients", nargs="*", type=int, default=CLIENTS)
    parser.add_argument("--no-peers", action="store_true", help="gatewayd alone")
    parser.add_argument("--name", help="keep the results as tests/bench/results/NAME.md and .svg")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        folder.chmod(0o755)
        database = stack.enter_context(postgresql(folder / "pg"))
        servers = [gatewayd(database, folder / "gatewayd")]
        if not options.no_peers and install_peers():
            servers += [dbhub(database, folder / "dbhub"), toolbox(database, folder / "toolbox")]
        cells = measure(servers, database, folder, options)
        extras = {server.name: idle_and_starts(server, folder) for server in servers}
        text = table(cells, extras, options.workloads, options.clients)
        print(text)
        if options.name:
            results = HERE / "results"
            results.mkdir(exist_ok=True)
            (results / f"{options.name}.md").write_text(text, encoding="utf-8")
            (results / f"{options.name}.svg").write_text(chart(cells, options.workloads), encoding="utf-8")


@contextmanager
def postgresql(folder: Path, more_sql: str = "") -> Iterator[Database]:
    """The embedded server with seed.sql and `more_sql`; settings as they come."""
    folder.mkdir(parents=True)
    server = EmbeddedPostgres(folder, version=16, tcp=True, superuser_password="bench", settings={"max_connections": "200"})
    server.initialise()
    server.start()
    try:
        server.psql((HERE / "seed.sql").read_text(encoding="utf-8") + more_sql)
        found = server.postmaster()
        assert found is not None
        yield Database(found.port, found.pid)
    finally:
        server.stop()


def measure(servers: Sequence[Server], database: Database, folder: Path, options: Any) -> dict[Cell, dict[str, float]]:
    """Medians over the rounds of each cell; servers alternate within a round, so that a slow minute hits them all."""
    samples: dict[Cell, list[dict[str, Any]]] = {}
    for turn in range(options.rounds):
        for server in servers if turn % 2 == 0 else list(reversed(servers)):
            with running(server, folder / f"{server.name}.log") as pid:
                for workload, clients in itertools.product(options.workloads, options.clients):
                    if workload not in server.calls:
                        continue
                    tool, arguments, more = server.calls[workload]
                    found = generator(
                        [
                            "--url", server.url, "--tool", tool, "--args", arguments, "--workload", workload, *more,
                            "--clients", str(clients), "--seconds", str(options.seconds), "--warmup", "1",
                            "--pid", str(pid), "--db-pid", str(database.pid), "--label", server.name,
                        ]
                    )  # fmt: skip
                    bad = sum(
                        found[key] for key in ("tool_errors", "transport_errors", "row_mismatches", "expected_error_missing")
                    )
                    print(
                        f"round {turn + 1} {server.name:8} {workload} c={clients:<2} {found['calls_per_s']:>7.0f}/s"
                        f" p50 {found['p50_ms']:.2f} p99 {found['p99_ms']:.2f} ms  bad {bad}",
                        flush=True,
                    )
                    found["bad"] = bad
                    samples.setdefault((server.name, workload, clients), []).append(found)
    keys = ("calls_per_s", "p50_ms", "p99_ms", "server_cpu_s_per_1000", "server_rss_peak_mib", "bad")
    return {cell: {key: statistics.median(one[key] for one in found) for key in keys} for cell, found in samples.items()}


def idle_and_starts(server: Server, folder: Path) -> dict[str, float]:
    """Memory of 1000 idle sessions, and the time from nothing to the first good answer over HTTP and stdio (medians of 5)."""
    tool, arguments, _ = server.calls["w1"]
    asked = ["--tool", tool, "--args", arguments, "--workload", "w1"]
    with running(server, folder / f"{server.name}.log") as pid:
        idle = generator(["--url", server.url, *asked, "--idle", "1000", "--pid", str(pid), "--settle", "1"])
    environment = " ".join(f"{name}={shlex.quote(value)}" for name, value in server.environment.items())
    command = f"env {environment} {shlex.join(server.command)}"
    starts = [
        generator(["--url", server.url, *asked, "--cold-start", command, "--settle", "0.5"])["first_call_ms"] for _ in range(5)
    ]
    stdio = generator(
        ["--command", shlex.join(server.stdio), *asked, "--starts", "5", "--seconds", "1"], "mcp_stdio.py", server.environment
    )
    return {
        "kib_per_session": idle["kib_per_session"],
        "rss_idle_mib": idle["rss_before_mib"],
        "start_http_ms": statistics.median(starts),
        "start_stdio_ms": stdio["cold_start_ms"],
    }


if __name__ == "__main__":
    main()
