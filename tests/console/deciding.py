"""Writes that wait, and two people who decide them."""

from functools import partial

from playwright.sync_api import Page

from tests.console.desk import Desk
from tests.console.held import ask_for
from tests.console.running import project
from tests.console.world import World


def shop(world: World) -> str:
    """A project of the test's own."""
    return world.do(lambda console: project(world, console, f"Shop {console.new_id()}", ("main",)))


def held(world: World, at: str, sql: str = "DELETE FROM orders WHERE id = 7", **changes: object) -> str:
    return world.do(partial(ask, world, at, sql, changes))


async def ask(world: World, at: str, sql: str, changes: dict[str, object], console: object) -> str:
    return await ask_for(console, world.org, at, sql, **changes)  # type: ignore[arg-type]  # the console that `do` gives


def deciders(desk: Desk, path: str) -> tuple[Page, Page]:
    pages = desk.page("grace"), desk.page("ada")
    for page in pages:
        page.goto(path)
    return pages
