"""Empty places that a backup is restored to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gatewayd.control.settings import ControlSettings, load_control_settings
from tests.conftest import Postgres, reserved_port

MakePlace = Callable[[str], ControlSettings]


@contextmanager
def empty_places(postgres: Postgres, folder: Path) -> Iterator[MakePlace]:
    """Each a new empty store and a state folder in `folder` that is not there yet."""
    with reserved_port() as port:

        def make(name: str) -> ControlSettings:
            environ = {
                "GATEWAY_SELF_HOST": "1",
                "CONTROL_DATABASE_URL": postgres.create_database(),
                "CONTROL_STATE_DIR": str(folder / name),
                "CONTROL_PORT": str(port),
                "CONTROL_LOG_LEVEL": "error",
                "CONTROL_SHUTDOWN_GRACE_S": "1",
            }
            return load_control_settings(environ)

        yield make


def address(settings: ControlSettings) -> str:
    assert settings.database_url is not None
    return settings.database_url.reveal()
