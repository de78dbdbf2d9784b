"""A result of ten million rows costs neither this process nor PostgreSQL more than the limits allow."""

import resource
from typing import Any

from gatewayd.policy.file.model import Limits
from tests.postgres.postgres_asking import asking


def rss() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


async def test_ten_million_rows_are_cut_on_the_server(postgres: Any) -> None:
    async with asking(postgres.dsn(), size=1) as ask:
        (row,) = await ask.rows("SELECT pg_backend_pid() AS pid")
        before = rss()
        result = await ask("SELECT i, repeat('x', 100) AS x FROM generate_series(1, 10000000) AS g(i)")
        assert (result.rows_returned, result.truncated) == (1000, True)
        assert rss() - before < 20 * 1024 * 1024
        activity = postgres.query(f"SELECT state, query FROM pg_stat_activity WHERE pid = {row['pid']}")
        assert activity[0]["state"] == "idle"


async def test_wide_rows_are_cut_on_the_server(postgres: Any) -> None:
    async with asking(postgres.dsn()) as ask:
        before = rss()
        result = await ask("SELECT repeat('x', 1000000) AS x FROM generate_series(1, 900)", Limits(max_bytes=3_000_000))
        assert (result.rows_returned, result.truncated) == (2, True)
        assert rss() - before < 20 * 1024 * 1024


async def test_a_large_returning_is_drained_not_held(postgres: Any) -> None:
    dsn = postgres.create_database("CREATE TABLE t AS SELECT i, repeat('x', 200) AS x FROM generate_series(1, 300000) i")
    async with asking(dsn) as ask:
        before = rss()
        result = await ask("UPDATE t SET i = 0 RETURNING *")
        assert (result.rows_affected, result.rows_returned, result.truncated) == (300_000, 1000, True)
        assert rss() - before < 20 * 1024 * 1024
