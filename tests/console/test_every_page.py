"""What holds for each page: told by role and name, for every reader, at every width, with and without script."""

import pytest
from playwright.sync_api import Page, expect

from tests.console.desk import MOST_BYTES, NARROW, Desk, axe_findings, sideways
from tests.console.pages import PAGES, PageCase
from tests.console.world import World

CASES = pytest.mark.parametrize("case", PAGES, ids=[case.name for case in PAGES])
STILL = [case for case in PAGES if "live=1" not in case.path]
"""Pages whose parts are not replaced by newer ones meanwhile."""
TABS, TABS_MOST = 10, 250


def opened(page: Page, world: World, case: PageCase) -> None:
    answer = page.goto(world.path(case.path))
    assert answer is not None
    assert answer.status == case.status
    assert len(answer.body()) < MOST_BYTES


def expect_its_parts(page: Page, case: PageCase) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(case.heading)
    assert case.heading in page.title()
    for part in case.parts:
        role, _, name = part.partition(":")
        expect(page.get_by_role(role, name=name, exact=True).first).to_be_visible()  # type: ignore[arg-type]


@CASES
def test_it_is_read_by_everybody(desk: Desk, world: World, case: PageCase) -> None:
    """By role and name, light and dark, wide and narrow, and nothing scrolls sideways at 360 pixels."""
    page = desk.page(case.who, color_scheme="light")
    opened(page, world, case)
    expect_its_parts(page, case)
    assert axe_findings(page) == []
    page.emulate_media(color_scheme="dark")
    assert axe_findings(page, "color-contrast") == []
    page.set_viewport_size(NARROW)
    assert sideways(page) == []
    page.evaluate("() => document.querySelectorAll('main details').forEach((each) => { each.open = true })")
    assert sideways(page) == []
    assert axe_findings(page) == []


@CASES
def test_it_works_without_script(desk: Desk, world: World, case: PageCase) -> None:
    page = desk.page(case.who, java_script_enabled=False, viewport=NARROW)
    opened(page, world, case)
    expect_its_parts(page, case)


FOLLOW = """() => {
  const wanted = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
    .filter((each) => !each.disabled && each.checkVisibility({visibilityProperty: true}));
  wanted.forEach((each, place) => { each.dataset.place = String(place); });
  window.reached = [];
  window.unseen = [];
  window.isOver = false;
  addEventListener("focusin", ({target}) => {
    if (window.isOver || target.dataset.place === undefined) return;
    window.reached.push(target.dataset.place);
    if (getComputedStyle(target).outlineStyle === "none") window.unseen.push(target.outerHTML);
  });
  addEventListener("focusout", ({relatedTarget}) => { if (relatedTarget === null) window.isOver = true; });
  return wanted.map((each) => each.dataset.place);
}"""


@pytest.mark.parametrize("case", STILL, ids=[case.name for case in STILL])
def test_everything_is_reached_by_keyboard(desk: Desk, world: World, case: PageCase) -> None:
    """Tab goes through all that can be used, visibly, in the order of the page, and out of it again."""
    page = desk.page(case.who)
    opened(page, world, case)
    wanted: list[str] = page.evaluate(FOLLOW)
    for _ in range(TABS_MOST // TABS):
        for _ in range(TABS):
            page.keyboard.press("Tab")
        if page.evaluate("() => window.isOver"):
            break
    assert page.evaluate("() => window.unseen") == []
    assert page.evaluate("() => window.reached") == wanted


LIST = """() => {
  const list = document.createElement("ul");
  for (let place = 0; place < 20; place++) list.append(Object.assign(document.createElement("li"), { textContent: "a row" }));
  document.querySelector("main").append(list);
}"""


def test_faults_are_found(desk: Desk) -> None:
    """What the tests above would not let pass."""
    page = desk.page(None, color_scheme="dark")
    page.goto("/sign-in")
    page.evaluate(LIST)
    assert not any(each.startswith("label:") for each in axe_findings(page))
    page.evaluate("() => document.querySelector('main li:last-child').replaceChildren(document.createElement('input'))")
    assert any(each.startswith("label:") for each in axe_findings(page)), "a row that is not like the others"
    page.evaluate("() => document.querySelector('main ul').remove()")
    page.evaluate("() => document.querySelector('label').remove()")
    assert any(each.startswith("label:") for each in axe_findings(page))
    page.evaluate("() => { document.querySelector('h1').style.color = '#333333' }")
    assert any(each.startswith("color-contrast:") for each in axe_findings(page, "color-contrast"))
    page.evaluate("() => { document.querySelector('h1').style.width = '500px' }")
    page.set_viewport_size(NARROW)
    assert sideways(page) != []
    page.evaluate("() => { document.body.setAttribute('style', 'color: red'); console.error('odd') }")
    assert any("Content Security Policy" in each for each in desk.complaints)
    assert any("odd" in each for each in desk.complaints)
    desk.complaints.clear()
