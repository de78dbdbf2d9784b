"""The long run: `python -m tests.properties.run --minutes 60`. Prints what it tried and every counterexample, shrunk.

Each few minutes it makes new databases: the other server version, other generated views, with and without the overloads of
traps.sql. `--out` collects findings as JSON lines and the counts so far, outside the repository.
"""

import argparse
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import trio

from gatewayd.postgres.embedded import Version
from tests.properties import texts
from tests.properties.policies import ALL, HIDING
from tests.properties.properties import Counts, Finding, examine, examine_batch
from tests.properties.shrink import shrink
from tests.properties.statements import generate
from tests.properties.world import World, connected, servers

WORLD_S: Final = 240
BATCH: Final = 40
POLICIES: Final = ("hiding", "hiding", "listed", "writing", "open")
BOUND_MS: Final = 50  # for 100 kB, of processor time
EXIT_FOUND: Final = 1


class Run:
    def __init__(self, seed: int, ends: float, out: Path | None) -> None:
        self.seed = seed
        self.ends = ends
        self.out = out
        self.began = time.monotonic()
        self.counts = Counts()
        self.findings: dict[tuple[str, str], Finding] = {}
        self.slowest: tuple[float, str] = (0.0, "")
        self.cpu_s = 0.0

    async def go(self) -> None:
        number = 0
        views = ""
        while time.monotonic() < self.ends:
            version: Version = 18 if number % 2 == 0 else 16
            with servers(version=version, views=views, traps=number % 4 >= 2) as pair:
                async with connected(pair, HIDING.limits) as world:
                    self.counts.by[f"worlds of PostgreSQL {version}"] += 1
                    await self._in_world(world)
                    views = _views(world, self.seed)
            number += 1

    async def _in_world(self, world: World) -> None:
        until = min(self.ends, time.monotonic() + WORLD_S)
        while time.monotonic() < until:
            began = self.seed
            batch = []
            for _ in range(BATCH):
                chance = Random(self.seed)
                batch.append((generate(chance, chance, world.model, 4), POLICIES[self.seed % len(POLICIES)]))
                self.seed += 1
            try:
                for finding in await examine_batch(world, batch, self.counts):
                    await self._found(world, finding)
            except Exception as error:  # the run goes on; a dead server or a bug of ours is a finding too
                died = [statement for side in (world.one, world.other) for statement in side.crashes()]
                self.note(
                    Finding(
                        "server died" if died else "run", died[0] if died else f"seeds {began} to {self.seed}", "", repr(error)
                    )
                )
                return
            self._texts(world, Random(began))
            if (began // BATCH) % 25 == 0:
                self.report()

    def _texts(self, world: World, chance: Random) -> None:
        for _ in range(10):
            sql = texts.any_text(chance, world.model, 100_000 if chance.random() < 0.05 else 2000)
            name = chance.choice(POLICIES)
            started = time.process_time()
            wrong = texts.decides(sql, ALL[name], world.catalog)
            spent_ms = (time.process_time() - started) * 1000
            self.counts.by["any texts"] += 1
            per_100_kb = spent_ms / max(len(sql.encode(errors="replace")) / 100_000, 1)
            self.slowest = max(self.slowest, (per_100_kb, sql[:200]))
            if wrong is not None:
                self.note(Finding("crash", sql[:5000], name, wrong))
            elif per_100_kb > BOUND_MS:
                self.counts.by[f"texts slower than {BOUND_MS} ms per 100 kB"] += 1
        seed = chance.randrange(2**40)
        pair = texts.fingerprint_differs(seed, world.model)
        self.counts.by["fingerprint pairs"] += 1
        if pair is not None:
            self.note(Finding("fingerprint", pair[0], "", pair[1]))

    async def _found(self, world: World, finding: Finding) -> None:
        async def fails(sql: str) -> bool:
            return any(each.kind == finding.kind for each in await examine(world, sql, finding.policy))

        if sum(kind == finding.kind for kind, _ in self.findings) < 40:
            small = await shrink(finding.sql, fails)
            again = [each for each in await examine(world, small, finding.policy) if each.kind == finding.kind]
            finding = again[0] if again else finding
        self.note(finding)

    def note(self, finding: Finding) -> None:
        self.counts.by[f"findings: {finding.kind}"] += 1
        key = (finding.kind, finding.sql)
        if key not in self.findings:
            self.findings[key] = finding
            line = json.dumps({"kind": finding.kind, "policy": finding.policy, "sql": finding.sql, "detail": finding.detail})
            print(line, flush=True)
            if self.out is not None:
                with (self.out / "findings.jsonl").open("a", encoding="utf-8") as file:
                    file.write(line + "\n")

    def report(self) -> str:
        lines = [f"{time.monotonic() - self.began:.0f} s, next seed {self.seed}, {len(self.findings)} findings"]
        lines += [f"{count:9} {name}" for name, count in sorted(self.counts.by.items(), key=lambda each: -each[1])]
        lines.append(f"slowest text: {self.slowest[0]:.1f} ms per 100 kB: {self.slowest[1]!r}")
        lines.append("why statements were denied:")
        lines += [f"{count:9} {why}" for why, count in self.counts.denied.most_common(60)]
        text = "\n".join(lines)
        if self.out is not None:
            (self.out / "counts.txt").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        return text


def _views(world: World, seed: int) -> str:
    """Views and materialized views over generated queries, for the next database."""
    made = []
    for number in range(12):
        chance = Random(seed + number)
        kind = "MATERIALIZED VIEW" if number % 4 == 3 else "VIEW"
        query = generate(chance, chance, world.model, 3)
        if query.lstrip("( ").startswith(("SELECT", "WITH", "VALUES")) and "\n\n" not in query and "$text$" not in query:
            made.append(f"CREATE {kind} {'spy_' if chance.random() < 0.3 else ''}made_{number} AS {query}")
    return "\n\n".join(made)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.properties.run", description="generated statements against two databases"
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None, help="folder for findings.jsonl and counts.txt")
    chosen = parser.parse_args(words)
    os.nice(5)
    # SIGTERM ends it as Ctrl-C does, so that the servers are stopped too; a shell's background job ignores SIGINT otherwise.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
    seed = chosen.seed if chosen.seed is not None else time.time_ns() // 1_000_000
    run = Run(seed, time.monotonic() + chosen.minutes * 60, chosen.out)
    try:
        trio.run(run.go)
    finally:
        print(run.report())
    return EXIT_FOUND if run.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
