"""The corpus' server and catalog, once per test process, and the line with its figures at the end."""

from collections.abc import Iterator

import pytest

from gatewayd.catalog import Catalog
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.corpus.server import catalogs_of, running

FIGURES: pytest.StashKey[list[str]] = pytest.StashKey()


@pytest.fixture(scope="session")
def corpus_server() -> Iterator[EmbeddedPostgres]:
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def corpus_catalogs(corpus_server: EmbeddedPostgres) -> dict[str, Catalog]:
    """By the names that a file of allowed statements gives its database."""
    return catalogs_of(corpus_server)


@pytest.fixture(scope="session")
def corpus_catalog(corpus_catalogs: dict[str, Catalog]) -> Catalog:
    return corpus_catalogs["sample"]


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> list[str]:
    """Lines to print when all tests have run."""
    return request.config.stash.setdefault(FIGURES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(FIGURES, []):
        terminalreporter.write_line(line)
