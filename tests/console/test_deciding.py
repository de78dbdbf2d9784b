"""Deciding about a held write: by keyboard alone, without script, and when somebody else was quicker."""

from playwright.sync_api import expect

from gatewayd.approvals.messages import Preview
from tests.console.deciding import deciders, held, shop
from tests.console.desk import Desk
from tests.console.world import World


def test_a_write_is_denied_by_keyboard_alone_without_script(desk: Desk, world: World) -> None:
    here = shop(world)
    approval = held(world, here)
    page = desk.page("grace", java_script_enabled=False)
    page.goto(f"/projects/{here}/approvals/{approval}")
    page.get_by_label("Why not").focus()
    page.keyboard.type("not today")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("denied", exact=True)).to_be_visible()
    expect(page.get_by_text("not today")).to_be_visible()


def test_what_waits_appears_and_goes_by_itself(desk: Desk, world: World) -> None:
    here = shop(world)
    page = desk.page("grace")
    page.goto(f"/projects/{here}/approvals")
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_visible()
    approval = held(world, here)
    row = page.get_by_role("link", name="Deletes 3 rows")
    expect(row).to_be_visible()
    other = desk.page("ada")
    other.goto(f"/projects/{here}/approvals/{approval}")
    other.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_visible()


def test_who_decides_after_somebody_else_is_told_and_changes_nothing(desk: Desk, world: World) -> None:
    here = shop(world)
    approval = held(world, here)
    grace, ada = deciders(desk, f"/projects/{here}/approvals/{approval}")
    grace.get_by_label("Why not").fill("no")  # in use, so the page does not change under her hands
    ada.get_by_role("button", name="Approve once").click()
    expect(ada.get_by_role("heading", name="Decided")).to_be_visible()
    expect(grace.get_by_text("something has changed here")).to_be_visible()
    grace.get_by_role("button", name="Deny").click()
    expect(grace.get_by_text("Your decision came too late")).to_be_visible()
    expect(grace.get_by_text("approved", exact=True)).to_be_visible()


def test_what_differs_from_the_one_approved_before_is_marked(desk: Desk, world: World) -> None:
    page = desk.page("grace")
    page.goto(world.path("/projects/{shop}/approvals/{waiting}"))
    marked = page.get_by_role("region", name="SQL").locator("mark.changed")
    assert marked.all_inner_texts() == ["4711"]
    expect(page.get_by_text("Differs in the")).to_contain_text("DELETE FROM orders WHERE id IN (17, 18, 19)")


def test_a_link_preview_and_a_get_decide_nothing(desk: Desk, world: World) -> None:
    here = shop(world)
    approval = held(world, here, preview=Preview(None, (), None, "no count"))
    page = desk.page("grace")
    for path in ("", "/decide", "/decide?decision=approve", "/statement"):
        page.request.get(f"{world.url}/projects/{here}/approvals/{approval}{path}")
    page.goto(f"/projects/{here}/approvals/{approval}")
    expect(page.get_by_role("button", name="Approve once")).to_be_visible()
    expect(page.get_by_label("Rows at most")).to_have_value("")


def test_who_may_not_decide_is_told_who_may(desk: Desk, world: World) -> None:
    here = shop(world)
    approval = held(world, here)
    page = desk.page("carl")
    page.goto(f"/projects/{here}/approvals/{approval}")
    expect(page.get_by_text("reviewers, admins and owners decide")).to_be_visible()
    expect(page.get_by_role("button", name="Approve once")).to_have_count(0)
