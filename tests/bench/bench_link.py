"""What the link costs: python -m tests.bench.bench_link [seconds at rest]

Prints CPU and bytes at rest, the cold start with a cached bundle and no network, how soon a new bundle is in force, and what
pushing costs a stream of calls. The control plane is the stand-in of tests/link in this process, so it shares the machine.
"""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.conftest import QUICK, reserved_port
from tests.link.link_rig import POLICY, SHOP, Linked, linked
from tests.link.stand_in import Listener, StandIn, listening

STARTS = 5
BUNDLES = 10
CALLS_S = 15.0


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def at_rest(gateway: Linked, listener: Listener, seconds: float) -> None:
    """Beside the poll, the push looks for commits, catalogs are read every five minutes."""
    time.sleep(5)
    before, sent, began = cpu_s(gateway.running.process.pid), listener.bytes_in + listener.bytes_out, time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    cpu = (cpu_s(gateway.running.process.pid) - before) / took
    traffic = (listener.bytes_in + listener.bytes_out - sent) / took
    print(f"at rest, {took:.0f} s: {cpu:.2%} of one core, {traffic:.0f} bytes/s")


def bundles(gateway: Linked, control: StandIn) -> None:
    """From publishing to the first /readyz that answers by it; the bundle changes between enforced and paused."""
    took = []
    for number in range(BUNDLES):
        state = "paused" if number % 2 == 0 else "enforced"
        wanted = "paused" if number % 2 == 0 else "ready"
        control.publish(POLICY, state=state)
        began = time.monotonic()
        while gateway.ready()[1] != wanted:
            time.sleep(0.005)
        took.append(time.monotonic() - began)
    print(f"a new bundle in force: median {statistics.median(took):.3f} s, most {max(took):.3f} s of {BUNDLES}")


def calls(gateway: Linked) -> tuple[float, float]:
    """Calls a second of one agent, and the gateway's CPU a call."""
    gateway.query("SELECT 1")
    before, count, began = cpu_s(gateway.running.process.pid), 0, time.monotonic()
    while time.monotonic() - began < CALLS_S:
        gateway.query("SELECT id, status FROM orders WHERE id = 7")
        count += 1
    took = time.monotonic() - began
    return count / took, (cpu_s(gateway.running.process.pid) - before) / count


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    folder = Path(tempfile.mkdtemp(prefix="gl", dir="/tmp"))
    folder.chmod(0o711)
    with reserved_port() as database, reserved_port() as port:
        server = EmbeddedPostgres(folder / "pg", version=16, tcp=True, port=database, superuser_password="bench", settings=QUICK)
        server.initialise()
        server.start()
        try:
            server.psql(SHOP)
            dsn = server.url(user="postgres", database="postgres", password=None, tcp=False)
            _measure(dsn, folder, port, seconds)
        finally:
            server.stop("immediate")
            shutil.rmtree(folder, ignore_errors=True)


def _measure(dsn: str, folder: Path, port: int, seconds: float) -> None:
    control = StandIn()
    control.publish(POLICY)
    with listening(control) as listener:
        with linked(listener, dsn, folder, port) as gateway:
            gateway.wait_until_ready()
            at_rest(gateway, listener, seconds)
            bundles(gateway, control)
            rate, cpu = calls(gateway)
            print(f"one agent, pushing: {rate:.0f} calls/s, {cpu * 1e6:.0f} µs of CPU a call, {3 * rate:.0f} rows/s")
            gateway.running.stop()
        listener.spoil = lambda path, good: (404, b"{}") if path.endswith("/audit") else good
        with linked(listener, dsn, folder, port) as gateway:
            gateway.wait_until_ready()
            rate, cpu = calls(gateway)
            print(f"one agent, not pushing: {rate:.0f} calls/s, {cpu * 1e6:.0f} µs of CPU a call")
            gateway.running.stop()
    took = []
    for _ in range(STARTS):
        began = time.monotonic()
        with linked(listener, dsn, folder, port) as gateway:
            with httpx.Client() as client:
                assert client.get(f"http://127.0.0.1:{port}/health").status_code == 200
            took.append(time.monotonic() - began)
            gateway.running.stop()
    print(f"cold start with a cached bundle, no network: median {statistics.median(took):.2f} s, least {min(took):.2f} s")


if __name__ == "__main__":
    main()
