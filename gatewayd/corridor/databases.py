"""Databases: opens and closes the pool and the catalog refresher of each served database.

One service for the daemon's whole life, because a reload adds and removes databases while calls run. A closed database drains: a
call that began before still finds its pool open and its catalog up to date, at whichever step it is.
"""

from collections.abc import Iterable
from typing import Final

import trio

from gatewayd.audit.events import DEFAULT_DATABASE
from gatewayd.config.bounds import DATABASE_BOUNDS, DatabaseBounds
from gatewayd.corridor.gateway import Database
from gatewayd.masking.rules import mask_rules as masks
from gatewayd.policy.file.model import Policy
from gatewayd.policy.file.problem import PolicyErrors, Problem
from gatewayd.postgres.catalog.refresher import CatalogRefresher
from gatewayd.postgres.pool import Pool

CLOSE_S: Final = 30.0
"""How long the daemon waits at its end for sessions that calls still hold. The calls have been cancelled long before."""


async def check_masks(enforced: Iterable[tuple[Database, Policy]], *, wait: bool = True) -> None:
    """Checks the masks of each policy against the database's catalog (decision 10). Raises PolicyErrors.

    With `wait`, waits a moment for catalogs that have not been read. A database that does not answer is not checked here: its
    statements are refused until its catalog is read, and after that as long as a mask does not fit.
    """
    asked = [(database, policy) for database, policy in enforced if policy.column_masks]
    async with trio.open_nursery() as nursery:
        for database, _ in asked if wait else ():
            nursery.start_soon(database.refresher.unknown)
    problems = [
        Problem("" if database.name == DEFAULT_DATABASE else f"databases {database.name}", 0, problem)
        for database, policy in asked
        if database.catalog.is_read
        for problem in masks.problems(policy, database.catalog)
    ]
    if problems:
        raise PolicyErrors(problems)


class Databases:
    """The open databases. Start `run`, then call `open` and `close`."""

    def __init__(self, bounds: DatabaseBounds = DATABASE_BOUNDS) -> None:
        self._bounds = bounds
        self._nursery: trio.Nursery | None = None
        self._closing: dict[Database, trio.Event] = {}

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Holds every open database; when cancelled, closes their connections before it returns."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    async def open(self, name: str, url: str, policy: Policy) -> Database:
        """A database that calls can use. Does not wait for the server: its catalog is read as soon as the server answers."""
        assert self._nursery is not None, "run() must be started first"
        database: Database = await self._nursery.start(self._keep, name, url, policy)
        return database

    def close(self, database: Database) -> None:
        """Closes the database once the calls in flight have ended."""
        self._closing[database].set()

    async def _keep(self, name: str, url: str, policy: Policy, *, task_status: trio.TaskStatus[Database]) -> None:
        pool = Pool(name, url, policy.limits, bounds=self._bounds)
        refresher = CatalogRefresher(name, pool)
        database = Database(name, pool, refresher, policy)
        self._closing[database] = closing = trio.Event()
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(refresher.run)
                task_status.started(database)
                await closing.wait()
                await database.unused()
                nursery.cancel_scope.cancel()
        finally:
            del self._closing[database]
            with trio.move_on_after(CLOSE_S, shield=True):
                await pool.aclose()
