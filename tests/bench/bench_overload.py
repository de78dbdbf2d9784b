"""What ten times the load that gatewayd can carry does to it, and how soon it is over (docs/operations.md, Load and fairness).

    python -m tests.bench.bench_overload

Finds the calls a second that 64 sessions get, offers eight tenths of that, then ten times of it in an open loop (whether or not
answers come) on more and more connections, and asks /health on fresh connections all the while. "Own" is what gatewayd itself
computed from a call's sending to its answer: its part of the time if it has a core to itself, which here it has not. Recovery is
the time of the first call of a new session after the load has ended.
"""

import argparse
import contextlib
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import msgspec

from tests.bench.drive import Health, Load, drive, probe_health, quantile
from tests.bench.run import postgresql
from tests.bench.servers import gatewayd, running

HEADER = (
    "| load | connections | offered/s | rows/s | refused/s | of them 503 | no retry told | rows p50 ms | p99 ms | max ms"
    " | health p50 ms | p99 ms | max ms | own p99 ms | RSS MiB | recovery ms |"
)


def point_read(number: int) -> str:
    return f"SELECT id, name, email FROM users WHERE id = {number % 100_000 + 1}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8, help="of each measurement")
    parser.add_argument("--connections", type=int, nargs="*", default=(640, 1500, 3000), help="at ten times the load")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        folder.chmod(0o755)
        database = stack.enter_context(postgresql(folder / "pg"))
        server = gatewayd(database, folder / "gatewayd")
        server = msgspec.structs.replace(
            server, environment={**server.environment, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        )
        pid = stack.enter_context(running(server, folder / "log"))
        workers = stack.enter_context(ProcessPoolExecutor(2, get_context("spawn")))

        def measure(name: str, connections: int, rate: float | None) -> Load:
            asked = workers.submit(offer, server.port, options.seconds, connections, rate)
            health = workers.submit(probe_health, server.port, seconds=options.seconds, pid=pid)
            load, well = asked.result(), health.result()
            print(row(name, connections, load, well, resident_mib(pid), recovery_s(server.port)), flush=True)
            return load

        workers.submit(offer, server.port, 2, 8, None).result()
        print(HEADER)
        print("|---" + "|---:" * (HEADER.count("|") - 2) + "|")
        sustained = measure("as fast as 64 sessions are answered", 64, None).a_second("rows")
        measure("eight tenths of that", 64, sustained * 0.8)
        for connections in options.connections:
            measure("ten times that", connections, sustained * 10)


def offer(port: int, seconds: float, connections: int, rate: float | None) -> Load:
    return drive(port, point_read, seconds=seconds, connections=connections, rate=rate)


def recovery_s(port: int) -> float:
    """Until a session that is opened now has the answer to its first call."""
    began = time.perf_counter()
    while True:
        with contextlib.suppress(OSError):  # turned away
            first = drive(port, point_read, seconds=0.2, connections=1)
            if first.served_s:
                return time.perf_counter() - began - 0.2 + first.served_s[0]


def row(name: str, connections: int, load: Load, health: Health, rss_mib: float, recovered_s: float) -> str:
    refused = load.a_second("refused") + load.a_second("503")
    milliseconds = [
        *(quantile(load.served_s, share) for share in (0.5, 0.99, 1)),
        *(quantile(health.took_s, share) for share in (0.5, 0.99, 1)),
        quantile(health.cpu_s, 0.99),
    ]
    figures = [
        f"{connections}",
        f"{load.offered / load.seconds:.0f}",
        f"{load.a_second('rows'):.0f}",
        f"{refused:.0f}",
        f"{load.a_second('503'):.0f}",
        f"{load.without_retry}",
        *(f"{value * 1000:.0f}" for value in milliseconds),
        f"{rss_mib:.0f}",
        f"{recovered_s * 1000:.0f}",
    ]
    return f"| {name} | {' | '.join(figures)} |"


def resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


if __name__ == "__main__":
    main()
