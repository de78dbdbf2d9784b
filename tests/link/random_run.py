"""The long run: `python -m tests.link.random_run --minutes 60`: a linked gateway under random faults, with writes running.

Faults: the network cut, 429, 5xx, pages of a portal, half an answer, a clock a day off, the control plane's listener gone, new
bundles, `gatewayd` killed with SIGKILL or stopped, and once its audit file restored from a backup. In the end it is proved:
every write that ran was allowed by the bundle that its own audit row names, no write is in the database without such a row, and
the control plane's side holds every event of the file once, in order, each batch having come under a root that verified.
"""

import argparse
import contextlib
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import httpx
import msgspec

from gatewayd.link.formats.rows import PushedRow
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.conftest import reserved_port
from tests.link.link_rig import Linked, linked
from tests.link.stand_in import Listener, Spoil, StandIn

SCHEMA = "CREATE TABLE written (n integer PRIMARY KEY); CREATE TABLE orders (id integer)"
INSERT = "INSERT INTO written VALUES "
LEVELS = ("read_write", "read")
DAY_MS = 24 * 3600 * 1000
SETTLE_S = 420.0


class Run:
    def __init__(self, server: EmbeddedPostgres, dsn: str, folder: Path, port: int, seed: int) -> None:
        self.server, self.dsn, self.folder, self.port = server, dsn, folder, port
        self.dice = Random(seed)
        self.control = StandIn()
        self.levels: dict[int, str] = {}
        self.counts: Counter[str] = Counter()
        self.number = 0
        self.backup: Path | None = None
        self.is_restored = False
        self.before_restore: list[dict[str, Any]] = []

    def publish(self) -> None:
        level = LEVELS[len(self.levels) % 2]
        policy = f"databases:\n  - name: shop\n    table_access: {{default: read, tables: {{written: {level}}}}}\n"
        self.levels[self.control.publish(policy).version] = level
        self.counts["bundles published"] += 1

    # -- writes

    def write(self, gateway: Linked, over: threading.Event) -> None:
        while not over.is_set():
            self.number += 1
            try:
                answer = gateway.query(f"{INSERT}({self.number})", "a write of the random run")
            except (httpx.HTTPError, AssertionError, KeyError, ValueError):
                self.counts["writes without an answer"] += 1
                gateway.session = {}
                over.wait(0.2)
                continue
            self.counts["writes that ran" if answer.get("allowed") and "error" not in answer else "writes refused"] += 1
            over.wait(0.02)

    # -- faults

    def faults(self, listener: Listener, gateway: Linked) -> list[Callable[[], None]]:
        def spoiled(name: str, spoil: Spoil) -> Callable[[], None]:
            def fault() -> None:
                self.counts[name] += 1
                listener.spoil = spoil
                time.sleep(self.dice.uniform(0.5, 3))
                listener.spoil = lambda _path, good: good

            return fault

        def cut() -> None:
            self.counts["network cut"] += 1
            listener.lose_requests = True
            time.sleep(self.dice.uniform(0.5, 4))
            listener.lose_requests = False

        def clock() -> None:
            self.counts["clock stepped"] += 1
            with self.control.changed:
                self.control.clock_off_ms = self.dice.choice((0, DAY_MS, -DAY_MS, 3_600_000))

        return [
            cut,
            clock,
            self.publish,
            self.publish,
            self.publish,
            spoiled("429", lambda _path, _good: (429, b"")),
            spoiled("5xx", lambda _path, _good: (self.dice.choice((500, 502, 503)), b"bad gateway")),
            spoiled("portal pages", lambda _path, _good: (200, b"<html>log in to the network</html>")),
            spoiled("half answers", lambda _path, good: (good[0], good[1][: len(good[1]) // 2])),
            spoiled("answers lost", lambda _path, _good: None),
        ]

    # -- one life of the gateway

    def live(self, control_port: int, ends: float) -> None:
        with Listener(self.control, control_port) as listener, linked(listener, self.dsn, self.folder, self.port) as gateway:
            over = threading.Event()
            writer = threading.Thread(target=self.write, args=(gateway, over))
            writer.start()
            try:
                for _ in range(self.dice.randint(3, 8)):
                    if time.monotonic() > ends:
                        break
                    self.dice.choice(self.faults(listener, gateway))()
                    time.sleep(self.dice.uniform(0, 2))
                if self.dice.random() < 0.7:
                    self.counts["gatewayd killed"] += 1
                    gateway.running.process.kill()
                    gateway.running.ended()
                    stopped = False
                else:
                    over.set()
                    writer.join()
                    self.counts["gatewayd stopped"] += 1
                    gateway.running.stop()
                    stopped = True
            finally:
                over.set()
                writer.join()
        self.counts["control plane's listener gone"] += 1
        if stopped and self.backup is None:
            self.backup = self.folder / "backup.db"
            shutil.copy(self.folder / "audit.db", self.backup)

    def restore(self) -> None:
        """The audit file as it was; the state folder beside it stays, as after a restore of one volume."""
        assert self.backup is not None
        with sqlite3.connect(self.folder / "audit.db") as file:
            found = file.execute("SELECT query_id, event_type, payload FROM audit_events").fetchall()
        file.close()
        names = ("query_id", "event_type", "payload")
        self.before_restore = [dict(zip(names, (*row[:2], msgspec.json.decode(row[2])), strict=True)) for row in found]
        for name in ("audit.db", "audit.db-wal", "audit.db-shm"):
            with contextlib.suppress(FileNotFoundError):
                (self.folder / name).unlink()
        shutil.copy(self.backup, self.folder / "audit.db")
        self.is_restored = True
        self.counts["audit file restored from a backup"] += 1

    def run(self, seconds: float) -> None:
        began = time.monotonic()
        with reserved_port() as control_port:
            self.publish()
            while time.monotonic() - began < seconds:
                self.live(control_port, began + seconds)
                if self.backup is not None and not self.is_restored and time.monotonic() - began > seconds / 2:
                    self.restore()
            self.control.clock_off_ms = 0
            with Listener(self.control, control_port) as listener, linked(listener, self.dsn, self.folder, self.port) as gateway:
                self.settle(gateway)
                self.prove(gateway)
                gateway.running.stop()

    def settle(self, gateway: Linked) -> None:
        local = {row["id"] for row in gateway.rows()}
        self.control.wait_for_rows(lambda held: local <= {str(row.row["id"]) for row in held}, SETTLE_S)

    def prove(self, gateway: Linked) -> None:
        held = self.control.held()
        for tree in (tree for one in self.control.gateways.values() for tree in one.trees.values()):
            assert sorted(tree.rows) == list(range(tree.first_seq, tree.first_seq + len(tree.leaves))), "a gap in an instance"
        by_id = {str(row.row["id"]): decoded(row) for row in held}
        assert len(by_id) == len(held), "an event is held twice"
        local = gateway.rows()
        for row in local:
            assert all(by_id[row["id"]][key] == row[key] for key in ("query_id", "event_type", "payload", "ts")), "another event"
        self.counts["events held"] = len(held)
        self.counts["instances"] = sum(len(one.trees) for one in self.control.gateways.values())
        allowed = self._allowed([*by_id.values(), *local, *self.before_restore])
        ran = {int(line) for line in self.server.psql("SELECT n FROM written", "shop").split()}
        self.counts["rows in the database"] = len(ran)
        assert ran <= allowed, f"writes ran without an allowing row, such as {sorted(ran - allowed)[:5]}"

    def _allowed(self, rows: Iterable[dict[str, Any]]) -> set[int]:
        """The numbers whose write some row allows, each held to the policy of the bundle that it names."""
        every = list(rows)
        statements = {row["query_id"]: row["payload"]["sql_raw"] for row in every if row["event_type"] == "ATTEMPTED"}
        found: set[int] = set()
        for row in every:
            sql = statements.get(row["query_id"], "")
            if row["event_type"] == "DECIDED" and row["payload"]["decision"] == "ALLOW" and sql.startswith(INSERT):
                bundle = row["payload"]["bundle"]
                assert self.levels[bundle] == "read_write", f"bundle {bundle} does not allow {sql}"
                self.counts["allowing rows checked"] += 1
                found.add(int(sql.removeprefix(INSERT).strip("()")))
        return found


def decoded(row: PushedRow) -> dict[str, Any]:
    return {**row.row, "payload": msgspec.json.decode(str(row.row["payload"]))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, reserved_port() as port:
        os.chmod(place, 0o755)
        server = EmbeddedPostgres(Path(place) / "pg", version=16, settings={"fsync": "off"})
        server.initialise()
        server.start()
        try:
            server.psql("CREATE DATABASE shop")
            server.psql(SCHEMA, "shop")
            folder = Path(place) / "gateway"
            folder.mkdir()
            run = Run(server, server.url(database="shop"), folder, port, given.seed)
            run.run(given.minutes * 60)
        finally:
            server.stop("immediate")
    for what, count in sorted(run.counts.items()):
        print(f"{count:9} {what}", flush=True)
    print(f"nothing ran that was not allowed, nothing is missing, doubled or changed; seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
