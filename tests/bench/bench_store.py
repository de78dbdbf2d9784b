"""The control plane over a store with many events: python -m tests.bench.bench_store [--events 300000] [--folder FOLDER]

Makes the store (`generated_store.py`), or takes the one in FOLDER, and prints a table: the audit's search by each filter, every
page, ingest over the link, start and memory. Times are those of a client on the same machine, over one connection.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import msgspec
import trio

from gatewayd.control.database import FOLDER
from gatewayd.control.store.days import day_of
from gatewayd.control.web.table import ROUTES
from gatewayd.link.formats.requests import PATHS, SentRequest
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.bench.bench_proxy import rss_mib
from tests.bench.generated_store import MadeStore, make, served
from tests.conftest import reserved_port
from tests.control.gateway_of_tests import TestGateway, now_ms
from tests.control.plane_process import PlaneProcess

RUNS: Final = 11
STARTS: Final = 5
GATEWAYS: Final = 4
BATCH_ROWS: Final = 500
DAY_MS: Final = 86_400_000
EXPORT_PAGES: Final = 5


class Figure(msgspec.Struct, frozen=True):
    """Milliseconds: the first request, the median and the most of those after it; the bytes of the last answer."""

    first_ms: float
    median_ms: float
    most_ms: float
    bytes: int


def timed(ask: Callable[[], httpx.Response]) -> Figure:
    took: list[float] = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        answer = ask()
        took.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, f"{answer.request.url}: {answer.text[:300]}"
    return Figure(took[0], statistics.median(took[1:]), max(took[1:]), len(answer.content))


class Measured:
    """The table of one run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)
        print(line, flush=True)

    def head(self, what: str) -> None:
        self.say(f"\n| {what} | first ms | median ms | most ms | bytes |\n|---|---:|---:|---:|---:|")

    def row(self, what: str, figure: Figure) -> None:
        self.say(f"| {what} | {figure.first_ms:.0f} | {figure.median_ms:.0f} | {figure.most_ms:.0f} | {figure.bytes} |")


def searches(client: httpx.Client, project: str, token: str) -> Iterator[tuple[str, dict[str, str]]]:
    """What is searched for; frequent and rare values, and such as nothing has."""
    base = f"/api/v1/projects/{project}/audit"
    newest = client.get(base).json()["queries"]
    rare = client.get(base, params={"agent": "migration-helper"}).json()["queries"][0]
    old = f"{day_of(now_ms() - 10 * DAY_MS)}T10:00"
    person = client.get(f"/api/v1/projects/{project}/tokens").json()["tokens"][0]["person"]
    yield "nothing asked for", {}
    yield "the second page", {"cursor": client.get(base).json()["next"]}
    yield "an hour ten days ago", {"since": old, "until": old.replace("T10", "T11")}
    yield "a frequent agent", {"agent": "claude-code"}
    yield "a rare agent", {"agent": "migration-helper"}
    yield "an agent that never called", {"agent": "nobody"}
    yield "a person (nine tokens)", {"person": person}
    yield "a token", {"token": token}
    yield "a database", {"database": newest[0]["database"]}
    yield "decision DENY", {"decision": "DENY"}
    yield "a rule", {"rule": "table_access"}
    yield "a table", {"table": "public.orders"}
    yield "a table that nobody read", {"table": "public.nothing"}
    yield "a frequent statement", {"fingerprint": newest[0]["fingerprint"]}
    yield "a rare agent's statement", {"fingerprint": rare["fingerprint"], "agent": "migration-helper"}
    yield "a text of many statements", {"text": "from orders"}
    yield "a text of few statements", {"text": "delete from payroll"}
    yield "a text of no statement", {"text": "drop schema"}
    yield "agent, table and decision", {"agent": "cursor", "table": "public.payroll", "decision": "DENY"}
    yield "rare agent and rare table", {"agent": "migration-helper", "table": "public.payroll"}


def audit(measured: Measured, client: httpx.Client, project: str, token: str) -> None:
    measured.head("search by")
    for what, filters in searches(client, project, token):
        measured.row(what, timed(partial(client.get, f"/api/v1/projects/{project}/audit", params=filters)))


def pages(measured: Measured, browser: httpx.Client, project: str, gateway: str, query: str) -> None:
    """Every page of a person whose path this knows how to fill."""
    values = {"project": project, "gateway": gateway, "query": query}
    measured.head("page")
    for route in ROUTES:
        path = route.path
        for name, value in values.items():
            path = path.replace(f"<{name}>", value)
        if route.method != "GET" or route.door != "person" or "<" in path or path in ("/again", "/welcome"):
            continue
        measured.row(f"`{route.path}`", timed(partial(browser.get, path)))


def export(measured: Measured, client: httpx.Client, plane: PlaneProcess, project: str) -> None:
    for kind in ("csv", "lines"):
        address: str | None = f"/api/v1/projects/{project}/audit/export?format={kind}"
        began, size, queries = time.perf_counter(), 0, 0
        for _ in range(EXPORT_PAGES):
            assert address is not None
            answer = client.get(address)
            assert answer.status_code == 200, answer.text
            size += len(answer.content)
            queries += answer.content.count(b"\n")
            address = answer.links.get("next", {}).get("url")
            if address is None:
                break
        took = time.perf_counter() - began
        memory = rss_mib(plane.running.process.pid)
        measured.say(f"- export as {kind}: {queries / took:.0f} queries/s, {size / took / 1e6:.1f} MB/s; memory {memory:.0f} MiB")


def ingest(measured: Measured, plane: PlaneProcess, project: str, events: int) -> None:
    """Gateways that push signed batches made beforehand, each one after the other, all at once."""
    sent: list[list[SentRequest]] = []
    for number in range(GATEWAYS):
        gateway = TestGateway(plane.url, 5000 + number)
        token = plane.api("POST", f"/projects/{project}/gateways/tokens", {"name": f"load-{number}"})["token"]
        assert trio.run(gateway.enrol, token).status_code == 200
        while len(gateway.rows.rows) < events / GATEWAYS:
            gateway.rows.query(f"SELECT id, status FROM orders WHERE id = {len(gateway.rows.rows)}", mcp_token_id=None)
        ends = range(0, len(gateway.rows.rows) - BATCH_ROWS, BATCH_ROWS)
        sent.append([gateway.request("audit", gateway.rows.batch(at, at + BATCH_ROWS)) for at in ends])

    def push(requests: list[SentRequest]) -> None:
        with httpx.Client(base_url=plane.url, trust_env=False, timeout=60) as client:
            for each in requests:
                while (answer := client.post(PATHS["audit"], content=each.data)).status_code == 429:
                    time.sleep(0.05)
                assert answer.status_code == 200, answer.text

    began = time.perf_counter()
    with ThreadPoolExecutor(GATEWAYS) as pool:
        list(pool.map(push, sent))
    took, rows = time.perf_counter() - began, sum(map(len, sent)) * BATCH_ROWS
    measured.say(f"- ingest, {GATEWAYS} gateways, batches of {BATCH_ROWS}: {rows / took:.0f} events/s verified and stored")


def starts(measured: Measured, state: Path, port: int) -> None:
    took = []
    for _ in range(STARTS):
        began = time.monotonic()
        with served(state, port, {"CONTROL_LOG_LEVEL": "error"}) as plane:
            took.append(time.monotonic() - began)
            plane.running.stop()
    measured.say(f"- start with the database ready: median {statistics.median(took):.2f} s of {STARTS}")


@contextmanager
def signed_in(plane: PlaneProcess, made: MadeStore) -> Iterator[httpx.Client]:
    headers = {"origin": plane.url, "sec-fetch-site": "same-origin"}
    with httpx.Client(base_url=plane.url, trust_env=False, timeout=60, headers=headers) as browser:
        answer = browser.post("/sign-in", data={"email": made.email, "password": made.password})
        assert answer.status_code == 303, answer.text
        yield browser


def measure(folder: Path, ingested: int) -> Measured:
    measured = Measured()
    made = msgspec.json.decode((folder / "store.json").read_bytes(), type=MadeStore)
    project = made.projects[0]
    measured.say(f"{made.events} events, PostgreSQL 18 with its default settings, Python {sys.version.split()[0]}\n")
    server = EmbeddedPostgres(folder / "state" / FOLDER)
    server.start()
    try:
        with reserved_port() as port:
            with served(folder / "state", port) as plane:
                plane.key = made.api_key
                idle = rss_mib(plane.running.process.pid)
                headers = {"authorization": f"Bearer {made.api_key}"}
                with httpx.Client(base_url=plane.url, trust_env=False, timeout=60, headers=headers) as client:
                    audit(measured, client, project.id, project.tokens[1])
                    query = client.get(f"/api/v1/projects/{project.id}/audit").json()["queries"][0]["query_id"]
                    with signed_in(plane, made) as browser:
                        pages(measured, browser, project.id, project.gateways[0], query)
                    looked = rss_mib(plane.running.process.pid)
                    measured.say("")
                    export(measured, client, plane, project.id)
                ingest(measured, plane, made.projects[-1].id, ingested)
                memory = (idle, looked, rss_mib(plane.running.process.pid))
                measured.say("- memory at the start, after the pages, after ingest: {:.0f}, {:.0f}, {:.0f} MiB".format(*memory))
                plane.running.stop()
            starts(measured, folder / "state", port)
    finally:
        server.stop()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--ingest", type=int, default=60_000, help="events that are pushed over the link")
    parser.add_argument("--folder", type=Path, help="a store that generated_store made; it is kept, with what ingest adds")
    parser.add_argument("--name", help="keep the table as tests/bench/results/NAME.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gw", dir="/var/tmp") as scratch:
        Path(scratch).chmod(0o711)
        folder = options.folder or Path(scratch) / "store"
        if not (folder / "store.json").exists():
            make(folder, options.events)
        measured = measure(folder, options.ingest)
    if options.name:
        path = Path(__file__).parent / "results" / f"{options.name}.md"
        path.write_text("\n".join(measured.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
