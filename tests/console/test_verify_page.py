"""The page that checks a proof: in the browser alone, without a network, and as strict as the command line."""

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.console.desk import Desk
from tests.console.world import World

WEAK = "weak+7c98233a+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
"""A point of small order: anybody can sign under it."""


def opened(desk: Desk, world: World) -> Page:
    page = desk.page("carl")
    page.goto(world.path("/projects/{shop}/audit/queries/{query}/verify"))
    return page


def test_it_needs_no_network_and_refuses_what_was_changed(desk: Desk, world: World) -> None:
    page = opened(desk, world)
    expect(page.get_by_role("heading", name="Proved", exact=True)).to_be_visible()
    page.context.set_offline(True)
    proof, keys = page.get_by_label("or its text"), page.get_by_label("Keys that you trust, one a line")
    good, key = proof.input_value(), keys.input_value()
    for text, trusted, says in (
        (good.replace("index ", "index 1", 1), key, "its row is not the one that the head is over"),
        (good.replace("extra ey", "extra eX", 1), key, "part 1"),
        (good, "", "no key"),
        (good, WEAK, "small order"),
        ("nothing", key, "begins with"),
    ):
        proof.fill(text)
        keys.fill(trusted)
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_role("heading", name="Not proved")).to_be_visible()
        expect(page.locator("#outcome")).to_contain_text(says)
    proof.fill(good)
    keys.fill(key)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="Proved", exact=True)).to_be_visible()
    page.context.set_offline(False)


def test_anybody_checks_a_file_and_sends_it_nowhere(desk: Desk, world: World, tmp_path: Path) -> None:
    page = opened(desk, world)
    text, key = page.get_by_label("or its text").input_value(), page.get_by_label("Keys that you trust, one a line").input_value()
    file = tmp_path / "query.proof"
    file.write_text(text)
    stranger = desk.page(None)
    stranger.goto("/verify")
    sent: list[str] = []
    stranger.on("request", lambda request: sent.append(request.url))
    stranger.get_by_label("Proof, as a file").set_input_files(file)
    stranger.get_by_label("Keys that you trust, one a line").fill(key)
    stranger.get_by_role("button", name="Check").click()
    expect(stranger.get_by_role("heading", name="Proved", exact=True)).to_be_visible()
    assert sent == []
