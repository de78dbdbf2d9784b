"""Several people for one decision: reviewers of a group, a grant for a shape, a publication that a second person confirms."""

from playwright.sync_api import expect

from gatewayd.control.projects.change import SET_TERMS
from gatewayd.control.projects.terms import ProjectTerms, terms_text
from tests.console.deciding import deciders, held, shop
from tests.console.desk import Desk
from tests.console.world import World


def set_terms(world: World, project: str, terms: ProjectTerms) -> None:
    world.do(lambda console: console.store.run(SET_TERMS, world.org, project, terms_text(terms)))


def test_a_group_and_its_rule_are_made_on_the_page_and_two_people_approve(desk: Desk, world: World) -> None:
    here = shop(world)
    page = desk.page("ada")
    page.goto(f"/projects/{here}/reviewers")
    page.get_by_label("Name of a new group").fill("Finance")
    page.get_by_role("button", name="Make the group").click()
    for email in ("ada@example.com", "grace@example.com"):
        page.get_by_label("Mail address of somebody who may approve").fill(email)
        page.get_by_role("button", name="Add to Finance").click()
    page.get_by_label("Mail address of somebody who may approve").fill("carl@example.com")
    page.get_by_role("button", name="Add to Finance").click()
    expect(page.get_by_role("alert")).to_contain_text("may not approve in this project")
    page.get_by_label("Tables").fill("orders")
    page.get_by_role("button", name="Add the rule").click()
    expect(page.get_by_role("alert")).to_contain_text("expected schema.table")
    page.get_by_label("Tables").fill("public.*")
    page.get_by_label("How many").select_option("all")
    page.get_by_role("button", name="Add the rule").click()
    expect(page.get_by_role("table", name="Rules")).to_contain_text("all of Finance")
    grace, ada = deciders(desk, f"/projects/{here}/approvals/{held(world, here)}")
    grace.get_by_role("button", name="Approve once").click()
    expect(grace.get_by_text("Your approval is kept")).to_be_visible()
    expect(ada.get_by_text("by Grace Hopper; asked: Ada Lovelace")).to_be_visible()  # by itself
    ada.get_by_role("button", name="Approve once").click()
    expect(ada.get_by_text("Grace Hopper, Ada Lovelace")).to_be_visible()
    page.goto(f"/projects/{here}/reviewers")
    page.get_by_role("button", name="Remove Grace Hopper from Finance").click()
    page.get_by_role("button", name="Remove Ada Lovelace from Finance").click()
    expect(page.get_by_text("nobody can approve what this rule is about")).to_be_visible()
    page.goto(f"/projects/{here}/approvals/{held(world, here, 'DELETE FROM orders WHERE id = 8')}")
    expect(page.get_by_text("Nobody can approve this.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve once")).to_have_count(0)
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("heading", name="Decided")).to_be_visible()


def test_a_shape_is_granted_listed_and_revoked_without_script(desk: Desk, world: World) -> None:
    here = shop(world)
    second = [held(world, here, f"DELETE FROM orders WHERE id = {number}") for number in (1, 2)][1]
    page = desk.page("grace", java_script_enabled=False)
    page.goto(f"/projects/{here}/approvals/{second}")
    expect(page.get_by_text("Approve this shape of statement")).to_have_count(0)  # the project does not say so
    set_terms(world, here, ProjectTerms(shape_grants=True))
    page.goto(f"/projects/{here}/approvals/{second}")
    page.get_by_text("Approve this shape of statement for a time").click()
    shown = page.get_by_role("table", name="Requests of this shape")
    assert shown.get_by_role("link").count() == 2
    expect(shown).to_contain_text("WHERE id = 1")
    page.get_by_label("Rows at most, each time").fill("4")
    page.get_by_role("button", name="Approve, and grant the shape").click()
    expect(page.get_by_text("Approved, and granted for this shape")).to_be_visible()
    page.get_by_role("link", name="Approvals").first.click()
    page.get_by_role("link", name="Grants", exact=True).click()
    row = page.get_by_role("table", name="Grants").get_by_role("row").nth(1)
    expect(row).to_contain_text("WHERE id = 2")
    expect(row).to_contain_text("0 of 10")
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Revoked. From now on")).to_be_visible()
    expect(page.get_by_role("button", name="Revoke")).to_have_count(0)


def test_a_publication_waits_until_a_second_person_has_looked_at_it(desk: Desk, world: World) -> None:
    here = shop(world)
    set_terms(world, here, ProjectTerms(second_publisher=True))
    ada, emmy = desk.page("ada"), desk.page("emmy")
    ada.goto(f"/projects/{here}/policy")
    ada.get_by_label("Policy as YAML").fill("databases:\n  - name: main\n    table_access: {default: deny}\n")
    ada.get_by_role("button", name="Check, and show in the tables").click()
    ada.get_by_label("Note: why").fill("nothing is read")
    ada.get_by_role("button", name="Propose").click()
    expect(ada.get_by_role("heading", name="Publication that waits", level=1)).to_be_visible()
    expect(ada.get_by_text("Emmy Noether can confirm it")).to_be_visible()
    expect(ada.get_by_role("button", name="Confirm and publish")).to_have_count(0)
    emmy.goto(f"/projects/{here}/policy")
    emmy.get_by_role("link", name="A publication waits for a second person").click()
    expect(emmy.get_by_text("default: deny").first).to_be_visible()
    emmy.get_by_role("button", name="Show what would change").click()
    expect(emmy.get_by_text("calls would be answered otherwise")).to_be_visible()
    emmy.get_by_role("button", name="Confirm and publish").click()
    expect(emmy.get_by_role("heading", name="Version 2", exact=True)).to_be_visible()
