"""Thousands of rows: a page at a time, each below a megabyte."""

import pytest
from playwright.sync_api import expect

from tests.console.desk import MOST_BYTES, Desk
from tests.console.world import World

MANY = 10_000
# Each with an id of its own, above those of the people and projects that are there.
PEOPLE = """
INSERT INTO people (person_id, email, email_key, name, created_ms)
SELECT ('ffffffff-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, n || '@many.example', n || '@many.example', 'Person ' || n, 1
FROM generate_series(1, {0}) AS n;
INSERT INTO memberships (person_id, org_id, role, since_ms)
SELECT person_id, (SELECT org_id FROM organisations), 'member', 1 FROM people WHERE name LIKE 'Person %';
"""
PROJECTS = """
INSERT INTO projects (org_id, project_id, name, name_key, created_ms)
SELECT (SELECT org_id FROM organisations), ('ffffffff-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Many ' || n, 'm' || n, 1
FROM generate_series(1, {0}) AS n;
"""
GONE = """
DELETE FROM memberships WHERE person_id IN (SELECT person_id FROM people WHERE name LIKE 'Person %');
DELETE FROM people WHERE name LIKE 'Person %';
DELETE FROM projects WHERE name LIKE 'Many %';
"""


@pytest.mark.parametrize(("path", "rows", "first"), [("/people", PEOPLE, "Ada Lovelace"), ("/", PROJECTS, "Shop")])
def test_a_page_at_a_time(desk: Desk, world: World, path: str, rows: str, first: str) -> None:
    world.postgres.execute(rows.format(MANY), world.dsn)
    try:
        page = desk.page()
        answer = page.goto(path)
        assert answer is not None
        assert len(answer.body()) < MOST_BYTES
        expect(page.locator("main table").first).to_contain_text(first)
        page.get_by_role("link", name="More").click()
        expect(page.locator("main table").first).not_to_contain_text(first)
        expect(page.get_by_role("link", name="More")).to_be_visible()
    finally:
        world.postgres.execute(GONE, world.dsn)
