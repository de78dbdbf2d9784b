"""A session that goes back to the pool, or is closed, holds neither a transaction nor a lock, whatever ended its use."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from gatewayd.catalog import Catalog
from gatewayd.masking.results.post_exec import Masked, PostExec
from gatewayd.policy.file.model import FullRedact, Limits
from gatewayd.postgres.execute.displayed_columns import shown
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.postgres.cancelled_after import cancelled_after
from tests.postgres.postgres_asking import Asking, asking, until

ASKED = "SELECT 1 AS a, x.*, 2 AS a FROM t, unnest('a:1'::tsvector) AS x"
"""Neither text nor catalog tells its columns, so it is described."""


@pytest.fixture
def dsn(postgres: Any) -> str:
    return str(postgres.create_database("CREATE TABLE t (id int); INSERT INTO t VALUES (1);"))


def held(postgres: Any, dsn: str) -> list[dict[str, Any]]:
    """What gatewayd's sessions hold: locks, and anything but idleness."""
    database = dsn.split("/")[3].split("?")[0]
    rows: list[dict[str, Any]] = postgres.query(
        f"""
        SELECT a.state, l.mode, l.relation::regclass::text AS relation
        FROM pg_stat_activity AS a LEFT JOIN pg_locks AS l USING (pid)
        WHERE a.datname = '{database}' AND a.application_name = 'gatewayd'
              AND (a.state <> 'idle' OR l.pid IS NOT NULL OR a.xact_start IS NOT NULL)
        """,
        dsn,
    )
    return rows


async def _refused(ask: Asking) -> None:
    """Described, and refused then: its masks were found for other columns."""
    statement = analyze(ASKED)
    assert isinstance(statement, Statement)
    masking = PostExec(1, (Masked(0, "ssn", FullRedact(), "text", None),), ())
    async with ask.pool.connection() as connection:
        with pytest.raises(ExecutionFailed, match="columns of this statement have changed"):
            await shown(connection, statement, ask.catalog, masking)


async def _described(ask: Asking) -> None:
    async with ask.pool.connection() as connection:
        await connection.describe(ASKED)


async def _not_described(ask: Asking) -> None:
    async with ask.pool.connection() as connection:
        with pytest.raises(Exception, match="nowhere"):
            await connection.describe("SELECT id, x.* FROM t, nowhere AS x")


async def _answered(ask: Asking) -> None:
    assert len((await ask(ASKED)).rows) == 1


async def _failed(ask: Asking) -> None:
    assert (await ask.fails("SELECT 1 / (id - id) FROM t")).sqlstate == "22012"


async def _failed_after_describing(ask: Asking) -> None:
    assert (await ask.fails(ASKED.replace("1 AS a", "1 / (t.id - t.id) AS a"))).sqlstate == "22012"


async def _explained(ask: Asking) -> None:
    await ask("EXPLAIN SELECT id FROM t")


async def _explained_wrongly(ask: Asking) -> None:
    assert (await ask.fails("EXPLAIN SELECT nothing FROM t")).sqlstate == "42703"


async def _written(ask: Asking) -> None:
    await ask("UPDATE t SET id = 1 RETURNING *")


async def _not_written(ask: Asking) -> None:
    assert (await ask.fails("UPDATE t SET id = 1 / 0")).sqlstate == "22012"


async def _timed_out(ask: Asking) -> None:
    await ask.fails("SELECT pg_sleep(60), id FROM t", Limits(statement_timeout_ms=50))


@pytest.mark.parametrize(
    "use",
    [
        _refused, _described, _not_described, _answered, _failed, _failed_after_describing, _explained, _explained_wrongly,
        _written, _not_written, _timed_out,
    ],
    ids=lambda use: use.__name__.strip("_"),
)  # fmt: skip
async def test_nothing_is_held_after(postgres: Any, dsn: str, use: Callable[[Asking], Awaitable[None]]) -> None:
    async with asking(dsn, size=1) as ask:
        await _described(ask)  # a new session has asyncpg look up types, and that has a Sync
        await use(ask)
        assert held(postgres, dsn) == []
        postgres.execute("SET lock_timeout = '1s'; ALTER TABLE t ADD COLUMN note text", dsn)


@pytest.mark.parametrize("sql", [ASKED, "EXPLAIN SELECT id FROM t", "UPDATE t SET id = 1 RETURNING *"])
async def test_cancelled_at_any_moment_nothing_is_held(postgres: Any, dsn: str, sql: str) -> None:
    for steps in range(1, 200):
        async with asking(dsn, size=1) as ask:
            await _described(ask)
            finished = await cancelled_after(steps, ask, sql)
            with trio.fail_after(10):
                await until(lambda: held(postgres, dsn) == [])  # a closed session's backend ends in its own time
            if finished:
                return
    pytest.fail("no call ran through")


def test_the_catalog_does_not_tell_the_columns_asked_for() -> None:
    """Else nothing here is described."""
    from gatewayd.postgres.execute.output_names import output_names

    statement = analyze(ASKED)
    assert isinstance(statement, Statement)
    assert output_names(statement, Catalog(revision=1, database="test")) is None
