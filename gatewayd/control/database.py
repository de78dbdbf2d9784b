"""Where the store is: the address that is configured, or the embedded PostgreSQL of self-host in the state folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from gatewayd.control.settings import ControlSettings
from gatewayd.postgres.embedded import EmbeddedPostgres

DATABASE: Final = "control"
FOLDER: Final = "postgres"


@asynccontextmanager
async def store_address(settings: ControlSettings) -> AsyncIterator[str]:
    """The connection string, while the block runs. Raises EmbeddedUnavailable.

    An embedded server that was running already (a command beside a running control plane) is left running.
    """
    if settings.database_url is not None:
        yield settings.database_url.reveal()
        return
    server = EmbeddedPostgres(settings.state / FOLDER)
    was_running = await trio.to_thread.run_sync(_start, server)
    try:
        yield server.url(database=DATABASE)
    finally:
        if not was_running:
            with trio.CancelScope(shield=True):  # it takes half a second, and a server left behind would hold the folder
                await trio.to_thread.run_sync(partial(server.stop, "fast"))


def is_embedded_there(state: Path) -> bool:
    """Whether an embedded PostgreSQL has been made in this state folder."""
    return (state / FOLDER / "data").exists()


def _start(server: EmbeddedPostgres) -> bool:
    was_running = server.postmaster() is not None
    server.initialise()
    server.start()
    if not server.psql(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"):
        server.psql(f"CREATE DATABASE {DATABASE}")
    return was_running
