"""Every allowed statement runs through execute() on real servers, and stands under the strictest policy it can."""

import time
from collections.abc import Iterator, Sequence

import msgspec
import pytest

from gatewayd.catalog import Catalog
from gatewayd.masking.plan import Unmasked, Withheld
from gatewayd.policy.decide.decision import rules_of
from gatewayd.policy.decide.outcomes import Allowed, Permit
from gatewayd.policy.file.model import Limits, Policy
from gatewayd.postgres.embedded import VERSIONS, EmbeddedPostgres, Version
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.pool import Pool
from gatewayd.shields.whole_plan import plan
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.corpus.corpus import Allow, allow_files, decided, policies
from tests.corpus.server import PLACES, catalogs_of, running


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> Version:
    asked: Version = request.param
    return asked


@pytest.fixture(scope="module")
def server(version: Version, request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    if version == 18:
        yield request.getfixturevalue("corpus_server")
    else:
        with running(version) as own:
            yield own


@pytest.fixture(scope="module")
def catalogs(server: EmbeddedPostgres) -> dict[str, Catalog]:
    return catalogs_of(server)


def rows_of(database: str, version: Version) -> list[tuple[str, Allow]]:
    return [
        (path.name, row)
        for path, file in allow_files().items()
        if file.database == database
        for row in file.rows
        if not row.needs and row.server in (0, version)
    ]


async def test_every_allowed_statement_runs(
    server: EmbeddedPostgres, catalogs: dict[str, Catalog], version: Version, figures: list[str]
) -> None:
    started = time.perf_counter()
    ran, failed = 0, []
    for database, name in PLACES.items():
        rows = rows_of(database, version)
        reading = [each for each in rows if not _changes(each[1])]
        changing = [each for each in rows if _changes(each[1])]
        failed += await _run(server, name, reading, catalogs[database], copies=False)
        failed += await _run(server, name, changing, catalogs[database], copies=True)
        ran += len(rows)
    spent = time.perf_counter() - started
    figures.append(f"corpus: {ran} allowed statements ran on PostgreSQL {version}, {len(failed)} failures, {spent:.1f} s")
    assert not failed, "\n".join(failed)


def test_a_row_stands_under_the_strictest_policy_that_lets_it_pass(corpus_catalogs: dict[str, Catalog]) -> None:
    """Who reads that a row is `open` may trust that a policy which hides something refuses it; and what passes where something
    is hidden, passes where nothing is."""
    wrong = []
    for path, file in allow_files().items():
        for row in file.rows if file.database == "honest" else ():
            catalog = corpus_catalogs[file.database]
            hidden = isinstance(decided(msgspec.structs.replace(row, policy="hiding"), catalog), Allowed)
            if row.policy != "hiding" and hidden:
                wrong.append(f"{path.name}: {row.statement[:200]!r} passes under hiding too")
            elif (
                row.policy == "hiding"
                and not _writes(row)
                and not isinstance(decided(msgspec.structs.replace(row, policy="open"), catalog), Allowed)
            ):
                wrong.append(f"{path.name}: {row.statement[:200]!r} is refused where nothing is hidden")
    assert not wrong, "\n".join(wrong)


def test_every_allowed_statement_says_where_it_comes_from_and_there_are_enough() -> None:
    rows = [(path.name, row) for path, file in allow_files().items() for row in file.rows]
    assert [f"{name}: {row.statement[:100]}" for name, row in rows if not row.source] == []
    assert len(rows) >= 400


def _writes(row: Allow) -> bool:
    """Whether it needs a level that permits writes."""
    statement = analyze(row.sql)
    return isinstance(statement, Statement) and any(use.writes for use in statement.relations)


def _changes(row: Allow) -> bool:
    statement = analyze(row.sql)
    return isinstance(statement, Statement) and statement.category != "read" and statement.explains == "no"


async def _run(
    server: EmbeddedPostgres, database: str, rows: Sequence[tuple[str, Allow]], catalog: Catalog, *, copies: bool
) -> list[str]:
    """What went wrong. With `copies` the statements change things: they run one after the other in a copy of the database, and
    what fails there is tried again in a fresh one, for a former statement may have taken its table away."""
    failed = []
    made = 0
    pool = Pool(database, server.url(database=database), Limits(), 1)

    async def fresh() -> Pool:
        nonlocal made
        await pool.aclose()
        made += 1
        server.psql(f"CREATE DATABASE {database}_copy_{made} TEMPLATE {database}")
        return Pool(database, server.url(database=f"{database}_copy_{made}"), Limits(), 1)

    if copies:
        pool = await fresh()
    for name, row in rows:
        decision = decided(row, catalog)
        if not isinstance(decision, Allowed):
            failed.append(f"{name}: [{row.policy}] {row.statement[:300]!r} is not allowed: {decision}")
            continue
        policy = policies()[row.policy]
        if decision.is_contained:
            policy = rules_of(policy, catalog).contained
        error = await _execute(pool, decision, policy, catalog)
        if error and copies:
            pool = await fresh()
            error = await _execute(pool, decision, policy, catalog)
        if error:
            failed.append(f"{name}: {row.statement[:300]!r} failed: {error}")
    await pool.aclose()
    return failed


async def _execute(pool: Pool, decision: Allowed, policy: Policy, catalog: Catalog) -> str:
    """The server's error; empty when there is none, and every row of the answer is JSON."""
    planned = plan(decision, policy, catalog, salt=b"salt of the tests", rewriting=True)
    if isinstance(planned, Withheld):
        return planned.reason_audit
    masking = None if isinstance(planned, Unmasked) else planned
    try:
        result = await execute(pool, Permit(decision, "query", "audit"), Limits(), catalog, masking)
    except ExecutionFailed as error:
        return str(error)
    for row in result.rows:
        msgspec.json.decode(row)
    return ""
