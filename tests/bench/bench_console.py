"""What a page of the console costs: python -m tests.bench.bench_console [--only audit connect]

Every page of `tests/console/pages.py`, as its person gets it: as a shop has it, and again with ten thousand rows in every list
and sixty statements of a megabyte. Milliseconds are from the request to the last byte on one connection of this machine, the
median and the worst of RUNS; CPU is the control plane's own, PostgreSQL not among it: on a busy machine it says more.

An existing store: CONTROL_DATABASE_URL=… python -m tests.bench.bench_console --state FOLDER. A control plane is started over it,
and every kind of page that links lead to from the first one is fetched as its first owner.
"""

import argparse
import os
import re
import statistics
import time
from collections.abc import Iterable
from functools import partial
from html import unescape
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx
import msgspec

from gatewayd.control.console import Console
from gatewayd.control.people import sessions
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from tests.conftest import reserved_port
from tests.console.alone import postgres_alone
from tests.console.pages import PAGES
from tests.console.running import running, served, until
from tests.console.volume import fill
from tests.console.world import World

RUNS: Final = 5
SHOP, FULL, FOUND = "as a shop has it", "with ten thousand rows in every list", "of the store that is there"
MOST_MS: Final = {SHOP: 100, FULL: 300, FOUND: 300}
MOST_BYTES: Final = 1_000_000
PAGES_MOST: Final = 200
OWNER: Final = Statement("SELECT person_id, org_id FROM memberships WHERE role = 'owner' ORDER BY since_ms, person_id LIMIT 1")
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")


class Wanted(msgspec.Struct, frozen=True):
    """A page, and the value of the cookie that it is asked for with; None: nobody's."""

    name: str
    path: str
    cookie: str | None


class _Owner(msgspec.Struct):
    person_id: str
    org_id: str


class Client:
    def __init__(self, world: World) -> None:
        self._world: Final = world
        self._http: Final = httpx.Client(base_url=world.url, trust_env=False, timeout=60)

    def get(self, path: str, cookie: str | None) -> httpx.Response:
        headers = {"cookie": f"{self._world.settings.cookie(sessions.COOKIE)}={cookie}"} if cookie else {}
        return self._http.get(path, headers=headers)

    def measured(self, page: Wanted) -> tuple[list[float], float, int]:
        """Milliseconds of each run, milliseconds of CPU a run, bytes."""
        self.get(page.path, page.cookie)
        took, cpu = [], self._cpu_s()
        for _ in range(RUNS):
            began = time.perf_counter()
            answer = self.get(page.path, page.cookie)
            took.append((time.perf_counter() - began) * 1000)
        assert answer.status_code < 500, page.path
        return took, (self._cpu_s() - cpu) * 1000 / RUNS, len(answer.content)

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._world.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK_S


def told(world: World, pages: Iterable[Wanted], what: str) -> int:
    """A line a page, the slowest first. How many take longer or are larger than they should."""
    client = Client(world)
    found = [(page, *client.measured(page)) for page in pages]
    found.sort(key=lambda each: -statistics.median(each[1]))
    print(f"\n{what}: median ms, worst ms, CPU ms, KiB")
    over = 0
    for page, took, cpu, size in found:
        median = statistics.median(took)
        is_over = median > MOST_MS[what] or size > MOST_BYTES
        over += is_over
        mark = "  OVER" if is_over else ""
        print(f"{median:7.0f} {max(took):7.0f} {cpu:7.0f} {size / 1024:7.0f}  {page.name}{mark}", flush=True)
    print(f"{over} of {len(found)} above {MOST_MS[what]} ms or {MOST_BYTES:,} bytes")
    return over


def of_world(world: World, only: list[str]) -> list[Wanted]:
    return [
        Wanted(case.name, world.path(case.path), world.cookies[case.who][1] if case.who else None)
        for case in PAGES
        if not only or case.name in only
    ]


def of_links(world: World, only: list[str]) -> list[Wanted]:
    """One page of each kind: links that differ in an id, or in what they ask for, are of one kind."""
    cookie, client = world.do(partial(_signed_in, world)), Client(world)
    found: dict[str, str] = {}
    todo = ["/"]
    while todo and len(found) < PAGES_MOST:
        path = todo.pop(0)
        parts = urlsplit(path)
        asked = ",".join(sorted(name for name, value in parse_qsl(parts.query) if value))
        kind = re.sub("[0-9A-Z]{26}", "…", parts.path) + (f" by {asked}" if asked else "")
        if kind in found or parts.path.endswith((".csv", "/export", "/statement", "/proof")):
            continue
        found[kind] = path
        answer = client.get(path, cookie)
        for link in re.findall(r'<a\b[^>]* href="([^"]*)"', answer.text) if answer.status_code == 200 else ():
            target = urljoin(world.url + path, unescape(link)).partition("#")[0]
            if target.startswith(world.url):
                todo.append(target.removeprefix(world.url) or "/")
    return [Wanted(kind, path, cookie) for kind, path in found.items() if not only or any(word in kind for word in only)]


async def _signed_in(world: World, console: Console) -> str:
    owner = await console.store.row(_Owner, OWNER)
    assert owner is not None, "the store has no owner"
    cookie, session, now_ms = sessions.new_cookie(console.entropy(32)), console.new_id(), console.now_ms()
    visitor = sessions.Visitor("127.0.0.1", "bench_console")

    async def work(tx: Transaction) -> None:
        await sessions.begin(tx, cookie, session, owner.person_id, owner.org_id, now_ms, "bench", visitor)

    await console.store.transaction(work)
    return cookie


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--state", type=Path, help="CONTROL_STATE_DIR of the store that CONTROL_DATABASE_URL names")
    options = parser.parse_args()
    store = os.environ.get("CONTROL_DATABASE_URL")
    if store is not None:
        assert options.state is not None, "--state: the folder with the secrets of this store"
        with reserved_port() as port, served(None, store, port, options.state) as (world, lines):
            until(lines, "serves http")
            told(world, of_links(world, options.only), FOUND)
        return
    with postgres_alone() as (postgres, folder), reserved_port() as port, running(postgres, port, folder) as world:
        told(world, of_world(world, options.only), SHOP)
        fill(world)
        told(world, of_world(world, options.only), FULL)


if __name__ == "__main__":
    main()
