"""A migrated store for each test, and control planes on real sockets with browsers in front of them."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio

from gatewayd.control.bounds import CONTROL_BOUNDS, ControlBounds
from gatewayd.control.console import Console
from gatewayd.control.daemon import ControlPlane
from gatewayd.control.settings import ControlSettings, load_control_settings, with_secrets
from gatewayd.control.store.migrate import migrate
from gatewayd.control.store.store import Store
from tests.conftest import Postgres, reserved_port
from tests.control.browser import Browser
from tests.control.disturbed import DisturbedStore
from tests.control.places import MakePlace, empty_places
from tests.control.two_organisations import TwoOrganisations, build

OWNER = "ada@example.com"
PASSWORD = "correct horse battery"


@pytest.fixture(scope="session")
def migrated(postgres: Postgres) -> str:
    """A database with every migration, which nobody is connected to: a template."""
    dsn = postgres.create_database()

    async def run() -> None:
        store = Store(dsn, size=2)
        try:
            await migrate(store, "0" * 26, 1)
        finally:
            store.close()

    trio.run(run)
    return dsn


@pytest.fixture
def store_url(postgres: Postgres, migrated: str) -> str:
    return postgres.copy_database(migrated)


@pytest.fixture(params=["as it is", "disturbed"])
async def store(request: pytest.FixtureRequest, store_url: str) -> AsyncIterator[Store]:
    """Once as it is, once under SERIALIZABLE with 40001 injected at random: nothing may behave otherwise."""
    disturbed = request.param == "disturbed"
    store = DisturbedStore(store_url, 7) if disturbed else Store(store_url)
    yield store
    store.close()


@pytest.fixture
def settings(store_url: str, tmp_path: Path) -> Iterator[ControlSettings]:
    with reserved_port() as port:
        environ = {
            "GATEWAY_SELF_HOST": "1",
            "CONTROL_DATABASE_URL": store_url,
            "CONTROL_PORT": str(port),
            "CONTROL_STATE_DIR": str(tmp_path / "state"),
            "CONTROL_LOG_LEVEL": "error",
            "CONTROL_SHUTDOWN_GRACE_S": "1",
            "CONTROL_METRICS_TOKEN": "metrics-token",
        }
        yield with_secrets(load_control_settings(environ))


@pytest.fixture
def console(settings: ControlSettings, store: Store) -> Console:
    return Console(settings, store)


class Plane(msgspec.Struct):
    """A running control plane."""

    settings: ControlSettings
    plane: ControlPlane
    first_link: str | None

    @property
    def url(self) -> str:
        return self.settings.public_url

    def browser(self) -> Browser:
        return Browser(self.url)


@asynccontextmanager
async def serving(
    settings: ControlSettings,
    *,
    disturbed: bool = True,
    bounds: ControlBounds = CONTROL_BOUNDS,
    make_store: Callable[[str], Store] | None = None,
) -> AsyncIterator[Plane]:
    """Runs one in this process until the block ends. Its store is disturbed as above, or what `make_store` makes."""
    ready = trio.Event()
    told: list[str | None] = []

    def on_ready(_address: str, link: str | None) -> None:
        told.append(link)
        ready.set()

    def made(dsn: str) -> Store:
        return DisturbedStore(dsn, 11) if disturbed else Store(dsn)

    plane = ControlPlane(settings, on_ready, make_store or made, bounds=bounds)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(plane.run)
        with trio.fail_after(60):
            await ready.wait()
        try:
            yield Plane(settings, plane, told[0])
        finally:
            plane.stop.set()


@pytest.fixture
def bounds() -> ControlBounds:
    """Of `plane`; a test that needs others is parametrized with them."""
    return CONTROL_BOUNDS


@pytest.fixture
async def plane(settings: ControlSettings, bounds: ControlBounds) -> AsyncIterator[Plane]:
    async with serving(settings, bounds=bounds) as plane:
        yield plane


@pytest.fixture
async def organisations(plane: Plane, store_url: str) -> TwoOrganisations:
    store = Store(store_url)
    try:
        return await build(Console(plane.settings, store))
    finally:
        store.close()


@pytest.fixture
async def owner(plane: Plane) -> Browser:
    """A browser in which the first owner is signed in."""
    browser = plane.browser()
    await found(browser, plane.first_link)
    return browser


async def found(browser: Browser, link: str | None, organisation: str = "Analytical Engines") -> None:
    assert link is not None
    form = {"organisation": organisation, "email": OWNER, "name": "Ada", "password": PASSWORD}
    answer = await browser.post(browser.path_of(link), form)
    assert answer.status_code == 303, answer.text


@pytest.fixture
def place(postgres: Postgres, tmp_path: Path) -> Iterator[MakePlace]:
    """Makes places that a backup is restored to."""
    with empty_places(postgres, tmp_path) as make:
        yield make
