"""The embedded PostgreSQL 18 of the corpus, with the sample database, and what gatewayd's own reader makes of it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from gatewayd.catalog import Catalog
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.embedded import EmbeddedPostgres, Version
from gatewayd.postgres.pool import Pool
from tests import places
from tests.conftest import QUICK

SCHEMA: Final = Path(__file__).with_name("schema.sql")
SCHEMA_HONEST: Final = Path(__file__).with_name("schema_honest.sql")
DATABASE: Final = "corpus"
HONEST: Final = "honest"
TEMPLATE: Final = "corpus_template"


@contextmanager
def running(version: Version = 18) -> Iterator[EmbeddedPostgres]:
    """A server with the sample database twice: DATABASE to work in, TEMPLATE to make fresh copies from. HONEST is the database of
    the allowed statements."""
    folder = Path(tempfile.mkdtemp(prefix="gwc", dir=places.ROOT))  # short: sockets live in it
    folder.chmod(0o711)
    settings = {**QUICK, "max_prepared_transactions": "5", "wal_level": "logical"}
    server = EmbeddedPostgres(folder / "pg", version=version, superuser_password="superuser-of-the-corpus", settings=settings)
    try:
        server.initialise()
        server.start()
        server.psql(f"CREATE DATABASE {TEMPLATE}")
        server.psql(SCHEMA.read_text(encoding="utf-8"), TEMPLATE)
        server.psql(f"CREATE DATABASE {DATABASE} TEMPLATE {TEMPLATE}")
        server.psql(f"CREATE DATABASE {HONEST} TEMPLATE {TEMPLATE}")
        server.psql(SCHEMA_HONEST.read_text(encoding="utf-8"), HONEST)
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def catalogs_of(server: EmbeddedPostgres) -> dict[str, Catalog]:
    """The catalogs of DATABASE ("sample") and HONEST ("honest"), read as the daemon reads them."""
    return {"sample": catalog_of(server), "honest": catalog_of(server, HONEST)}


def catalog_of(server: EmbeddedPostgres, database: str = DATABASE) -> Catalog:

    async def read() -> Catalog:
        pool = Pool(database, server.url(database=database), Limits(), 1)
        try:
            return await read_catalog(pool, 1)
        finally:
            await pool.aclose()

    return trio.run(read)


PLACES = {"sample": DATABASE, "honest": HONEST}
