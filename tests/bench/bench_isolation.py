"""What one agent costs another: a quiet one alone, then beside a greedy one (docs/operations.md, Load and fairness).

    python -m tests.bench.bench_isolation

PostgreSQL, gatewayd and both agents share the machine, so a neighbour also takes from the quiet agent what no gateway can give
back. Two figures tell them apart: the time of the quiet agent's calls, and what gatewayd itself computed from each call's
sending to its answer, which is gatewayd's part of that time if it has a core to itself. The quiet agent is measured alone before
and after each neighbour.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import Manager, get_context
from pathlib import Path
from typing import Any

import msgspec

from tests.bench.drive import Load, drive, quantile
from tests.bench.run import postgresql
from tests.bench.servers import Database, Server, gatewayd, running

PAUSE_S = 0.01  # the quiet agent thinks between its calls
POLICY = 'table_access: {default: read}\nfunctions: {allow: ["public.nap"]}\n'
SETUP = """
CREATE FUNCTION public.nap(s float8) RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(s)';
GRANT EXECUTE ON FUNCTION public.nap TO agent;
"""


def quiet(number: int) -> str:
    return f"SELECT id, name, email FROM users WHERE id = {number % 100_000 + 1}"


def huge(number: int) -> str:
    return f"SELECT id, repeat('x', 1000) AS filler FROM users WHERE id > {number % 1000} LIMIT 1000"


def slow(number: int) -> str:
    return f"SELECT nap(1), {number}"


def heavy(number: int) -> str:
    return f"SELECT count(*) FROM orders a WHERE note LIKE '%{number}%x'"


def large(number: int) -> str:
    return f"SELECT id FROM users WHERE id IN ({number}, {', '.join(map(str, range(150_000)))})"


class Neighbour(msgspec.Struct, frozen=True):
    name: str
    sql: Callable[[int], str]
    connections: int


NEIGHBOURS: Sequence[Neighbour] = (
    Neighbour("one huge result after the other", huge, 1),
    Neighbour("slow statements that wait, 64 at once", slow, 64),
    Neighbour("slow statements that compute, 64 at once", heavy, 64),
    Neighbour("a flood, 64 at once", quiet, 64),
    Neighbour("statements of 1 MB, 4 at once", large, 4),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--only", nargs="*", type=int, default=range(1, len(NEIGHBOURS) + 1), help="numbers of neighbours")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        folder.chmod(0o755)
        database = stack.enter_context(postgresql(folder / "pg", SETUP))
        server = served(database, folder / "gatewayd")
        pid = stack.enter_context(running(server, folder / "log"))
        workers = stack.enter_context(ProcessPoolExecutor(2, get_context("spawn")))
        begin = stack.enter_context(Manager())
        workers.submit(ask_quietly, server.port, pid, 2).result()
        print("| neighbour | its calls/s | refused | p50 ms | p99 ms | p99, times | own p50 ms | own p99 ms | own p99, times |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for number in options.only:
            neighbour = NEIGHBOURS[number - 1]
            before = workers.submit(ask_quietly, server.port, pid, options.seconds / 2).result()
            ready = begin.Event()
            other = workers.submit(disturb, server.port, number - 1, options.seconds + 1.5, ready)
            ready.wait()
            beside = workers.submit(ask_quietly, server.port, pid, options.seconds).result()
            after = workers.submit(ask_quietly, server.port, pid, options.seconds / 2)
            its = other.result()
            alone = both(before, after.result())
            print(row("alone", alone, alone, None))
            print(row(neighbour.name, beside, alone, its), flush=True)


def served(database: Database, folder: Path) -> Server:
    server = gatewayd(database, folder)
    Path(server.environment["GATEWAY_POLICY_FILE"]).write_text(POLICY, encoding="utf-8")
    return msgspec.structs.replace(server, environment={**server.environment, "PYTHONPATH": os.environ.get("PYTHONPATH", "")})


def ask_quietly(port: int, pid: int, seconds: float) -> Load:
    return drive(port, quiet, seconds=seconds, connections=1, pause_s=PAUSE_S, pid=pid)


def disturb(port: int, number: int, seconds: float, ready: Any) -> Load:
    neighbour = NEIGHBOURS[number]
    return drive(port, neighbour.sql, seconds=seconds, connections=neighbour.connections, one_session=True, on_ready=ready.set)


def both(one: Load, other: Load) -> Load:
    return msgspec.structs.replace(
        one, served_s=one.served_s + other.served_s, served_cpu_s=one.served_cpu_s + other.served_cpu_s
    )


def row(name: str, load: Load, alone: Load, neighbour: Load | None) -> str:
    figures = [
        f"{sum(neighbour.outcomes.values()) / neighbour.seconds:.0f}" if neighbour else "",
        f"{neighbour.a_second('refused'):.0f}/s" if neighbour else "",
    ]
    for values, reference in ((load.served_s, alone.served_s), (load.served_cpu_s, alone.served_cpu_s)):
        p99 = quantile(values, 0.99)
        figures += [f"{quantile(values, 0.5) * 1000:.1f}", f"{p99 * 1000:.1f}", f"{p99 / quantile(reference, 0.99):.1f}"]
    return f"| {name} | {' | '.join(figures)} |"


if __name__ == "__main__":
    main()
