"""From a new project to an agent's first query, as a person does it: every step in the browser, the last in the client."""

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.conftest import Postgres
from tests.console.desk import Desk, until_shown

ROLE = "CREATE ROLE first_use LOGIN PASSWORD 'first-use'; "
SHOP = "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1), (2); GRANT SELECT ON orders TO first_use"


def click(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_from_a_new_project_to_the_first_query(desk: Desk, postgres: Postgres, tmp_path: Path) -> None:
    dsn = postgres.create_database(ROLE + SHOP, user="first_use", password="first-use")
    page = desk.page()
    page.goto("/")
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Name").fill("First use")
    click(page, "Make the project")
    expect(page.get_by_role("heading", name="From here to the first query")).to_be_visible()

    page.get_by_role("link", name="Set the address").click()
    page.get_by_role("textbox", name="Address").fill("mysql://nobody")
    click(page, "Set and test")
    expect(page.get_by_role("alert")).to_contain_text("Address:")
    page.get_by_role("textbox", name="Address").fill(dsn)
    click(page, "Set and test")
    expect(page.get_by_role("table", name="What the test found")).to_be_visible(timeout=60_000)
    expect(page.locator("body")).not_to_contain_text("first-use")

    page.get_by_role("link", name="Connect", exact=True).click()
    page.get_by_label("Name").fill("My agent")
    click(page, "Make the token")
    token = page.locator("#token-text").inner_text()
    assert re.fullmatch(r"gw_live_[0-9a-f]{32}_[0-9a-f]{6}", token)
    script = tmp_path / "agent.py"
    script.write_text(page.locator("#for-python").text_content() or "", encoding="utf-8")
    assert token in script.read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert '"rows"' in done.stdout

    page.goto(page.url)
    expect(page.locator("body")).not_to_contain_text(token)
    page.get_by_role("link", name="Overview").click()
    until_shown(page, page.locator("dl.figures", has_text=re.compile(r"Calls\s*1(?!\d)")))
    page.get_by_role("link", name="Connect", exact=True).click()
    click(page, "Revoke My agent")
    expect(page.get_by_role("status")).to_contain_text("Revoked")
    again = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode != 0
