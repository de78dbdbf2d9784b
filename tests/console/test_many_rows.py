"""Thousands of rows: a page at a time, each below a megabyte."""

import pytest
from playwright.sync_api import expect

from tests.console.desk import MOST_BYTES, Desk
from tests.console.volume import GONE, MANY, PEOPLE, PROJECTS
from tests.console.world import World


@pytest.mark.parametrize(("path", "rows", "first"), [("/people", PEOPLE, "Ada Lovelace"), ("/", PROJECTS, "Shop")])
def test_a_page_at_a_time(desk: Desk, world: World, path: str, rows: str, first: str) -> None:
    world.postgres.execute(rows.format(MANY), world.dsn)
    try:
        page = desk.page()
        answer = page.goto(path)
        assert answer is not None
        assert len(answer.body()) < MOST_BYTES
        expect(page.locator("main table").first).to_contain_text(first)
        page.get_by_role("link", name="More").click()
        expect(page.locator("main table").first).not_to_contain_text(first)
        expect(page.get_by_role("link", name="More")).to_be_visible()
    finally:
        world.postgres.execute(GONE, world.dsn)
