"""Searches for the most expensive statement: `python -m tests.cost.run --minutes 60`. Exit 1 when one is beyond a bound.

Three searches side by side, for processor time, for how long the interpreter is held, and for memory: each keeps its worst texts
and changes them. Decision 16.6 says what the bounds are for.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from tests.cost.judged import is_on_loop, judged
from tests.cost.measure import Cost, measured
from tests.cost.texts import Clause, drawn, mutated, written

KEPT: Final = 10
MOST_CPU_S: Final = 2.0
MOST_HELD_S: Final = 0.05
MOST_GROWN_MIB: Final = 64.0
_AGAIN: Final = 3
"""A cost beyond a bound is measured so often, and the least counts: another process may have taken the processor."""

AIMS: Final[dict[str, tuple[Callable[[Cost], float], float]]] = {
    "cpu": (lambda cost: cost.cpu_s, MOST_CPU_S),
    "held": (lambda cost: cost.held_s, MOST_HELD_S),
    "grown": (lambda cost: cost.grown_mib, MOST_GROWN_MIB),
}


class Tried(msgspec.Struct):
    clause: Clause
    rewriting: bool
    cost: Cost
    sql: str


def tried(clause: Clause, *, rewriting: bool) -> Tried:
    sql = written(clause)
    return Tried(clause, rewriting, _cost(sql, rewriting=rewriting), sql)


def _cost(sql: str, *, rewriting: bool) -> Cost:
    cost = measured(partial(judged, sql, rewriting=rewriting))
    return msgspec.structs.replace(cost, held_s=cost.cpu_s) if is_on_loop(sql) else cost


class Search:
    """Keeps the worst of each aim."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self.worst: dict[str, list[Tried]] = {aim: [] for aim in AIMS}
        self.texts = self.allowed = 0

    def step(self) -> None:
        chance = self._chance
        kept = self.worst[chance.choice(list(AIMS))]
        is_new = len(kept) < KEPT or chance.random() < 0.15
        clause = drawn(chance) if is_new else mutated(chance.choice(kept).clause, chance)
        found = tried(clause, rewriting=chance.random() < 0.5)
        self.texts += 1
        self.allowed += found.cost.verdict.startswith("allowed")
        for aim, (of, _) in AIMS.items():
            self._keep(aim, of, found)

    def _keep(self, aim: str, of: Callable[[Cost], float], found: Tried) -> None:
        kept = self.worst[aim]
        if len(kept) == KEPT and of(found.cost) <= of(kept[-1].cost):
            return
        if any(each.sql == found.sql and each.rewriting == found.rewriting for each in kept):
            return
        if of(found.cost) > AIMS[aim][1] or len(kept) < KEPT or of(found.cost) > 1.2 * of(kept[0].cost):
            again = [_cost(found.sql, rewriting=found.rewriting) for _ in range(_AGAIN - 1)]
            found = msgspec.structs.replace(found, cost=min([found.cost, *again], key=of))
        kept.append(found)
        kept.sort(key=lambda each: -of(each.cost))
        del kept[KEPT:]

    def report(self, out: Path | None) -> bool:
        """Whether everything is within its bound."""
        print(f"\n{self.texts} texts, {self.allowed} allowed", flush=True)
        within = True
        for aim, (of, bound) in AIMS.items():
            for number, each in enumerate(self.worst[aim]):
                beyond = of(each.cost) > bound
                within = within and not beyond
                cost = each.cost
                print(
                    f"{aim:6}{'!' if beyond else ' '} cpu {cost.cpu_s:6.2f} s  held {cost.held_s * 1000:6.1f} ms  "
                    f"grown {cost.grown_mib:6.1f} MiB  {len(each.sql):8} characters  {cost.verdict:20} {_short(each.clause)}",
                    flush=True,
                )
                if out is not None:
                    out.mkdir(exist_ok=True, parents=True)
                    (out / f"{aim}-{number}-{'rewriting' if each.rewriting else 'after'}.sql").write_text(each.sql)
        return within


def _short(clause: Clause) -> str:
    """The shape in a line."""
    return clause.separator.strip().join(
        f"{f'{part.count}×' if part.count > 1 else ''}{part.piece[:70]}"
        + "".join(f" {kind}[{_short(inner)}]" for kind, inner in part.inner.items())
        for part in clause.parts
    )[:400]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--out", type=Path, help="a folder for the worst texts")
    arguments = parser.parse_args()
    judged("SELECT ssn FROM users", rewriting=True)  # what is made once
    judged("SELECT ssn FROM users", rewriting=False)
    gc.collect()
    gc.freeze()
    print(f"seed {arguments.seed}", flush=True)
    search = Search(arguments.seed)
    ends = time.monotonic() + 60 * arguments.minutes
    while time.monotonic() < ends:
        search.step()
    return 0 if search.report(arguments.out) else 1


if __name__ == "__main__":
    sys.exit(main())
