"""Every route of the table × who asks: somebody of another organisation, a member outside of the project, each role, nobody.

The table is the code's own: a new route is in here by itself. What one may not know of is one and the same 404.
"""

import re
from typing import Any

import httpx
import pytest
import trio

from gatewayd.control.people.rights import PEOPLE_ONLY, Role, in_organisation, in_project
from gatewayd.control.web.route import Route
from gatewayd.control.web.table import ROUTES
from tests.conftest import Postgres
from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.two_organisations import NOBODY, ROLES, TwoOrganisations, uuid

GUARDED = [route for route in ROUTES if route.door != "open"]
# What stands in a path beside the project: an id that nothing has, so that a route that is let in changes nothing here.
PLACES = {
    "session": NOBODY,
    "passkey": NOBODY,
    "invitation": NOBODY,
    "person": NOBODY,
    "key": NOBODY,
    "database": NOBODY,
    "token": NOBODY,
    "version": NOBODY,
    "gateway": NOBODY,
    "finding": NOBODY,
    "query": NOBODY,
    "approval": NOBODY,
    "bearer": NOBODY,
    "grant": NOBODY,
    "proposal": NOBODY,
    "group": NOBODY,
    "rule": NOBODY,
    "seq": "1",
    "channel": NOBODY,
    "provider": NOBODY,
}


async def ask(browser: Browser, route: Route, project: str, credentials: tuple[str, str] | None) -> httpx.Response:
    path = re.sub(r"<(\w+)>", lambda found: project if found[1] == "project" else PLACES[found[1]], route.path)
    if route.door == "key":
        headers = {"authorization": f"Bearer {credentials[1]}"} if credentials else {}
        return await browser.send(route.method, path, headers=headers | {"content-type": "application/json"})
    browser.cookies = {browser.session: credentials[0]} if credentials else {}
    if route.method == "GET":
        return await browser.get(path)
    return await browser.post(path)


def contents(postgres: Postgres, store_url: str) -> str:
    """Everything that a request without a right must not change."""
    tables: Any = postgres.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1", store_url)
    passing = {"sessions", "throttles", "leases", "audit_days", "api_keys"}  # seen, counted and used times move by themselves
    names = [row["tablename"] for row in tables if row["tablename"] not in passing and not row["tablename"].startswith("audit_")]
    whole = " UNION ALL ".join(f"SELECT '{name}' AS place, t::text AS row FROM \"{name}\" AS t" for name in names)
    return str(postgres.query(f"SELECT place, row FROM ({whole}) AS every ORDER BY 1, 2", store_url))


async def test_nobody_gets_past_a_door(plane: Plane, organisations: TwoOrganisations, postgres: Postgres, store_url: str) -> None:
    before = contents(postgres, store_url)
    for route in GUARDED:
        answer = await ask(plane.browser(), route, organisations.project, None)
        if route.door == "key":
            assert answer.status_code == 401, route.path
        else:
            assert answer.status_code == 303, route.path
            assert answer.headers["location"].startswith("/sign-in"), route.path
    assert contents(postgres, store_url) == before


async def test_what_belongs_to_another_organisation_is_not_there(
    plane: Plane, organisations: TwoOrganisations, postgres: Postgres, store_url: str
) -> None:
    before = contents(postgres, store_url)
    for route in [route for route in GUARDED if "<project>" in route.path]:
        for credentials in (organisations.people["stranger"], organisations.people["member"]):
            answer = await ask(plane.browser(), route, organisations.project, credentials)
            missing = await ask(plane.browser(), route, NOBODY, credentials)
            assert answer.status_code == missing.status_code == 404, route.path
            assert answer.text == missing.text, route.path
            assert "secret plans" not in answer.text
        answer = await ask(plane.browser(), route, organisations.other_project, organisations.people["owner"])
        assert answer.status_code == 404, route.path
    assert contents(postgres, store_url) == before


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_without_the_right_is_refused_and_one_with_it_passes_the_gate(
    plane: Plane, organisations: TwoOrganisations, postgres: Postgres, store_url: str, role: Role
) -> None:
    before = contents(postgres, store_url)
    let_in = []
    for route in [route for route in GUARDED if route.right is not None]:
        has_project = "<project>" in route.path
        rights = in_organisation(role) | (in_project(role, None) if has_project else frozenset())
        if route.door == "key":
            rights -= PEOPLE_ONLY
        if route.right in rights:
            let_in.append(route)
            continue
        answer = await ask(plane.browser(), route, organisations.project, organisations.people[role])
        expected = 404 if has_project and not in_project(role, None) else 403
        assert answer.status_code == expected, f"{role} {route.method} {route.path}"
    assert contents(postgres, store_url) == before
    for route in let_in:
        answer = await ask(plane.browser(), route, organisations.project, organisations.people[role])
        assert answer.status_code not in (401, 403, 500), f"{role} {route.method} {route.path}: {answer.text[:300]}"


async def test_a_key_for_one_project_opens_no_other(
    plane: Plane, organisations: TwoOrganisations, store_url: str, postgres: Postgres
) -> None:
    postgres.execute(f"UPDATE api_keys SET project_id = '{uuid(NOBODY)}'", store_url)
    for route in [route for route in GUARDED if route.door == "key" and "<project>" in route.path]:
        answer = await ask(plane.browser(), route, organisations.project, organisations.people["owner"])
        assert answer.status_code == 404, route.path
    listed = await plane.browser().send(
        "GET", "/api/v1/projects", headers={"authorization": f"Bearer {organisations.people['owner'][1]}"}
    )
    assert listed.json() == {"projects": []}


async def test_another_method_than_the_table_s_does_nothing(plane: Plane, organisations: TwoOrganisations) -> None:
    paths = {route.path for route in ROUTES}
    methods = {path: {route.method for route in ROUTES if route.path == path} for path in paths}
    async with trio.open_nursery() as nursery:
        for path in sorted(paths - {"/static/<digest>/<name>"}):
            for method in {"GET", "PUT", "DELETE", "PATCH"} - methods[path]:
                nursery.start_soon(refused, plane, method, re.sub(r"<\w+>", NOBODY, path))


async def refused(plane: Plane, method: str, path: str) -> None:
    answer = await plane.browser().send(method, path, headers={"sec-fetch-site": "same-origin"})
    # `/people/invite` also has the form of another route's path with a name in it
    assert answer.status_code in (404, 405), f"{method} {path}: {answer.status_code}"
