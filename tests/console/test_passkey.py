"""A passkey, with Chromium's own virtual authenticator: added, signed in with, removed."""

from typing import Final

from playwright.sync_api import Page, expect

from tests.console.desk import Desk

AUTHENTICATOR: Final = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def click(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_a_passkey_is_added_signs_in_and_is_removed(desk: Desk) -> None:
    page = desk.page("grace")
    authenticator = page.context.new_cdp_session(page)
    authenticator.send("WebAuthn.enable")
    authenticator.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    page.goto("/account")
    click(page, "Add a passkey")
    expect(page.get_by_role("table", name="Passkeys")).to_be_visible()
    page.context.clear_cookies()  # the session that the other tests use goes on
    page.goto("/sign-in")
    click(page, "Sign in with a passkey")
    expect(page.get_by_role("heading", level=1)).to_have_text("Projects")
    expect(page.get_by_role("link", name="Grace Hopper")).to_be_visible()
    page.goto("/account")
    page.get_by_role("table", name="Passkeys").locator("summary").click()
    page.get_by_role("table", name="Passkeys").get_by_role("button").click()
    expect(page.get_by_role("status").first).to_contain_text("Removed")
    expect(page.get_by_text("None yet. A passkey signs you in")).to_be_visible()
