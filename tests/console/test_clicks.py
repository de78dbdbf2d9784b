"""A stranger's tasks, from a project's first page, counted in clicks by the browser itself. A choice in a list counts as one."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.desk import Desk
from tests.console.held import ask_for
from tests.console.recorded import record
from tests.console.running import project
from tests.console.shop import token
from tests.console.world import World

COUNT = """
const count = () => sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks")) + 1);
addEventListener("click", (event) => event.isTrusted && count(), true);
addEventListener("change", (event) => event.target.matches("select") && count(), true);
"""


@pytest.fixture(scope="module")
def here(world: World) -> str:
    """A project of these tests: a week of statements, two writes that wait, a token."""
    made = world.do(lambda console: project(world, console, "Shop of clicks", ("main",)))
    world.do(partial(_fill, world, made))
    return f"/projects/{made}"


async def _fill(world: World, made: str, console: Any) -> None:
    await record(console, world.postgres, world.url, world.org, made)
    await ask_for(console, world.org, made, "DELETE FROM orders WHERE id = 7")
    await ask_for(console, world.org, made, "DELETE FROM orders WHERE id = 8")
    await token(world, console, made, "Assistant")


@contextmanager
def clicks(page: Page, here: str, most: int) -> Iterator[Page]:
    """The project's first page; what is done from there takes `most` clicks."""
    page.add_init_script(COUNT)
    page.goto(here)
    yield page
    assert page.evaluate("Number(sessionStorage.getItem('clicks'))") == most


def test_the_oldest_request_is_approved_in_two(desk: Desk, here: str) -> None:
    with clicks(desk.page("grace"), here, 2) as page:
        page.get_by_role("link", name="Deletes 3 rows").click()
        expect(page.get_by_role("region", name="SQL")).to_contain_text("id = 7")
        page.get_by_role("button", name="Approve once").click()
        expect(page.get_by_role("status").first).to_contain_text("Decided.")
        expect(page.get_by_role("heading", name="Decided")).to_be_visible()
        expect(page.get_by_text("at most 3 rows")).to_be_visible()
    page.goto(here)
    expect(page.get_by_text("1 write waits for a person")).to_be_visible()


def test_why_an_agent_was_refused_since_yesterday_is_found_in_three(desk: Desk, here: str) -> None:
    with clicks(desk.page("carl"), here, 3) as page:
        page.get_by_role("link", name="Audit", exact=True).click()
        page.get_by_text("Refused since yesterday").get_by_role("link", name="cursor", exact=True).click()
        rows = page.locator("#live tbody tr")
        assert {row.locator(".badge").inner_text() for row in rows.all()} == {"denied"}
        expect(rows.filter(has_not_text="cursor")).to_have_count(0)
        rows.first.get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Refused statement")
        expect(page.get_by_text("by rule table_access")).to_be_visible()


def test_what_denying_a_table_would_break_is_seen_in_three(desk: Desk, here: str) -> None:
    with clicks(desk.page(), here, 3) as page:
        page.get_by_role("link", name="Policy", exact=True).click()
        page.get_by_label("public.customers").select_option(label="deny")
        page.get_by_role("button", name="Show what would change").click()
        flipped = page.get_by_role("region", name="What would change")
        expect(flipped.get_by_role("link", name="SELECT name, email FROM customers").first).to_be_visible()
        expect(flipped.get_by_text("allowed → refused").first).to_be_visible()


def test_a_token_is_revoked_in_two(desk: Desk, here: str) -> None:
    with clicks(desk.page(), here, 2) as page:
        page.get_by_role("link", name="Connect", exact=True).click()
        page.get_by_role("button", name="Revoke Assistant").click()
        expect(page.get_by_role("table", name="Tokens")).to_contain_text("revoked")


def test_one_query_is_proved_to_an_auditor_in_three(desk: Desk, here: str) -> None:
    with clicks(desk.page("carl"), here, 3) as page:
        page.get_by_role("link", name="Audit", exact=True).click()
        page.get_by_role("link", name="DELETE FROM payments").first.click()
        page.get_by_role("link", name="Check its proof").click()
        expect(page.get_by_role("heading", name="Proved", exact=True)).to_be_visible()
        expect(page.get_by_role("heading", name="DECIDED")).to_be_visible()
