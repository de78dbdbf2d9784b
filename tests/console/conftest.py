"""One world and one Chromium for all tests of the console's pages, in a pytest run of their own: `pytest tests/console`.

Playwright's sync API keeps an asyncio loop in the main thread, which disturbs Trio tests. So these files are collected only when
nothing else is asked for; `make tests` runs them beside the others.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import sync_playwright

from tests.conftest import Postgres, reserved_port
from tests.console.chromium import ARGUMENTS, MISSING, chromium
from tests.console.desk import Desk
from tests.console.running import running
from tests.console.world import World

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    asked_for = [Path(config.invocation_params.dir, each.partition("::")[0]) for each in config.args]
    return None if all(path.resolve().is_relative_to(HERE) for path in asked_for) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if chromium() is None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=MISSING))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if chromium() is None:
        terminalreporter.write_line(f"The tests of the console's pages were left out: {MISSING}.", yellow=True)


@pytest.fixture(scope="session")
def world(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A control plane in a process of its own, with something on every page. Tests that change it make a project of their own."""
    with reserved_port() as port, running(postgres, port, tmp_path_factory.mktemp("console")) as world:
        yield world


@pytest.fixture(scope="module", autouse=True)
def signed_in_just_now(world: World) -> None:
    """What changes keys, people and roles wants a sign-in of the last ten minutes, and a run on a busy machine takes longer."""
    assert world.postgres is not None
    world.postgres.execute("UPDATE sessions SET proved_ms = extract(epoch FROM clock_timestamp()) * 1000", world.dsn)


@pytest.fixture(scope="session")
def browser(world: World) -> Iterator[Chromium]:
    """After the world, which is built on Trio."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def desk(world: World, browser: Chromium) -> Iterator[Desk]:
    """Somebody before the console; at the end of the test no page of theirs has complained."""
    desk = Desk(world, browser)
    yield desk
    desk.leave()
