"""One gatewayd for every test of hostile clients in this process: what one of them leaves behind, the next ones would see."""

from collections.abc import Iterator

import pytest

from tests.conftest import Postgres
from tests.faults.hostile import Target, attacked


@pytest.fixture(scope="session")
def target(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with attacked(postgres, tmp_path_factory.mktemp("attacked")) as attacked_by_all:
        yield attacked_by_all
