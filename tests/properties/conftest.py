"""One pair of servers for all tests here."""

from collections.abc import Iterator

import pytest

from tests.properties.world import Servers, servers


@pytest.fixture(scope="session")
def pair() -> Iterator[Servers]:
    with servers() as made:
        yield made
