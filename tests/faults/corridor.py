"""The corridor in this process: a real database, a real audit file, no transport. For faults that must hit a chosen await."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from gatewayd.audit.events import DEFAULT_DATABASE, Agent
from gatewayd.audit.service import open_audit
from gatewayd.config.bounds import DATABASE_BOUNDS, DatabaseBounds
from gatewayd.corridor.answer import Answer
from gatewayd.corridor.databases import Databases
from gatewayd.corridor.gateway import Database, Gateway
from gatewayd.corridor.pipeline import run
from gatewayd.policy.file.load import load_policies
from tests.daemon.daemon_rig import POLICY


class Corridor:
    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    @property
    def database(self) -> Database:
        return self.gateway.databases[DEFAULT_DATABASE]

    async def query(self, sql: str) -> Answer:
        return await run(self.gateway, self.database, "query", sql, "test", Agent("faults", "1"))


@asynccontextmanager
async def corridor(
    dsn: str, folder: Path, policy: str = POLICY, bounds: DatabaseBounds = DATABASE_BOUNDS
) -> AsyncIterator[Corridor]:
    """Open, with its catalog read. Its audit file is `folder`/audit.db."""
    single = load_policies(policy, {}).single
    assert single is not None
    async with open_audit(str(folder / "audit.db")) as audit, trio.open_nursery() as nursery:
        databases = Databases(bounds)
        await nursery.start(databases.run)
        database = await databases.open(DEFAULT_DATABASE, dsn, single)
        while not database.catalog.is_read:  # each wait is 3 s at most
            await database.refresher.unknown()
        yield Corridor(Gateway(audit, {DEFAULT_DATABASE: database}))
        nursery.cancel_scope.cancel()
