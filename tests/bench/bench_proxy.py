"""What the control plane's proxy costs: python -m tests.bench.bench_proxy [--rounds 3] [--seconds 8]

The same work (w1) through /mcp/<token> and on an engine directly, in turns: both are linked gateways of one control plane, which
stores the audit of both. Then the first call of a cold engine, with and without its enrolment, and the control plane's memory.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.bench.run import postgresql
from tests.bench.servers import Database, Server, generator, running
from tests.conftest import reserved_port
from tests.control.plane_process import PlaneProcess, plane_process

POLICY = "databases:\n  - name: shop\n    table_access: {default: read}\n"
QUERY = ["--tool", "query", "--args", '{"sql": "{sql}", "intent": "bench"}', "--workload", "w1"]
FIRST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
CLIENTS = (1, 8, 64)
STARTS = 5


def rate(url: str, pids: str, database: Database, clients: int, seconds: float, header: str) -> dict[str, Any]:
    words = ["--url", url, *QUERY, "--clients", str(clients), "--seconds", str(seconds), "--warmup", "1", "--pid", pids]
    found = generator([*words, "--db-pid", str(database.pid), *(["--header", header] if header else [])])
    bad = sum(found[key] for key in ("tool_errors", "transport_errors", "row_mismatches", "expected_error_missing"))
    assert bad == 0, found
    return found


@contextmanager
def direct_engine(plane: PlaneProcess, project: str, database: Database, folder: Path, port: int) -> Iterator[Server]:
    """A linked gateway on a port of its own."""
    folder.mkdir(parents=True)
    token = plane.api("POST", f"/projects/{project}/gateways/tokens", {"name": "direct"})["token"]
    environment = {
        "GATEWAY_CONTROL_URL": plane.url, "GATEWAY_ENROL_TOKEN": token, "DATABASE_URL": database.url,
        "DB_PATH": str(folder / "audit.db"), "GATEWAY_HOST": "127.0.0.1", "PORT": str(port), "GATEWAY_TELEMETRY": "0",
        "GATEWAY_LOG_LEVEL": "warning",
    }  # fmt: skip
    command = plane.running.process.args
    assert isinstance(command, list)
    server = Server("direct", [*command[:3], "serve"], (), environment, port, {})
    with running(server, folder / "log") as pid:
        until = time.monotonic() + 30
        while httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).text != "ready":
            assert time.monotonic() < until
            time.sleep(0.05)
        server = Server("direct", [str(pid)], (), {}, port, {})
        yield server


def first_call(url: str) -> float:
    began = time.monotonic()
    headers = {"accept": "application/json, text/event-stream"}
    answer = httpx.post(url, json=FIRST, headers=headers, timeout=60, trust_env=False)
    took = time.monotonic() - began
    assert answer.status_code == 200, answer.text
    return took


def rss_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def compare(plane: PlaneProcess, direct: Server, token: str, database: Database, options: argparse.Namespace) -> None:
    """CPU is of control plane, both engines and PostgreSQL: on a busy machine it says more than calls a second."""
    ways = {"direct": (direct.url, f"authorization: Bearer {token}"), "proxy": (plane.mcp(token), "x-bench: 1")}
    pids = f"{plane.running.process.pid},{direct.command[0]}"
    for clients in options.clients:
        rates: dict[str, list[float]] = {way: [] for way in ways}
        cpu: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(options.rounds):
            for way in ways if turn % 2 == 0 else reversed(ways):
                url, header = ways[way]
                one = rate(url, pids, database, clients, options.seconds, header)
                rates[way].append(one["calls_per_s"])
                cpu[way].append(one["server_cpu_s_per_1000"] + one["db_cpu_s_per_1000"])
                figures = f"p50 {one['p50_ms']:.2f} p99 {one['p99_ms']:.2f} ms, {cpu[way][-1]:.2f} ms of CPU a call"
                print(f"{way:6} c={clients:<2} {one['calls_per_s']:>6.0f}/s {figures}", flush=True)
        print(f"{clients} clients: {ratio(rates)} of the calls a second, {ratio(cpu)} of the CPU a call")


def ratio(found: Mapping[str, Sequence[float]]) -> str:
    direct, proxy = statistics.median(found["direct"]), statistics.median(found["proxy"])
    return f"{proxy / direct:.2f} ({proxy:.4g} to {direct:.4g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--clients", type=int, nargs="*", default=CLIENTS)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with (
        tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch,
        reserved_port() as port,
        reserved_port() as direct_port,
    ):
        folder = Path(scratch)
        folder.chmod(0o711)
        with postgresql(folder / "pg", "CREATE DATABASE control;") as database:
            store = f"postgresql://postgres:bench@127.0.0.1:{database.port}/control"
            with plane_process(store, folder / "state", port, {"CONTROL_LOG_LEVEL": "warning"}) as plane:
                plane.found(plane.running.wait_for("/welcome/").strip())
                project = plane.new_project("Bench", database.url, POLICY)
                token = plane.new_token(project)["text"]
                print(f"first call of a cold engine, enrolling: {first_call(plane.mcp(token)):.2f} s")
                with direct_engine(plane, project, database, folder / "direct", direct_port) as direct:
                    compare(plane, direct, token, database, options)
                print(f"memory of the control plane: {rss_mib(plane.running.process.pid):.0f} MiB")
                plane.running.stop()
            starts = []
            for _ in range(STARTS):
                with plane_process(store, folder / "state", port, {"CONTROL_LOG_LEVEL": "warning"}) as plane:
                    starts.append(first_call(plane.mcp(token)))
                    plane.running.stop()
            print(f"first call of a cold engine: median {statistics.median(starts):.2f} s of {STARTS}")


if __name__ == "__main__":
    main()
