"""The policy's page: text and tables in step, a statement tried, what a change would flip, publishing, and going back."""

import re
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.console.desk import Desk
from tests.console.recorded import record
from tests.console.running import project
from tests.console.world import World


@pytest.fixture(scope="module")
def here(world: World) -> str:
    """A project of these tests, with a week of statements. They publish nothing in it: the next one begins with its policy."""
    made = world.do(lambda console: project(world, console, "Shop of policies", ("main",)))
    world.do(partial(_record, world, made))
    return f"/projects/{made}"


async def _record(world: World, made: str, console: object) -> dict[str, str]:
    return await record(console, world.postgres, world.url, world.org, made)  # type: ignore[arg-type]  # the console that `do` gives


def opened(desk: Desk, here: str, *, script: bool = True) -> Page:
    page = desk.page("ada", java_script_enabled=script)
    page.goto(f"{here}/policy")
    return page


def text(page: Page) -> str:
    return page.get_by_label("Policy as YAML").input_value()


def test_a_choice_in_the_tables_is_written_into_the_text(desk: Desk, here: str) -> None:
    page = opened(desk, here)
    page.get_by_label("public.orders").select_option(label="deny")
    expect(page.get_by_label("Policy as YAML")).to_have_value(re.compile(r"public\.orders: deny"))
    page.get_by_label("Changes of rows").select_option(label="ask")
    expect(page.get_by_label("Policy as YAML")).to_have_value(re.compile(r"row_changes: true"))
    page.get_by_label("card_number").select_option(label="partial, 4 (suggested)")
    expect(page.get_by_label("Policy as YAML")).to_have_value(re.compile(r"card_number: \{t: partial, keepEnd: 4\}"))


def test_what_is_typed_shows_in_the_tables_and_problems_at_their_line(desk: Desk, here: str) -> None:
    page = opened(desk, here)
    written = text(page).replace("tables: {}", "tables:\n        reports.*: deny")
    page.get_by_label("Policy as YAML").fill(written)
    expect(page.get_by_label("reports.*")).to_have_value(re.compile("deny"))
    page.get_by_label("Policy as YAML").fill(written.replace("deny", "denied"))
    expect(page.get_by_role("alert")).to_contain_text("line 6")
    expect(page.get_by_role("alert")).to_contain_text("reports.*: denied")


def test_all_of_it_works_without_script(desk: Desk, here: str) -> None:
    page = opened(desk, here, script=False)
    page.get_by_label("public.orders").select_option(label="deny")
    page.get_by_role("button", name="Write the tables' choices into the text").click()
    assert "public.orders: deny" in text(page)
    page.get_by_label("SQL").fill("SELECT id FROM orders")
    page.get_by_role("button", name="What becomes of it?").click()
    expect(page.get_by_role("status")).to_contain_text("refused by rule table_access")
    expect(page.get_by_role("status")).to_contain_text("public.orders: deny")
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_role("status")).to_contain_text("calls would be answered otherwise")


def test_a_button_pressed_at_once_after_a_choice_does_not_leave_it_out(desk: Desk, here: str) -> None:
    page = opened(desk, here)
    # Both in one turn of the browser: the choice cannot be in the text yet.
    page.get_by_label("public.customers").evaluate(
        """(select) => {
          select.value = [...select.options].find((each) => each.label === "deny").value;
          select.dispatchEvent(new Event("change", { bubbles: true }));
          document.querySelector('button[value="flips"]').click();
        }"""
    )
    flipped = page.get_by_role("region", name="What would change")
    expect(flipped.get_by_role("link", name="SELECT name, email FROM customers").first).to_be_visible()
    assert "public.customers: deny" in text(page)


def test_a_note_typed_while_the_page_asks_is_kept(desk: Desk, here: str) -> None:
    page = opened(desk, here)
    page.get_by_label("public.customers").select_option(label="deny")
    expect(page.get_by_label("Note: why")).to_be_visible()
    page.get_by_label("public.orders").evaluate(
        """(select) => {
          select.value = [...select.options].find((each) => each.label === "deny").value;
          select.dispatchEvent(new Event("change", { bubbles: true }));
          document.getElementById("note").value = "typed meanwhile";
        }"""
    )
    expect(page.get_by_label("Policy as YAML")).to_have_value(re.compile(r"public\.orders: deny"))
    expect(page.get_by_text("public.orders: deny").last).to_be_visible()  # the answer is on the page
    expect(page.get_by_label("Note: why")).to_have_value("typed meanwhile")


def test_publishing_needs_a_note_is_seen_in_the_history_and_can_be_taken_back(desk: Desk, world: World) -> None:
    here = "/projects/" + world.do(lambda console: project(world, console, "Published twice", ("main",)))
    page = opened(desk, here)
    before = text(page)
    page.get_by_label("Other tables").select_option(label="deny")
    publish = page.get_by_role("button", name="Publish")
    expect(publish).to_be_visible()
    publish.click()
    expect(page.get_by_role("alert")).to_contain_text("note")
    page.get_by_label("Note: why").fill("closed, but for what is listed")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Version 2")
    expect(page.get_by_role("row", name=re.compile("added: .*default: deny"))).to_be_visible()
    page.goto(f"{here}/policy/versions/1")
    page.get_by_role("link", name="Go back to this one").click()
    assert text(page) == before
    page.get_by_label("Note: why").fill("too much was closed")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Version 3")


def test_who_publishes_after_somebody_else_is_told(desk: Desk, world: World) -> None:
    here = "/projects/" + world.do(lambda console: project(world, console, "Published by two", ("main",)))
    ours, theirs = opened(desk, here, script=False), opened(desk, here, script=False)
    for page, level in ((theirs, "read_write"), (ours, "deny")):
        page.get_by_label("Other tables").select_option(label=level)
        page.get_by_role("button", name="Write the tables' choices into the text").click()
        page.get_by_label("Note: why").fill(level)
        page.get_by_role("button", name="Publish").click()
    expect(ours.get_by_role("alert")).to_contain_text("was published meanwhile")
    assert "default: deny" in text(ours)


def test_who_may_only_read_sees_it_and_changes_nothing(desk: Desk, here: str) -> None:
    page = desk.page("carl")
    page.goto(f"{here}/policy")
    expect(page.get_by_label("Policy as YAML")).not_to_be_editable()
    expect(page.get_by_role("button", name="Publish")).to_have_count(0)
    form: dict[str, str | float | bool] = {"yaml": "", "do": "publish"}
    headers = {"origin": desk.world.url}
    answer = page.request.post(f"{desk.world.url}{here}/policy", form=form, headers=headers)
    assert answer.status == 403


CUT = """() => [...document.querySelectorAll(".policy-views td[data-label=Level] select")].filter((each) => {
  const words = document.createElement("span"), style = getComputedStyle(each);
  words.style.cssText = `position: absolute; white-space: nowrap; font: ${style.font}`;
  words.textContent = each.selectedOptions[0].text;
  document.body.append(words);
  const arrow = 20, room = each.clientWidth - arrow - parseFloat(style.paddingLeft);
  const is_cut = words.getBoundingClientRect().width > room;
  words.remove();
  return is_cut;
}).map((each) => each.selectedOptions[0].text)"""
BROKEN = """() => [...document.querySelectorAll(".policy-views tbody th bdi")].flatMap((name) => [...name.childNodes])
  .filter((each) => each.nodeType === Node.TEXT_NODE).filter((word) => {
    const range = document.createRange();
    range.selectNodeContents(word);
    return range.getClientRects().length > 1;
  }).map((word) => word.data)"""


def test_levels_and_names_of_tables_have_room(desk: Desk, here: str) -> None:
    page = opened(desk, here)
    written = text(page).replace("default: read\n", "default: read_write\n", 1)
    page.get_by_label("Policy as YAML").fill(written)
    expect(page.get_by_label("public.orders")).to_contain_text("read_write, by default")
    assert page.evaluate(CUT) == []
    assert page.evaluate(BROKEN) == [], "no name is broken within a word"
