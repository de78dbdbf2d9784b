"""Servers of both versions for the tests of a module."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gatewayd.postgres.embedded import EmbeddedPostgres, Version
from tests.conftest import Postgres, reserved_port, server_in


@pytest.fixture(scope="module")
def start_module_postgres(short_folder: Callable[[], Path]) -> Iterator[Callable[[Version], Postgres]]:
    servers: list[EmbeddedPostgres] = []
    with ExitStack() as ports:

        def start(version: Version) -> Postgres:
            servers.append(server_in(short_folder(), ports.enter_context(reserved_port()), version, {}))
            return Postgres(servers[-1])

        try:
            yield start
        finally:
            for server in servers:
                server.stop("immediate")
                shutil.rmtree(server.folder)
