"""The long run: `python -m tests.oracle.run --statements 100000`. Prints what it compared and every difference that matters.

The whole corpus first, then generated statements, on each version of the server that the environment carries. The exit code is 1
when the server bound something that was not checked.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import trio

from gatewayd.catalog import Catalog
from gatewayd.policy.file.model import Limits, Policy
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.embedded import VERSIONS, EmbeddedPostgres, Version
from gatewayd.postgres.pool import Pool
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests import places
from tests.corpus.corpus import allow_files, deny_files, policies
from tests.corpus.server import DATABASE as CORPUS
from tests.corpus.server import HONEST, catalog_of, running
from tests.oracle.compare import differences, hidden_from_us
from tests.oracle.server import Oracle, Refused
from tests.properties.model import Model, read_model
from tests.properties.policies import ALL
from tests.properties.statements import generate
from tests.properties.world import DATABASE, made_server

LONGEST: Final = 50_000
_BATCH: Final = 2000
_SHOWN: Final = 20


class Tally:
    """What was compared."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.unchecked: list[str] = []
        self.more: Counter[str] = Counter()

    def add(self, oracle: Oracle, catalog: Catalog, asked: Iterable[tuple[str, Policy]]) -> None:
        """Bind the queries and row writes among these statements, and compare."""
        taken: list[tuple[Statement, Policy]] = []
        for sql, policy in asked:
            statement = analyze(sql)
            if isinstance(statement, Statement) and statement.form in ("query", "dml"):
                taken.append((statement, policy))
            else:
                self.counts["not asked: no query, no row write"] += 1
        answers = oracle.bind([each.sql.encode()[each.text_start : each.text_end].decode() for each, _ in taken])
        for (statement, policy), bound in zip(taken, answers, strict=True):
            if isinstance(bound, Refused):
                self.counts["refused by the server"] += 1
                continue
            self.counts["bound"] += 1
            found = differences(statement, bound, oracle.names, catalog, policy)
            missed = [f"{each.kind} {each.name}" for each in found if each.unchecked]
            missed += [f"permitted unseen: {each}" for each in hidden_from_us(statement, bound, oracle.names, catalog, policy)]
            self.counts["equal"] += not found
            if missed:
                self.counts["unchecked"] += 1
                self.unchecked.append(f"{missed} in {statement.sql}")
            self.more.update({f"{each.kind} {each.name}" for each in found if not each.unchecked})


def compare_corpus(tally: Tally, version: Version) -> None:
    with running(version) as server:
        for database, name in ((CORPUS, "sample"), (HONEST, "honest")):
            rows = [row for file in allow_files().values() if file.database == name for row in file.rows]
            denied = [row for file in deny_files().values() for row in file.rows] if name == "sample" else []
            texts = dict.fromkeys((row.sql, row.policy) for row in (*rows, *denied) if len(row.sql) < LONGEST)
            asked = [(sql, policies()[policy]) for sql, policy in texts if "\0" not in sql and sql.isprintable() | sql.isascii()]
            tally.add(Oracle(server, database), catalog_of(server, database), asked)


class Generated:
    """One server with the generator's database."""

    def __init__(self, oracle: Oracle, catalog: Catalog, model: Model) -> None:
        self.oracle = oracle
        self.catalog = catalog
        self.model = model

    def compare(self, tally: Tally, seeds: Iterable[int]) -> None:
        asked = []
        for seed in seeds:
            chance = Random(seed)
            asked.append((generate(chance, chance, self.model, 4), list(ALL.values())[seed % len(ALL)]))
        tally.add(self.oracle, self.catalog, [(sql, policy) for sql, policy in asked if "\0" not in sql])


@contextmanager
def generated(version: Version, *, traps: bool) -> Iterator[Generated]:
    """`traps`: with the overloads of traps.sql."""
    root = Path(tempfile.mkdtemp(prefix="gwo", dir=places.ROOT))
    root.chmod(0o711)
    server: EmbeddedPostgres | None = None
    try:
        server = made_server(root / "0", version, "", "hidden_one.sql", traps=traps)
        yield Generated(Oracle(server, DATABASE), *trio.run(_read, server.url(database=DATABASE)))
    finally:
        if server is not None:
            server.stop("immediate")
        shutil.rmtree(root, ignore_errors=True)


async def _read(url: str) -> tuple[Catalog, Model]:
    pool = Pool("oracle", url, Limits(statement_timeout_ms=60_000), 1)
    try:
        catalog = await read_catalog(pool, 1)

        async def fetch(sql: str) -> list[object]:
            async with pool.connection() as connection:
                return list(await connection.fetch(sql))

        model = await read_model(fetch)
    finally:
        await pool.aclose()
    model.tables = [each for each in model.tables if each.schema != "backup"]
    return catalog, model


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statements", type=int, default=100_000, help="generated ones that the server takes, of all versions")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    tally = Tally()
    began = time.monotonic()
    for version in VERSIONS:
        compare_corpus(tally, version)
        print(f"corpus on {version}: {dict(tally.counts)}", flush=True)
    seed = options.seed
    already = tally.counts["bound"]
    worlds = [(version, traps) for version in VERSIONS for traps in (False, True)]
    for number, (version, traps) in enumerate(worlds, 1):
        with generated(version, traps=traps) as world:
            while tally.counts["bound"] - already < options.statements * number / len(worlds):
                world.compare(tally, range(seed, seed + _BATCH))
                seed += _BATCH
        print(f"generated on {version}{', with traps' if traps else ''}: {dict(tally.counts)}", flush=True)
    bound = tally.counts["bound"]
    print(f"{bound} bound, {100 * tally.counts['equal'] / bound:.2f} % equal, {time.monotonic() - began:.0f} s")
    print("checked though not bound:", tally.more.most_common(_SHOWN))
    for line in tally.unchecked[:_SHOWN]:
        print("UNCHECKED", line)
    return 1 if tally.unchecked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
