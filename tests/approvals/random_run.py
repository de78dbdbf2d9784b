"""Held writes at random, with kills of gatewayd and of the gate, for as long as told; then the proof from the database's side.

    python -m tests.approvals.random_run --minutes 60

Agents send inserts into one table, the same texts over and over, poll, retry, cancel and hang up. A person approves, denies,
bounds or overlooks them. gatewayd and `gatewayd approve` are killed (SIGKILL) at random moments and started again; policies are
swapped meanwhile. In the end, for each text: rows in the table <= approvals that were claimed <= approvals that the person gave.
"""

import argparse
import contextlib
import json
import math
import random
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import trio

from gatewayd.postgres.embedded import SUPERUSER, EmbeddedPostgres
from tests import places
from tests.cli.gatewayd_process import COMMAND, environment
from tests.conftest import reserved_port

AGENTS = 8
TEXTS = 12
TOKEN, OPERATORS = "token-of-the-random-run", "operators-of-the-random-run"
POLICIES = {
    "held": "table_access: {default: read_write}\napprovals: {writes: true, hold_s: 2}\n",
    "held without preview": "table_access: {default: read_write}\napprovals: {row_changes: true, hold_s: 1, preview: false}\n",
    "held, asked at once": "table_access: {default: read_write}\napprovals: {writes: true, hold_s: 0}\n",
    "denied": "table_access: {default: read}\napprovals: {writes: true, hold_s: 2}\n",
}


class Run:
    def __init__(self, folder: Path, url: str, ports: tuple[int, int], seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.approved: set[str] = set()  # ids that the person said `a` to
        self.texts = [self.text(number) for number in range(TEXTS)]
        self.number = TEXTS
        self.typing = trio.Lock()
        self.port, self.gate_port = ports
        (folder / "policy.yaml").write_text(POLICIES["held"], encoding="utf-8")
        self.variables = {
            "DATABASE_URL": url,
            "DB_PATH": str(folder / "audit.db"),
            "GATEWAY_POLICY_FILE": str(folder / "policy.yaml"),
            "GATEWAY_HOST": "127.0.0.1",
            "PORT": str(self.port),
            "GATEWAY_TELEMETRY": "0",
            "GATEWAY_LOG_LEVEL": "error",
            "INDEXER_TOKEN": OPERATORS,
            "GATEWAY_APPROVAL_URL": f"http://127.0.0.1:{self.gate_port}/approvals",
            "GATEWAY_APPROVAL_TOKEN": TOKEN,
        }

    def text(self, number: int) -> str:
        return f"INSERT INTO ledger VALUES ({number})"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # -- the two programs, killed at random

    async def engine(self) -> None:
        while True:
            with subprocess.Popen(
                [*COMMAND, "serve"],
                env=environment(self.variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=(self.folder / "engine.log").open("ab"),
                start_new_session=True,
            ) as process:
                try:
                    await trio.sleep(self.random.uniform(4, 15))
                finally:
                    self.counts["gatewayd: " + ("killed" if process.poll() is None else f"ended with {process.poll()}")] += 1
                    process.kill()

    async def gate(self) -> None:
        words = [*COMMAND, "approve", "--port", str(self.gate_port), "--file", str(self.folder / "requests.db"), "--by", "ann"]
        while True:
            process = await trio.lowlevel.open_process(
                [*words, "--expires", "1"],
                env=environment({"GATEWAY_APPROVAL_TOKEN": TOKEN}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=(self.folder / "gate.log").open("ab"),
                start_new_session=True,
            )
            try:
                with trio.move_on_after(self.random.uniform(5, 25)):
                    async with trio.open_nursery() as nursery:
                        await self.person(process, nursery)
            finally:
                self.counts["gate: killed"] += 1
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()

    async def person(self, process: trio.Process, nursery: trio.Nursery) -> None:
        assert process.stdout is not None
        buffer = b""
        async for data in process.stdout:
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                nursery.start_soon(self.decide, process, json.loads(line)["approval_id"])

    async def decide(self, process: trio.Process, approval_id: str) -> None:
        assert process.stdin is not None
        await trio.sleep(self.random.choice((0, 0.1, 0.5, 2, 4)))
        choice = self.random.choices(("a", "a <=1", "a <=0", "d", ""), (6, 2, 1, 3, 1))[0]
        self.counts[f"person: {choice or 'overlooks it'}"] += 1
        if choice:
            verb, _, bound = choice.partition(" ")
            if verb == "a":
                self.approved.add(approval_id)
            async with self.typing:
                with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await process.stdin.send_all(f"{verb} {approval_id} {bound} a note\n".encode())

    # -- agents and operators

    async def agent(self, number: int) -> None:
        token = f"01ARZ3NDEKTSV4RRFFQ69G5FA{'ABCD'[number % 4]}"
        while True:
            try:
                async with httpx.AsyncClient(timeout=90, trust_env=False) as client:
                    await self.session(client, token)
            except (httpx.HTTPError, KeyError, ValueError):
                self.counts["agent: connection lost"] += 1
                await trio.sleep(0.2)

    async def session(self, client: httpx.AsyncClient, token: str) -> None:
        headers = {"accept": "application/json, text/event-stream", "x-gateway-token-id": token}

        async def post(method: str, params: dict[str, Any]) -> httpx.Response:
            message = {"jsonrpc": "2.0", "id": self.random.getrandbits(40), "method": method, "params": params}
            return await client.post(f"{self.url}/mcp", json=message, headers=headers)

        async def call(tool: str, **arguments: str) -> dict[str, Any]:
            answer = await post("tools/call", {"name": tool, "arguments": arguments})
            found: dict[str, Any] = json.loads(answer.json()["result"]["content"][0]["text"])
            return found

        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "random", "version": "1"}}
        headers["mcp-session-id"] = (await post("initialize", hello)).headers["mcp-session-id"]
        for _ in range(self.random.randrange(1, 20)):
            sql = self.choose()
            with trio.move_on_after(self.random.choice((0.05, 1, math.inf, math.inf, math.inf))) as patience:
                found = await call("query", sql=sql, intent="a random write")
            if patience.cancelled_caught:
                self.counts["agent: hung up"] += 1
                return
            self.note(found)
            if "approval_id" in found and self.random.random() < 0.5:
                await trio.sleep(self.random.uniform(0, 2))
                status = await call("check_approval", approval_id=found["approval_id"])
                self.counts[f"status {status.get('status', status.get('error'))}"] += 1

    def choose(self) -> str:
        if self.random.random() < 0.1:
            self.texts[self.random.randrange(TEXTS)] = self.text(self.number)
            self.number += 1
        return self.random.choice(self.texts)

    def note(self, found: dict[str, Any]) -> None:
        error = found.get("error")
        what = error.get("sqlstate") if isinstance(error, dict) else error
        self.counts[f"call {what or found.get('status') or found.get('policy_rule') or 'executed'}"] += 1

    async def operator(self) -> None:
        async with httpx.AsyncClient(timeout=10, trust_env=False, headers={"authorization": f"Bearer {OPERATORS}"}) as client:
            while True:
                await trio.sleep(self.random.uniform(1, 6))
                name = self.random.choice(list(POLICIES))
                (self.folder / "policy.yaml").write_text(POLICIES[name], encoding="utf-8")
                try:
                    await client.post(f"{self.url}/admin/policy", content=POLICIES[name].encode())
                    self.counts[f"policy: {name}"] += 1
                except httpx.HTTPError:
                    self.counts["policy: nobody there"] += 1

    async def run(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.engine)
                nursery.start_soon(self.gate)
                nursery.start_soon(self.operator)
                for number in range(AGENTS):
                    nursery.start_soon(self.agent, number)


def proof(run: Run, rows: Counter[str]) -> dict[str, int]:
    """Holds the database against the gate's file and the audit. Raises AssertionError."""
    with sqlite3.connect(run.folder / "requests.db") as file:
        columns = "approval_id, json_extract(CAST(ask AS TEXT), '$.sql'), state, claimed_by"
        requests = file.execute(f"SELECT {columns} FROM requests").fetchall()
    file.close()
    claimed = Counter(sql for _, sql, _, claim in requests if claim is not None)
    claims = [claim for *_, claim in requests if claim is not None]
    assert len(claims) == len(set(claims)), "one query claimed two approvals"
    for approval_id, _, state, _ in requests:
        assert state != "approved" or approval_id in run.approved, f"{approval_id} was approved by nobody"
    with sqlite3.connect(run.folder / "audit.db") as file:
        told = file.execute(
            "SELECT a.query_id, json_extract(a.payload, '$.sql_raw'), d.payload, (SELECT c.event_type FROM audit_events AS c "
            "WHERE c.query_id = a.query_id AND c.event_type IN ('EXECUTED', 'FAILED')) FROM audit_events AS a "
            "JOIN audit_events AS d ON d.query_id = a.query_id AND d.event_type = 'DECIDED' WHERE a.event_type = 'ATTEMPTED'"
        ).fetchall()
    file.close()
    allowed = [(query_id, sql, closing) for query_id, sql, decided, closing in told if is_write(sql) and '"ALLOW"' in decided]
    executed = Counter(sql for _, sql, closing in allowed if closing == "EXECUTED")
    unclosed = Counter(sql for _, sql, closing in allowed if closing is None)
    for query_id, sql, _ in allowed:
        assert query_id in claims, f"{sql} was let through without an approval"
    for sql, count in rows.items():
        assert count <= claimed[sql], f"{sql}: {count} rows and {claimed[sql]} approvals"
        assert executed[sql] <= count <= executed[sql] + unclosed[sql], f"{sql}: {count} rows, {executed[sql]} EXECUTED"
    for sql, count in executed.items():
        assert rows[sql] >= count, f"{sql}: EXECUTED {count} times and {rows[sql]} rows"
    return {
        "requests": len(requests),
        "approvals given": sum(state == "approved" for _, _, state, _ in requests),
        "approvals claimed": len(claims),
        "writes that ran": sum(rows.values()),
        "audited as EXECUTED": sum(executed.values()),
        "outcome unrecorded, gatewayd killed": sum(unclosed.values()),
    }


def is_write(sql: str) -> bool:
    return sql.startswith("INSERT INTO ledger")


@contextmanager
def database(folder: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(folder, version=16, settings={"fsync": "off", "max_connections": "100"})
    server.initialise()
    server.start()
    try:
        server.psql("CREATE TABLE ledger (number integer)")
        yield server
    finally:
        server.stop("immediate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with (
        tempfile.TemporaryDirectory(prefix="gw", dir=places.ROOT) as scratch,
        reserved_port() as port,
        reserved_port() as gate_port,
    ):
        folder = Path(scratch)
        folder.chmod(0o755)
        with database(folder / "pg") as server:
            run = Run(folder, server.url(user=SUPERUSER, database=SUPERUSER), (port, gate_port), options.seed)
            trio.run(run.run, options.minutes * 60)
            rows = Counter({run.text(int(line.split("|")[0])): int(line.split("|")[1]) for line in _grouped(server).splitlines()})
        print(f"seed {options.seed}, {options.minutes:g} minutes")
        for what, count in {**proof(run, rows), **dict(sorted(run.counts.items()))}.items():
            print(f"{count:8} {what}")
        print("held: no write ran without its approval, none twice, every approval was spent at most once")


def _grouped(server: EmbeddedPostgres) -> str:
    return server.psql("SELECT number, count(*) FROM ledger GROUP BY number")


if __name__ == "__main__":
    main()
