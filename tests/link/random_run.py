"""The long run: `python -m tests.link.random_run --minutes 60`: a gateway linked with a real control plane, with writes running.

Faults at random: the network cut, 429, 5xx, pages of a portal, half an answer, answers lost, the gateway's clock stepped by up
to a day, new bundles, either side killed with SIGKILL or stopped, and the gateway's audit file, its state folder or both restored
from a copy. What is proved in the end stands in `prove`. Where that fails, the files stay where the last line says.
"""

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import httpx
import trio

from gatewayd.control.store.store import Store
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.cli.gatewayd_process import serving
from tests.conftest import reserved_port
from tests.control.plane_process import PlaneProcess, plane_process
from tests.link.link_rig import Serving, variables
from tests.link.random_faults import Files, Passing, SteppedClock
from tests.link.random_proof import INSERT, Held, Timeline, ids_held
from tests.link.stand_in import Door, Spoil

SCHEMA = "CREATE TABLE written (n integer PRIMARY KEY); CREATE TABLE orders (id integer)"
POLICY = "databases:\n  - name: shop\n    table_access: {{default: read, tables: {{written: {}}}}}\n"
LEVELS = ("read_write", "read")
DAY_MS = 24 * 3600 * 1000
STEPS_MS = (0, 0, DAY_MS, -DAY_MS, 3_600_000, -3_600_000, 30_000, -30_000)
SETTLE_S = 420.0
RESTORES = {"audit file": (True, False), "state folder": (False, True), "both folders": (True, True)}


class Run:
    def __init__(self, server: EmbeddedPostgres, place: Path, gateway_port: int, plane_port: int, seed: int) -> None:
        self.server, self.place, self.gateway_port, self.plane_port = server, place, gateway_port, plane_port
        self.store_url, self.shop = (server.url(database=name) for name in ("store", "shop"))
        self.dice = Random(seed)
        self.clock, self.files = SteppedClock(place), Files(place)
        self.levels: dict[int, str] = {}
        self.counts: Counter[str] = Counter()
        self.number = 0
        self.answered: dict[int, bool] = {}
        self.floors: dict[int, int] = {}
        """The newest bundle that the gateway had told of when a write was sent."""
        self.timelines: list[Timeline] = []
        self.project = ""
        self.headers: dict[str, str] = {}
        self._key = ""
        self._plane_ends = ExitStack()

    # -- the control plane

    def begin_plane(self) -> None:
        self.plane: PlaneProcess = self._plane_ends.enter_context(
            plane_process(self.store_url, self.place / "plane", self.plane_port, {"CONTROL_LOG_LEVEL": "warning"})
        )
        self.plane.key = self._key

    def begin(self) -> str:
        """An owner, a project, an agent's token; an enrolment token of the gateway."""
        self.plane.found(self.plane.running.wait_for("/welcome/").strip())
        self._key = self.plane.key
        self.project = self.plane.new_project("Shop", self.shop, POLICY.format("read"))
        self.headers = {"authorization": f"Bearer {self.plane.new_token(self.project)['text']}"}
        self.publish()
        return str(self.plane.api("POST", f"/projects/{self.project}/gateways/tokens", {"name": "edge"})["token"])

    def publish(self) -> None:
        level = LEVELS[len(self.levels) % 2]
        body = {"policy": POLICY.format(level), "note": "the random run"}
        self.levels[self.plane.api("POST", f"/projects/{self.project}/policies", body)["bundle"]] = level
        self.counts["bundles published"] += 1

    def end_plane(self) -> None:
        """Killed three times of four; away for some seconds."""
        if self.dice.random() < 0.75:
            self.counts["control plane killed"] += 1
            self.plane.running.process.kill()
        else:
            self.counts["control plane stopped"] += 1
            self.plane.running.stop()
        self._plane_ends.close()
        time.sleep(self.dice.uniform(0, 3))
        self.begin_plane()

    # -- writes

    def write(self, gateway: Serving, passing: Passing, over: threading.Event) -> None:
        while not over.is_set():
            self.number += 1
            self.floors[self.number] = passing.enforced
            try:
                answer = gateway.query(f"{INSERT}({self.number})", "a write of the random run", **self.headers)
            except (httpx.HTTPError, AssertionError, KeyError, ValueError):
                self.counts["writes without an answer"] += 1
                gateway.session = {}
                over.wait(0.2)
                continue
            if "allowed" in answer and "error" not in answer:
                self.answered[self.number] = answer["allowed"]
            self.counts["writes that ran" if self.answered.get(self.number) else "writes refused"] += 1
            over.wait(0.15)

    # -- faults

    def faults(self, listener: Door) -> list[Callable[[], None]]:
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
            self.clock.step(self.dice.choice(STEPS_MS))

        return [
            *[self.publish] * 4,
            cut,
            clock,
            self.end_plane,
            spoiled("429", lambda _path, _good: (429, b"")),
            spoiled("5xx", lambda _path, _good: (self.dice.choice((500, 502, 503)), b"bad gateway")),
            spoiled("portal pages", lambda _path, _good: (200, b"<html>log in to the network</html>")),
            spoiled("half answers", lambda _path, good: (good[0], good[1][: len(good[1]) // 2])),
            spoiled("answers lost", lambda _path, _good: None),
        ]

    # -- lives of the gateway

    def serving(self, listener: Door, token: str = "") -> Any:
        more = {"GATEWAY_ENROL_TOKEN": token} if token else {}
        own = variables(listener.url, self.shop, self.files.folder, self.gateway_port, **self.clock.variables, **more)
        return serving([], own)

    def live(self, listener: Door, passing: Passing, ends: float, token: str) -> None:
        with self.serving(listener, token) as running:
            running.wait_for("gatewayd started")
            gateway = Serving(running, self.gateway_port, self.files.folder)
            over = threading.Event()
            writer = threading.Thread(target=self.write, args=(gateway, passing, over))
            writer.start()
            try:
                for _ in range(self.dice.randint(4, 12)):
                    if time.monotonic() > ends:
                        break
                    self.dice.choice(self.faults(listener))()
                    time.sleep(self.dice.uniform(0, 2))
                if self.dice.random() < 0.7:
                    self.counts["gatewayd killed"] += 1
                    running.process.kill()
                    running.ended()
                else:
                    over.set()
                    writer.join()
                    self.counts["gatewayd stopped"] += 1
                    running.stop()
            finally:
                over.set()
                writer.join()

    def restore(self, passing: Passing) -> None:
        """What the lost file says is read before: its writes have run."""
        name = self.dice.choice(tuple(RESTORES))
        audit, state = RESTORES[name]
        if audit:
            self.timelines.append(Timeline(self.files.rows(), self.levels))
        self.files.restore(self.dice.randrange(self.files.count), audit=audit, state=state)
        if state:
            passing.enforced = 0  # its cache may be older, until it is told of the newest bundle again
        self.counts[f"{name} restored"] += 1

    def run(self, seconds: float) -> None:
        began = time.monotonic()
        self.begin_plane()
        passing = Passing(f"http://localhost:{self.plane_port}")
        with self._plane_ends, Door(passing.handle, 0) as listener:
            token = self.begin()
            while time.monotonic() - began < seconds:
                self.live(listener, passing, began + seconds, token)
                token = ""
                if self.dice.random() < 0.3:
                    self.files.back_up()
                    self.counts["copies made of both folders"] += 1
                elif self.files.count and self.dice.random() < 0.2:
                    self.restore(passing)
            self.clock.step(0)
            with self.serving(listener) as running:
                running.wait_for("gatewayd started")
                trio.run(self.settle)
                fleet = self.plane.api("GET", f"/projects/{self.project}/gateways")
                assert [each["standing"] for each in fleet["gateways"]] == ["active"], fleet["gateways"]
                assert running.stop() == 0
            self.timelines.append(Timeline(self.files.rows(), self.levels))
            trio.run(self.prove)

    async def settle(self) -> None:
        wanted = {row["id"] for row in self.files.rows()}
        store = Store(self.store_url, size=1)
        with trio.fail_after(SETTLE_S):
            while not wanted <= await ids_held(store):  # noqa: ASYNC110 - it becomes true in other processes
                await trio.sleep(2)

    async def prove(self) -> None:
        """The control plane holds each event of the gateway's file once, in order, under roots that come out, and none that no
        file had. Each decision names a bundle that was in force while its call ran, and no older one than the gateway had told
        of before the call. Nothing is in the table without such a decision; what was answered as run is there, what was answered
        as refused is not."""
        held = await Held(Store(self.store_url, size=1)).read()
        *_, last = self.timelines
        assert last.ids <= held.ids, "events are missing"
        known = {each for timeline in self.timelines for each in timeline.ids}
        assert held.ids <= known, "events are held that no file had"
        allowed = {number: bundle for timeline in self.timelines for number, bundle in timeline.allowed.items()}
        for number, bundle in allowed.items():
            assert bundle >= self.floors[number], f"write {number} ran under {bundle}, after {self.floors[number]} was in force"
        ran = {int(line) for line in self.server.psql("SELECT n FROM written", "shop").split()}
        assert ran <= allowed.keys(), f"writes ran without an allowing row, such as {sorted(ran - allowed.keys())[:5]}"
        for number, was_allowed in self.answered.items():
            assert was_allowed == (number in ran), f"write {number} was answered {was_allowed}"
        self.counts |= {
            "events held": len(held.ids),
            "instances": held.instances,
            "events lost with a file that was replaced": len(known - held.ids),
            "rows in the table": len(ran),
            "decisions that allow a write": len(allowed),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="random-run-"))
    place.chmod(0o755)
    server = EmbeddedPostgres(place / "pg", version=16, settings={"fsync": "off"})
    server.initialise()
    server.start()
    try:
        server.psql("CREATE DATABASE shop")
        server.psql("CREATE DATABASE store")
        server.psql(SCHEMA, "shop")
        with reserved_port() as gateway_port, reserved_port() as plane_port:
            run = Run(server, place, gateway_port, plane_port, given.seed)
            try:
                run.run(given.minutes * 60)
            except BaseException:
                print(f"the files of this run are in {place}", file=sys.stderr)
                raise
            finally:
                for what, count in sorted(run.counts.items()):
                    print(f"{count:9} {what}", flush=True)
    finally:
        server.stop("immediate")
    shutil.rmtree(place)
    print(f"nothing ran that was not allowed, nothing is missing, doubled or changed; seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
