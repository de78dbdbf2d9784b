"""The whole story, as two people and an agent live it: from a control plane that nobody has opened to a proof of one write.

People use the pages alone; the agent is the official SDK, with the token that a page showed; the database is asked itself.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect

from tests.conftest import Postgres, reserved_port
from tests.console.agent import PATIENCE_S, Agent
from tests.console.desk import Desk, until_shown
from tests.console.running import started
from tests.console.world import World

ROLE = "CREATE ROLE story LOGIN PASSWORD 'story-of-the-shop'; "
SHOP = """
CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL);
INSERT INTO orders VALUES (1, 'open'), (2, 'open'), (3, 'paid');
GRANT SELECT, UPDATE ON orders TO story;
"""
WRITE = "UPDATE orders SET status = 'paid' WHERE id = 2"
WHY = "the customer has paid order 2"
# The SDK's HTTP transport leaves its response generators to the collector, which then warns; nothing of ours is in them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]


@pytest.fixture
def unopened(postgres: Postgres, browser: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str]]:
    """The desk before a control plane of its own, and the link that makes its first owner."""
    with reserved_port() as port, started(postgres, port, tmp_path_factory.mktemp("story")) as (world, link):
        desk = Desk(world, browser)
        yield desk, link
        desk.leave()


def test_from_the_first_link_to_a_proof_of_an_approved_write(unopened: tuple[Desk, str], postgres: Postgres) -> None:
    desk, link = unopened
    dsn = postgres.create_database(ROLE + SHOP, user="story", password="story-of-the-shop")
    owner = signed_up(desk, link)
    home = connected_database(owner, dsn)
    token = made_token(owner)

    with ThreadPoolExecutor(1) as thread:
        agent = Agent(f"{desk.world.url}/mcp/{token}", thread)
        assert agent.query("SELECT id FROM orders WHERE status = 'open' ORDER BY id", "what is open?")["rows"] == [
            {"id": 1},
            {"id": 2},
        ]
        refused = agent.query(WRITE, WHY)
        assert (refused["allowed"], refused["policy_rule"]) == (False, "table_access")

        saw_the_refusal(owner, home)
        published_what_asks(owner, home)
        reviewer = joined(desk, owner)
        reviewer.goto(f"{home}/approvals")
        expect(reviewer.get_by_role("heading", name="Nothing waits")).to_be_visible()

        answer = agent.asks(WRITE, WHY)
        approved(owner, reviewer, home)
        found = answer.result(PATIENCE_S)
        if found.get("status") == "awaiting_approval":  # it waited as long as a gateway lets it, and asks again as it is told
            found = agent.query(found["resume"]["sql"], found["resume"]["intent"])
        assert found["allowed"] is True

    assert postgres.query("SELECT id, status FROM orders ORDER BY id", dsn) == [
        {"id": 1, "status": "open"},
        {"id": 2, "status": "paid"},
        {"id": 3, "status": "paid"},
    ]
    proved(desk.world, reviewer)


def click(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def follow(page: Page, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).click()


def signed_up(desk: Desk, link: str) -> Page:
    page = desk.page(None)
    page.goto(link)
    page.get_by_label("Name of your organisation").fill("The shop")
    page.get_by_label("Mail address").fill("ada@example.com")
    page.get_by_label("Your name").fill("Ada Lovelace")
    page.get_by_label("Password").fill("correct horse battery")
    click(page, "Begin")
    expect(page.get_by_role("heading", name="No project yet")).to_be_visible()
    return page


def connected_database(page: Page, dsn: str) -> str:
    """A new project with its database; its address."""
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Name").fill("Shop")
    click(page, "Make the project")
    home = page.url
    follow(page, "Set the address")
    page.get_by_role("textbox", name="Address").fill(dsn)
    click(page, "Set and test")
    expect(page.get_by_role("table", name="What the test found")).to_be_visible(timeout=60_000)
    return home


def made_token(page: Page) -> str:
    follow(page, "Connect")
    page.get_by_label("Name").fill("Assistant")
    click(page, "Make the token")
    token = page.locator("#token-text").inner_text()
    expect(page.get_by_role("region", name="Configuration for Claude Code")).to_contain_text(token)
    return token


def saw_the_refusal(page: Page, home: str) -> None:
    """In the audit, which is followed live: it comes without anybody loading the page again."""
    page.goto(f"{home}/audit")
    follow(page, "Follow live")
    row = page.get_by_role("row").filter(has_text=WRITE)
    expect(row).to_contain_text("denied", timeout=60_000)
    row.get_by_role("link", name=WRITE).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Refused statement")
    expect(page.get_by_text(WHY).first).to_be_visible()


def published_what_asks(page: Page, home: str) -> None:
    """Orders may be changed once a person agrees. What that would have done to the last week is looked at before."""
    page.goto(f"{home}/policy")
    until_shown(page, page.get_by_label("public.orders"))
    page.get_by_label("public.orders").select_option(label="read_write")
    expect(page.get_by_label("Policy as YAML")).to_have_value(re.compile(r"public\.orders: read_write"))
    page.get_by_label("Changes of rows").select_option(label="ask")
    expect(page.get_by_label("Policy as YAML")).to_have_value(re.compile("row_changes: true"))
    click(page, "Show what would change")
    flipped = page.get_by_role("region", name="What would change")
    expect(flipped.get_by_role("row").filter(has_text=WRITE)).to_contain_text("now asks a person")
    expect(flipped.get_by_text("SELECT id FROM orders")).to_have_count(0)
    page.get_by_label("Note: why").fill("orders may be changed, when somebody has looked")
    click(page, "Publish")
    expect(page.get_by_role("heading", level=1)).to_have_text("Version 2")
    follow(page, "Gateways")
    here = page.get_by_role("table", name="Gateways").get_by_role("row").filter(has_text="runs here")
    until_shown(page, here.filter(has_text="enforcing", has_not_text="newest is"))


def joined(desk: Desk, owner: Page) -> Page:
    """A second person, in a browser of her own."""
    follow(owner, "People")
    owner.get_by_label("Mail address").fill("grace@example.com")
    owner.get_by_label("Role", exact=True).select_option("reviewer")
    click(owner, "Make an invitation")
    page = desk.page(None)
    page.goto(owner.locator("#invitation").inner_text())
    page.get_by_label("Your name").fill("Grace Hopper")
    page.get_by_label("Password").fill("battery staple correct")
    click(page, "Join")
    return page


def approved(owner: Page, reviewer: Page, home: str) -> None:
    """The write appears by itself. Its owner may not approve what her own token asks for; the second person does."""
    waiting = reviewer.get_by_role("link", name="Changes 1 row")
    expect(waiting).to_be_visible(timeout=60_000)
    owner.goto(home)
    follow(owner, "Changes 1 row")
    expect(owner.get_by_text("somebody else approves it")).to_be_visible()
    expect(owner.get_by_role("button", name="Approve once")).to_have_count(0)
    waiting.click()
    expect(reviewer.get_by_role("region", name="SQL")).to_have_text(WRITE)
    expect(reviewer.get_by_text(WHY)).to_be_visible()
    expect(reviewer.get_by_label("Rows at most")).to_have_value("1")
    click(reviewer, "Approve once")
    expect(owner.get_by_text("Grace Hopper")).to_be_visible()  # where she looks at it, by itself
    owner.goto(f"{home}/audit")
    until_shown(owner, owner.get_by_role("row").filter(has_text="AS counted").filter(has_text="preview, by the gateway").first)


def proved(world: World, reviewer: Page) -> None:
    """From the request to what ran, and from there to a proof: the page checks it in the browser. The engine signs a head a
    minute, and a last one when it stops."""
    until_shown(reviewer, reviewer.get_by_text("executed, 1 row"))
    reviewer.locator("#live dd a").click()
    until_shown(reviewer, reviewer.locator("main .badge", has_text="executed"))
    expect(reviewer.locator("#sql")).to_have_text(WRITE)
    world.stop_engines()
    until_shown(reviewer, reviewer.get_by_role("link", name="Check its proof"))
    follow(reviewer, "Check its proof")
    expect(reviewer.get_by_role("heading", name="Proved", exact=True)).to_be_visible()
    for event in ("ATTEMPTED", "DECIDED", "EXECUTED"):
        expect(reviewer.get_by_role("heading", name=event)).to_be_visible()
