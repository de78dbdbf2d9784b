"""Empty places that a backup is restored to."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gatewayd.control.settings import ControlSettings, load_control_settings
from tests.conftest import Postgres, reserved_port

MakePlace = Callable[[str], ControlSettings]


@pytest.fixture
async def place(postgres: Postgres, tmp_path: Path) -> AsyncIterator[MakePlace]:
    """A new empty store and a state folder that is not there yet."""
    with reserved_port() as port:

        def make(name: str) -> ControlSettings:
            environ = {
                "GATEWAY_SELF_HOST": "1",
                "CONTROL_DATABASE_URL": postgres.create_database(),
                "CONTROL_STATE_DIR": str(tmp_path / name),
                "CONTROL_PORT": str(port),
                "CONTROL_LOG_LEVEL": "error",
                "CONTROL_SHUTDOWN_GRACE_S": "1",
            }
            return load_control_settings(environ)

        yield make


def address(settings: ControlSettings) -> str:
    assert settings.database_url is not None
    return settings.database_url.reveal()
