"""The catalog of a database that a test has made, read once by the gateway's own queries."""

import trio

from gatewayd.catalog import Catalog
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.pool import Pool


def catalog_of(dsn: str) -> Catalog:
    """Blocks until it is read; the session is closed."""

    async def read() -> Catalog:
        pool = Pool("shop", dsn, Limits(), 1)
        try:
            return await read_catalog(pool, 1)
        finally:
            await pool.aclose()

    return trio.run(read)
