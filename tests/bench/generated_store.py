"""Two weeks of audit in a control plane's store: python -m tests.bench.generated_store FOLDER --events 10000000

People, projects, tokens and gateways come through the control plane's own doors, the events by COPY (`generated_calls.py`), with
the leaves, heads, signed notes, rollups and texts that ingest would have left. The indexes of all days but the last are made
after their rows. FOLDER/store.json says how to sign in; `gatewayd control serve` with CONTROL_STATE_DIR=FOLDER/state serves it.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final

import msgspec
import trio

from gatewayd.audit.heads import sign_head
from gatewayd.audit.tree import CompactRange
from gatewayd.control.audit import rollup, statement_days, tiles
from gatewayd.control.audit.batch import DETAIL_COLUMNS, EVENT_COLUMNS
from gatewayd.control.audit.held import ADD_HEAD
from gatewayd.control.audit.statement_texts import ADD as ADD_TEXTS
from gatewayd.control.audit.witness import KEEP
from gatewayd.control.database import DATABASE, FOLDER
from gatewayd.control.store import days
from gatewayd.control.store.statement import details_table, events_table
from gatewayd.control.store.store import Store, Transaction
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.bench.generated_calls import AGENTS, Calls, Counts, Project
from tests.cli.gatewayd_process import serving
from tests.conftest import reserved_port
from tests.control.gateway_of_tests import TestGateway
from tests.control.plane_process import OWNER, PASSWORD, PlaneProcess

DAYS: Final = 14
PROJECTS: Final = (  # name, share of the calls, gateways, databases
    ("Shop", 60, 3, ("shop", "books")),
    ("Billing", 25, 2, ("billing",)),
    ("Support", 10, 1, ("tickets",)),
    ("Analytics", 5, 1, ("warehouse",)),
)
ROWS_A_CALL: Final = 2.8
_BY_HOUR: Final = (2, 2, 2, 2, 2, 3, 4, 6, 9, 10, 10, 9, 8, 10, 10, 9, 8, 7, 5, 4, 3, 3, 2, 2)
_WEEKEND: Final = 0.4
_CALLS_AT_ONCE: Final = 1200
_HOUR_MS: Final = 3_600_000
_BULK: Final = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0",
    "max_wal_size": "8GB", "maintenance_work_mem": "512MB", "shared_buffers": "512MB", "autovacuum": "off",
}  # fmt: skip


class MadeProject(msgspec.Struct):
    id: str
    name: str
    tokens: list[str]
    """Ids, one for each of AGENTS."""
    gateways: list[str]


class MadeStore(msgspec.Struct):
    """What FOLDER/store.json holds."""

    events: int
    email: str
    password: str
    api_key: str
    projects: list[MadeProject]


class _File:
    """One gateway's audit file as the store holds it."""

    def __init__(self, project: Project, gateway: TestGateway, share: float, seed: int) -> None:
        self.gateway_id, self.share = gateway.id, share
        self.instance = gateway.rows.instance
        self.identity: SigningKey = gateway.identity
        self.calls = Calls(project, gateway.id, self.instance, seed)
        self.tree = CompactRange()
        self.edge: dict[int, bytes] = {}

    @property
    def key(self) -> tiles.Instance:
        return self.calls.project.project_id, self.gateway_id, self.instance

    async def store(self, tx: Transaction, day: date, events: bytes, details: bytes, leaves: list[bytes]) -> None:
        await tx.copy_in(events_table(day), EVENT_COLUMNS, events)
        await tx.copy_in(details_table(day), DETAIL_COLUMNS, details)
        await tiles.write(tx, self.key, tiles.added(self.tree.size, self.edge, leaves))

    def stored(self, leaves: list[bytes]) -> None:
        for at, new in tiles.added(self.tree.size, self.edge, leaves).items():
            self.edge[at] = self.edge.get(at, b"") + new
        self.tree.extend(leaves)
        self.edge = {at: self.edge[at] for at in tiles.edge(self.tree.size)}


@contextmanager
def served(state: Path, port: int, more: dict[str, str] | None = None) -> Iterator[PlaneProcess]:
    """The control plane on its state folder, with the PostgreSQL that it starts there itself."""
    environment = {
        "GATEWAY_SELF_HOST": "1", "CONTROL_STATE_DIR": str(state), "CONTROL_PORT": str(port), "CONTROL_SHUTDOWN_GRACE_S": "2",
    }  # fmt: skip
    with serving(["control", "serve"], environment | (more or {})) as running:
        running.wait_for("gatewayd control serves")
        plane = PlaneProcess(running, f"http://localhost:{port}")
        try:
            yield plane
        finally:
            plane.close()


def found_organisation(state: Path) -> tuple[MadeStore, list[list[TestGateway]]]:
    """An owner, projects, tokens and enrolled gateways, as people and gateways make them."""
    with reserved_port() as port, served(state, port) as plane:
        plane.found(plane.running.wait_for("/welcome/").strip())
        made = MadeStore(0, OWNER, PASSWORD, plane.key, [])
        fleets: list[list[TestGateway]] = []
        for name, _, gateways, databases in PROJECTS:
            project = str(plane.api("POST", "/projects", {"name": name, "databases": list(databases)})["id"])
            tokens = [plane.new_token(project, name=agent or "unnamed")["id"] for agent, *_ in AGENTS]
            fleet = [TestGateway(plane.url, 1000 * len(fleets) + number) for number in range(gateways)]
            for number, gateway in enumerate(fleet):
                token = plane.api("POST", f"/projects/{project}/gateways/tokens", {"name": f"edge-{number + 1}"})["token"]
                answer = trio.run(gateway.enrol, token)
                assert answer.status_code == 200, answer.text
                trio.run(partial(gateway.poll, state="enforcing"))
            made.projects.append(MadeProject(project, name, tokens, [each.id for each in fleet]))
            fleets.append(fleet)
        plane.running.stop()
    return made, fleets


async def fill(server: EmbeddedPostgres, made: MadeStore, fleets: list[list[TestGateway]], events: int, now_ms: int) -> int:
    """How many events there are now."""
    store = Store(server.url(database=DATABASE), size=2)
    projects, files = [], []
    for place, (one, fleet, (_, share, _, databases)) in enumerate(zip(made.projects, fleets, PROJECTS, strict=True)):
        project = Project(one.id, fleet[0].rows.tenant, databases, one.tokens, seed=place)
        projects.append((project, Counts()))
        for number, gateway in enumerate(fleet):
            files.append(_File(project, gateway, share / len(fleet), 100 * place + number))
    counts = {id(project): counted for project, counted in projects}
    dice = random.Random(1)
    for hour_ms, calls in _hours(now_ms, events / ROWS_A_CALL):
        day = days.day_of(hour_ms)
        if hour_ms % (24 * _HOUR_MS) == 0:
            await days.make_days(store, hour_ms)
            is_last = day == days.day_of(now_ms)
            if not is_last:
                server.psql("; ".join(f"DROP INDEX {events_table(day)}_{name}" for name in ("ts", "query", "keys")), DATABASE)
        for file in files:
            number = round(calls * file.share / 100 * dice.uniform(0.8, 1.2))
            until = min(hour_ms + _HOUR_MS, now_ms - 5000)
            times = sorted(dice.randrange(hour_ms, until) for _ in range(number))
            await _add(store, file, day, times, counts[id(file.calls.project)], hour_ms)
        if hour_ms % (24 * _HOUR_MS) == 23 * _HOUR_MS or hour_ms + _HOUR_MS >= now_ms:
            server.psql(days.EVENTS.format(events=events_table(day)), DATABASE)
            server.psql(f"VACUUM ANALYZE {events_table(day)}; VACUUM ANALYZE {details_table(day)}", DATABASE)
            print(f"{day}: {sum(file.tree.size for file in files)} events", flush=True)
    for file in files:
        head = (1, file.tree.size, file.tree.root(), file.tree.encode(), now_ms)
        await store.run(ADD_HEAD, *file.key, *head)
    for project, counted in projects:
        await _add_counts(store, project, counted, days.day_number(days.day_of(now_ms)))
    server.psql("VACUUM ANALYZE", DATABASE)
    store.close()
    return sum(file.tree.size for file in files)


def _hours(now_ms: int, calls: float) -> Iterator[tuple[int, float]]:
    """Each hour of the days, with its calls: a weekend has fewer, and a night."""
    first = days.day_of(now_ms) - timedelta(days=DAYS - 1)
    start = days.day_number(first) * 24 * _HOUR_MS
    hours = range(start, now_ms - 60_000, _HOUR_MS)
    weights = []
    for hour_ms in hours:
        weight = _BY_HOUR[hour_ms // _HOUR_MS % 24] * (_WEEKEND if days.day_of(hour_ms).weekday() >= 5 else 1.0)
        weights.append(weight * min(1.0, (now_ms - hour_ms) / _HOUR_MS))
    for hour_ms, weight in zip(hours, weights, strict=True):
        yield hour_ms, calls * weight / sum(weights)


async def _add(store: Store, file: _File, day: date, times: Sequence[int], counts: Counts, hour_ms: int) -> None:
    for at in range(0, len(times), _CALLS_AT_ONCE):
        file.calls.add(times[at : at + _CALLS_AT_ONCE], counts)
        events, details, leaves = file.calls.take()

        async def work(tx: Transaction, events: bytes = events, details: bytes = details, leaves: list[bytes] = leaves) -> None:
            await file.store(tx, day, events, details, leaves)

        await store.transaction(work)
        file.stored(leaves)
    if times:
        note = sign_head(file.instance, file.tree.size, file.tree.root(), file.identity)
        await store.run(KEEP, *file.key, file.tree.size, note, hour_ms + _HOUR_MS)


async def _add_counts(store: Store, project: Project, counts: Counts, today: int) -> None:
    by_day: dict[int, rollup.Rollup] = {}
    for key, sums in counts.rollup().items():
        by_day.setdefault(key[0], {})[key] = sums
    for found in by_day.values():
        await store.transaction(partial(rollup.add, project_id=project.project_id, rollup=found))
    for day, calls in counts.calls().items():
        if day > today - statement_days.KEPT_DAYS:
            each = list(chain.from_iterable(repeat(call, count) for call, count in calls))
            await store.transaction(partial(statement_days.add, project_id=project.project_id, day=day, calls=each))
    texts = [(each.fingerprint, each.text) for each in project.statements]
    fingerprints, found_texts = (list(each) for each in zip(*texts, strict=True))
    await store.run(ADD_TEXTS, project.project_id, fingerprints, found_texts, [0] * len(texts))


def make(folder: Path, events: int) -> MadeStore:
    folder.mkdir(parents=True)
    folder.chmod(0o711)
    state = folder / "state"
    made, fleets = found_organisation(state)
    server = EmbeddedPostgres(state / FOLDER, settings=_BULK)
    server.start()
    try:
        made.events = trio.run(fill, server, made, fleets, events, time.time_ns() // 1_000_000)
    finally:
        server.stop()
    (folder / "store.json").write_bytes(msgspec.json.format(msgspec.json.encode(made)))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    options = parser.parse_args()
    began = time.monotonic()
    made = make(options.folder, options.events)
    print(f"{made.events} events in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
