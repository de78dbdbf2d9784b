"""What held writes cost the others, and how soon an approved one runs (docs/approvals.md, The hold).

    python -m tests.bench.bench_approvals

Reads of four agents with nothing held and with 64 writes held, in turns; then the time from the gate's answer to the agent's, for
writes that are approved one after the other while the others stay held. PostgreSQL, gatewayd, the gate and the agents share the
machine.
"""

import argparse
import json
import os
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
import msgspec
import trio

from gatewayd.approvals.messages import Approved, GateAsk, Pending, Wait
from gatewayd.http.open_exchange import HttpExchange
from gatewayd.http.server import HttpServer
from tests.bench.drive import Load, drive, quantile
from tests.bench.run import postgresql
from tests.bench.servers import gatewayd, running
from tests.daemon.daemon_rig import until

HELD = 64
OF_ONE = 8
READERS = 4
POLICY = "table_access: {default: read, tables: {held: read_write}}\napprovals: {writes: true, hold_s: 50, preview: false}\n"
SETUP = "CREATE TABLE held (number integer); GRANT INSERT, SELECT ON held TO agent;"
FAR = 4_000_000_000_000


def read(number: int) -> str:
    return f"SELECT id, name, email FROM users WHERE id = {number % 100_000 + 1}"


class Gate:
    """Holds all, and lets one through when it is told to."""

    def __init__(self) -> None:
        self.waiting: dict[str, trio.Event] = {}
        self.answered_s: dict[str, float] = {}
        self._sql: dict[str, str] = {}

    async def __call__(self, exchange: HttpExchange) -> None:
        body = await exchange.body(1 << 20, 10)
        answer: object = {}
        if exchange.head.path.endswith("/wait"):
            wait = msgspec.json.decode(body, type=Wait)
            event = self.waiting[wait.query_id] = trio.Event()
            with trio.move_on_after(wait.wait_s):
                await event.wait()
            self.answered_s[wait.query_id] = perf_counter()
            answer = Approved() if event.is_set() else Pending(approval_id=wait.query_id, expires_at=FAR)
        elif not exchange.head.path.endswith("/outcome"):
            ask = msgspec.json.decode(body, type=GateAsk)
            answer = Pending(approval_id=ask.query_id, expires_at=FAR)
        await exchange.answer(200, msgspec.json.encode(answer))


class Done:
    """When the last write ended."""

    def __init__(self) -> None:
        self.at_s = 0.0
        self._event = trio.Event()

    def now(self) -> None:
        self.at_s = perf_counter()
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event = trio.Event()


async def hold(url: str, number: int, done: "Done") -> None:
    """One write, held until it is approved or its time is over; when its answer came."""
    token = f"01ARZ3NDEKTSV4RRFFQ69G5F{number // OF_ONE:02}"
    headers = {"accept": "application/json, text/event-stream", "x-gateway-token-id": token}

    async with httpx.AsyncClient(timeout=120, trust_env=False) as client:

        async def post(method: str, params: dict[str, Any]) -> httpx.Response:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return await client.post(url, json=message, headers=headers)

        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "held", "version": "1"}}
        headers["mcp-session-id"] = (await post("initialize", hello)).headers["mcp-session-id"]
        arguments = {"sql": f"INSERT INTO held VALUES ({number})", "intent": "bench"}
        answer = await post("tools/call", {"name": "query", "arguments": arguments})
        if json.loads(answer.json()["result"]["content"][0]["text"])["allowed"]:
            done.now()


async def measure(options: argparse.Namespace, stack: ExitStack, folder: Path) -> None:
    gate, stop = Gate(), trio.Event()
    async with trio.open_nursery() as nursery:

        async def serve(*, task_status: trio.TaskStatus[int]) -> None:
            await HttpServer(gate, grace_s=0).serve("127.0.0.1", 0, stop=stop, task_status=task_status)

        gate_port: int = await nursery.start(serve)
        database = stack.enter_context(postgresql(folder / "pg", SETUP))
        server = gatewayd(database, folder / "gatewayd")
        Path(server.environment["GATEWAY_POLICY_FILE"]).write_text(POLICY, encoding="utf-8")
        more = {
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "GATEWAY_APPROVAL_URL": f"http://127.0.0.1:{gate_port}/",
            "GATEWAY_APPROVAL_TOKEN": "bench",
        }
        server = msgspec.structs.replace(server, environment={**server.environment, **more})
        pid = stack.enter_context(running(server, folder / "log"))
        workers = stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))

        async def reads(seconds: float) -> Load:
            return await trio.to_thread.run_sync(lambda: workers.submit(ask, server.port, pid, seconds).result())

        await reads(2)
        alone: list[Load] = []
        beside: list[Load] = []
        delays: list[float] = []
        for _ in range(options.rounds):
            alone.append(await reads(options.seconds))
            gate.waiting.clear()
            done = Done()
            async with trio.open_nursery() as held:
                for number in range(HELD):
                    held.start_soon(hold, server.url, number, done)
                await until(lambda: len(gate.waiting) == HELD)
                beside.append(await reads(options.seconds))
                for query_id, event in list(gate.waiting.items())[: options.approved]:
                    event.set()
                    await done.wait()
                    delays.append(done.at_s - gate.answered_s[query_id])
                for event in gate.waiting.values():  # a client of this era that only left would still be held
                    event.set()
        print("| reads of 4 agents | calls/s | p50 ms | p99 ms |")
        print("|---|---:|---:|---:|")
        for name, loads in (("nothing held", alone), (f"{HELD} writes held", beside)):
            rates = statistics.median(load.a_second("rows") for load in loads)
            p50 = statistics.median(quantile(load.served_s, 0.5) for load in loads) * 1000
            p99 = statistics.median(quantile(load.served_s, 0.99) for load in loads) * 1000
            print(f"| {name} | {rates:.0f} | {p50:.2f} | {p99:.2f} |")
        print(
            f"from the gate's answer to the agent's: {len(delays)} writes, median {statistics.median(delays) * 1000:.1f} ms,",
            end=" ",
        )
        print(f"p99 {quantile(delays, 0.99) * 1000:.1f} ms, most {max(delays) * 1000:.1f} ms")
        stop.set()
        nursery.cancel_scope.cancel()


def ask(port: int, pid: int, seconds: float) -> Load:
    return drive(port, read, seconds=seconds, connections=READERS, pid=pid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--approved", type=int, default=20, help="writes approved in each round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        folder.chmod(0o755)
        trio.run(measure, options, stack, folder)


if __name__ == "__main__":
    main()
