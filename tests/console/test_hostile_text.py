"""Script, HTML, hidden and right-to-left characters and very long names in all that somebody typed or sent: text, on every page.

Forms refuse much of it. So it is written into the store behind them: what a page shows must not rest on what a form refused.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium

from tests.conftest import reserved_port
from tests.console.desk import NARROW, Desk, sideways
from tests.console.pages import PAGES, PageCase
from tests.console.running import copied
from tests.console.world import World

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)><b class=evil>{{ 7 * 7 }}\u202egnp.exe\u200b" + "W" * 180
MARKS = ("<script>alert(1)</script>", "U+202E")
LITERAL = EVIL.replace("'", "''")
# Every column of text that a page may show. What has a form that code relies on (JSON, ids, words of a list) stays as it is.
COLUMNS = (
    "people.name", "people.email", "organisations.name", "sessions.agent", "sessions.address", "passkeys.name",
    "one_time_links.email", "projects.name", "projects.state_note", "policy_versions.note", "databases.host_shown",
    "agent_tokens.name", "agent_tokens.shown", "api_keys.name", "api_keys.shown", "gateways.name", "gateways.standing_note",
    "gateways.state_reason", "gateways.version", "gateways.key_id", "gateway_states.reason", "taints.shown", "taints.source",
    "org_events.action", "policy_proposals.note", "reviewer_groups.name", "reviewer_rules.databases", "reviewer_rules.tables",
    "approval_votes.note", "approval_votes.person_name", "shape_grants.made_name", "shape_grants.note",
    "notification_channels.name", "notification_channels.host_shown", "notification_deliveries.answer",
    "oidc_providers.name", "oidc_providers.issuer", "oidc_providers.client_id",
)  # fmt: skip
# Texts inside of JSON: `{0}` is the text.
JSON = {
    "databases": (
        "check_result = json_build_array(json_build_object('check', '{0}', 'outcome', 'FAIL', 'found', '{0}', 'remedy', '{0}',"
        " 'database', '{0}'))::text"
    ),
    "org_events": "details = json_build_object('{0}', '{0}')::text",
    "audit_findings": "kind = '{0}', body = json_build_object('{0}', '{0}')::text",
    "gateways": (
        "public_urls = json_build_array('https://{0}')::text, reported_databases = json_build_array(json_build_object("
        "'name', '{0}', 'reachable', false, 'catalog_revision', 1, 'relations', 1))::text"
    ),
}
WITHOUT_STRANGERS = {"new-project", "settings"}
"""Pages whose own part shows only fields to type into, and words of ours."""
WITHOUT_FIELDS = """() => {
  const copy = document.documentElement.cloneNode(true);
  copy.querySelectorAll("input, textarea").forEach((each) => each.remove());  // what is typed there comes back as it was
  return copy.outerHTML;
}"""
SHOWN = [case for case in PAGES if case.status == 200 and case.who == "ada"]


@pytest.fixture(scope="module")
def evil(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A copy of the world, in which everything that can be text is the same text."""
    columns = [each.split(".") for each in COLUMNS]
    changes = [f"UPDATE {table} SET {name} = '{LITERAL}' WHERE {name} IS NOT NULL;" for table, name in columns]
    changes += [f"UPDATE {table} SET {values.format(LITERAL)};" for table, values in JSON.items()]
    with reserved_port() as port, copied(world, port, tmp_path_factory.mktemp("evil")) as evil:
        evil.postgres.execute("\n".join(changes), evil.dsn)
        yield evil


@pytest.fixture
def target(evil: World, browser: Chromium) -> Iterator[Desk]:
    desk = Desk(evil, browser)
    yield desk
    desk.leave()


@pytest.mark.parametrize("case", SHOWN, ids=[case.name for case in SHOWN])
def test_it_is_text(target: Desk, evil: World, case: PageCase) -> None:
    page = target.page(case.who)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    answer = page.goto(evil.path(case.path))
    assert answer is not None
    assert answer.status == 200
    assert page.locator(".evil, main script, img").count() == 0
    assert dialogs == []
    shown = page.locator("body" if case.name in WITHOUT_STRANGERS else "main").inner_text()
    assert all(mark in shown for mark in MARKS)
    html = page.evaluate(WITHOUT_FIELDS)
    assert "\u202e" not in html
    assert "\u200b" not in html
    page.set_viewport_size(NARROW)
    assert sideways(page) == []
