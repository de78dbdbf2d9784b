"""What the pages do, as a person does it: makes, revokes, pauses, renames; and what is refused, told at its form."""

import re
from html import unescape
from urllib.parse import urljoin

from playwright.sync_api import Page, expect

from tests.console.desk import Desk
from tests.console.pages import PAGES


def click(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def opened(page: Page, name: str) -> None:
    """A `ui.confirm`: its first button opens it."""
    page.locator("main summary", has_text=name).first.click()


def made_project(page: Page, name: str) -> str:
    page.goto("/new-project")
    page.get_by_label("Name").fill(name)
    click(page, "Make the project")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    return page.url


def test_a_project_is_paused_with_a_reason_and_goes_on(desk: Desk) -> None:
    page = desk.page()
    made_project(page, "Paused")
    opened(page, "Pause")
    page.get_by_label("Why").fill("a migration")
    click(page, "Pause the project")
    expect(page.get_by_role("status")).to_contain_text("Paused.")
    expect(page.get_by_text("a migration")).to_be_visible()
    page.reload()
    expect(page.get_by_role("status")).to_have_count(0)
    click(page, "Resume Paused")
    expect(page.get_by_role("status")).to_contain_text("Resumed")


def test_what_a_form_refuses_is_told_and_what_was_typed_is_kept(desk: Desk) -> None:
    page = desk.page()
    page.goto("/new-project")
    page.get_by_label("Name").fill("Two words")
    page.get_by_label("Databases").fill("a/b")
    click(page, "Make the project")
    expect(page.get_by_role("alert")).to_contain_text("Databases:")
    expect(page.get_by_label("Name")).to_have_value("Two words")
    page.get_by_label("Name").fill("Shop")
    page.get_by_label("Databases").fill("main")
    click(page, "Make the project")
    expect(page.get_by_role("alert")).to_contain_text("a project of that name is there already")


def test_a_token_is_shown_once_and_revoked(desk: Desk) -> None:
    page = desk.page()
    home = made_project(page, "Tokens")
    page.goto(f"{home}/connect")
    page.get_by_label("Name").fill("x")
    page.get_by_label("Valid for days").fill("many")
    click(page, "Make the token")
    expect(page.get_by_role("alert")).to_contain_text("Valid for days:")
    page.get_by_label("Valid for days").fill("")
    click(page, "Make the token")
    token = page.locator("#token-text").inner_text()
    assert page.locator("#for-claude-code").text_content() is not None
    assert token in (page.locator("#for-claude-code").text_content() or "")
    page.goto(f"{home}/connect")
    assert token not in page.content()
    click(page, "Revoke x")
    expect(page.get_by_role("table", name="Tokens")).to_contain_text("revoked")


def test_a_gateway_is_enrolled_by_a_command_that_is_shown_once(desk: Desk) -> None:
    page = desk.page()
    home = made_project(page, "Enrolled")
    page.goto(f"{home}/gateways")
    page.get_by_label("Name").fill("edge")
    click(page, "Make the command")
    expect(page.locator("#enrol-command")).to_contain_text("GATEWAY_ENROL_TOKEN=")
    page.goto(f"{home}/gateways")
    expect(page.locator("#enrol-command")).to_have_count(0)


def test_a_key_and_an_invitation_are_shown_once(desk: Desk) -> None:
    page = desk.page()
    page.goto("/keys")
    page.get_by_label("Name").fill("nightly")
    click(page, "Make the key")
    expect(page.get_by_role("alert")).to_contain_text("scope")
    page.get_by_label("Name").fill("nightly")
    page.get_by_label("project.read").check()
    click(page, "Make the key")
    expect(page.locator("#key-text")).to_contain_text("gk_")
    page.goto("/keys")
    click(page, "Revoke nightly")
    expect(page.get_by_role("status")).to_contain_text("Revoked")
    page.goto("/people")
    page.get_by_label("Mail address").fill("zoe@example.com")
    click(page, "Make an invitation")
    expect(page.locator("#invitation")).to_contain_text("/welcome/")
    click(page, "Withdraw the invitation of zoe@example.com")
    expect(page.get_by_role("status")).to_be_visible()


def test_terms_and_roles_of_a_project_are_set(desk: Desk) -> None:
    page = desk.page()
    home = made_project(page, "Terms")
    page.goto(f"{home}/settings")
    page.get_by_label("Minutes that a request may be answered").fill("9999")
    click(page, "Save")
    expect(page.get_by_role("alert")).to_contain_text("Minutes that a request may be answered:")
    page.get_by_label("Minutes that a request may be answered").fill("15")
    page.get_by_label("A policy is published by a second person").check()
    click(page, "Save")
    expect(page.get_by_role("status")).to_have_text("Saved.")
    expect(page.get_by_label("A policy is published by a second person")).to_be_checked()
    expect(page.get_by_label("Minutes that a request may be answered")).to_have_value("15")
    page.get_by_label("Mail address").fill("nobody@example.com")
    click(page, "Give the role")
    expect(page.get_by_role("alert")).to_contain_text("invite them first")
    page.get_by_label("Mail address").fill("Mary@example.com")
    click(page, "Give the role")
    expect(page.get_by_role("table", name="Roles in this project")).to_contain_text("Mary Somerville")
    other = desk.page("mary")
    other.goto("/")
    expect(other.get_by_role("table", name="Projects")).to_contain_text("Terms")
    click(page, "Remove Mary Somerville")
    other.reload()
    expect(other.get_by_role("heading", name="No project that you may see")).to_be_visible()


def test_a_password_signs_in_and_out(desk: Desk) -> None:
    page = desk.page(None)
    page.goto("/people")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Mail address").fill("ada@example.com")
    page.get_by_label("Password").fill("wrong wrong wrong")
    click(page, "Sign in")
    expect(page.get_by_role("alert")).to_contain_text("address or password is wrong")
    page.get_by_label("Password").fill("correct horse battery")
    click(page, "Sign in")
    expect(page.get_by_role("heading", level=1)).to_have_text("People")
    click(page, "Sign out")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_narrow_the_links_are_behind_a_button(desk: Desk) -> None:
    page = desk.page(viewport={"width": 360, "height": 740})
    page.goto("/")
    people = page.get_by_role("link", name="People", exact=True)
    expect(people).to_be_hidden()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(people).to_be_visible()
    page.keyboard.press("Escape")
    expect(people).to_be_hidden()
    click(page, "Menu")
    people.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("People")


def test_every_link_leads_somewhere(desk: Desk) -> None:
    """One of each kind: links that differ in an id or in what they ask for are of one kind."""
    page = desk.page()
    kinds: dict[str, str] = {}
    for case in PAGES:
        if case.who == "ada" and case.status == 200:
            at = desk.world.url + desk.world.path(case.path)
            for address in re.findall(r'<a\b[^>]* href="([^"]*)"', page.request.get(at).text()):
                link = urljoin(at, unescape(address)).partition("#")[0]
                if link.startswith(desk.world.url):
                    kinds[re.sub("[0-9A-Z]{26}", "", link.partition("?")[0])] = link
    found = {link: page.request.get(link).status for link in sorted(kinds.values())}
    assert len(found) > len(PAGES) / 2
    assert {link: status for link, status in found.items() if status >= 400} == {}
