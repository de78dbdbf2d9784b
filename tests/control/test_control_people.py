"""People: the first owner, signing in and out, invitations, roles, keys, recovery; by HTTP against a running control plane."""

import re
from collections.abc import Mapping

import pytest
import trio

from gatewayd.audit.ids import ulid_text
from gatewayd.control.console import Console
from gatewayd.control.people.recovery import recovery_link
from gatewayd.control.people.rights import OF_ROLE, PEOPLE_ONLY, in_project, may_change_role
from gatewayd.control.people.throttle import FREE_TRIES, MOST_MS, pause_ms
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.store import Store
from tests.conftest import Postgres
from tests.control.browser import Browser
from tests.control.conftest import OWNER, PASSWORD, Plane, found, serving
from tests.control.invited import invited, link_in

SIGN_IN = {"email": OWNER, "password": PASSWORD}


async def test_the_first_link_makes_one_owner_and_then_is_gone(plane: Plane) -> None:
    assert plane.first_link is not None
    browsers = [plane.browser() for _ in range(4)]
    statuses: list[int] = []

    async def race(browser: Browser, number: int) -> None:
        form = {"organisation": "O", "email": f"p{number}@example.com", "name": "P", "password": PASSWORD}
        statuses.append((await browser.post(browser.path_of(plane.first_link or ""), form)).status_code)

    assert (await browsers[0].get(browsers[0].path_of(plane.first_link))).status_code == 200
    async with trio.open_nursery() as nursery:
        for number, browser in enumerate(browsers):
            nursery.start_soon(race, browser, number)
    assert statuses.count(303) == 1
    assert set(statuses) <= {303, 404, 409}
    assert (await browsers[0].get(browsers[0].path_of(plane.first_link))).status_code == 404


async def test_a_start_with_people_prints_no_link(settings: ControlSettings) -> None:
    async with serving(settings) as plane:
        await found(plane.browser(), plane.first_link)
    async with serving(settings) as plane:
        assert plane.first_link is None


async def test_signing_in_gives_a_new_session_and_signing_out_ends_it(plane: Plane, owner: Browser) -> None:
    browser = plane.browser()
    browser.cookies[browser.session] = "fixed-by-somebody-else"
    answer = await browser.post("/sign-in", SIGN_IN | {"next": "/account"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert browser.cookies[browser.session] != "fixed-by-somebody-else"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert OWNER in (await browser.get("/account")).text
    stolen = dict(browser.cookies)
    assert (await browser.post("/sign-out")).status_code == 303
    browser.cookies = stolen
    assert (await browser.get("/account")).headers["location"] == "/sign-in?next=/account"


@pytest.mark.parametrize("wrong", [SIGN_IN | {"password": "not the password"}, SIGN_IN | {"email": "nobody@example.com"}])
async def test_a_wrong_password_and_an_unknown_account_read_alike(plane: Plane, owner: Browser, wrong: Mapping[str, str]) -> None:
    answer = await plane.browser().post("/sign-in", wrong)
    assert answer.status_code == 400
    assert "address or password is wrong" in answer.text


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/a\nb", "evil"])
async def test_signing_in_leads_nowhere_else(plane: Plane, owner: Browser, target: str) -> None:
    answer = await plane.browser().post("/sign-in", SIGN_IN | {"next": target})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_guessing_is_slowed_even_many_at_once(plane: Plane, owner: Browser, store_url: str, postgres: Postgres) -> None:
    statuses: list[int] = []

    async def guess(number: int) -> None:
        answer = await plane.browser().post("/sign-in", SIGN_IN | {"password": f"guess number {number}"})
        statuses.append(answer.status_code)

    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(guess, number)
    assert statuses.count(400) <= FREE_TRIES["account"] + 2, "the first pauses, of 1 and 2 s, may pass meanwhile"
    assert set(statuses) <= {400, 429, 503}, "503: so many at one row that one gave up, and looked at nothing"
    postgres.execute("UPDATE throttles SET free_ms = 99999999999999", store_url)
    slowed = await plane.browser().post("/sign-in", SIGN_IN)
    assert slowed.status_code == 429
    assert int(slowed.headers["retry-after"]) >= 1


def test_pauses_double_and_end() -> None:
    assert [pause_ms(failures, 5) for failures in (4, 5, 6, 7)] == [0, 1000, 2000, 4000]
    assert pause_ms(500, 5) == MOST_MS


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "null"},
        {"origin": "https://evil.example"},
        {},
    ],
)
async def test_a_write_from_elsewhere_or_nowhere_is_refused(owner: Browser, headers: dict[str, str]) -> None:
    sent = {"content-type": "application/x-www-form-urlencoded"} | headers
    answer = await owner.send("POST", "/account/profile", b"name=Eve&zone=UTC", sent)
    assert answer.status_code == 403
    assert "Eve" not in (await owner.get("/account")).text


@pytest.mark.parametrize("headers", [{"sec-fetch-site": "same-origin"}, {"origin": "{url}"}])
async def test_a_write_from_our_own_page_passes(owner: Browser, headers: dict[str, str]) -> None:
    own = {name: value.replace("{url}", owner.url) for name, value in headers.items()}
    sent = {"content-type": "application/x-www-form-urlencoded"} | own
    answer = await owner.send("POST", "/account/profile", b"name=Ada+King&zone=Europe%2FVienna", sent)
    assert answer.status_code == 303
    assert "Ada King" in (await owner.get("/account")).text


async def test_a_new_password_ends_the_other_sessions(plane: Plane, owner: Browser) -> None:
    other = plane.browser()
    await other.post("/sign-in", SIGN_IN)
    assert (await owner.post("/account/password", {"password": "another long password"})).status_code == 303
    assert (await other.get("/account")).status_code == 303
    assert (await owner.get("/account")).status_code == 200
    assert (await plane.browser().post("/sign-in", SIGN_IN)).status_code == 400


async def test_what_needs_a_fresh_sign_in_asks_for_it(owner: Browser, store_url: str, postgres: Postgres) -> None:
    postgres.execute("UPDATE sessions SET proved_ms = 0", store_url)
    answer = await owner.post("/people/invite", {"email": "x@example.com", "role": "member"}, referer=f"{owner.url}/people")
    assert (answer.status_code, answer.headers["location"]) == (303, "/again?next=/people")
    assert (await owner.post("/again", {"password": "wrong password", "next": "/people"})).status_code == 400
    assert (await owner.post("/again", {"password": PASSWORD, "next": "/people"})).headers["location"] == "/people"
    assert (await owner.post("/people/invite", {"email": "x@example.com", "role": "member"})).status_code == 200


async def test_sessions_end_by_idleness_and_by_age(owner: Browser, store_url: str, postgres: Postgres) -> None:
    held = postgres.query("SELECT seen_ms, ends_ms FROM sessions", store_url)[0]
    postgres.execute("UPDATE sessions SET seen_ms = seen_ms - 13 * 3600000", store_url)
    assert (await owner.get("/account")).status_code == 303
    postgres.execute(f"UPDATE sessions SET seen_ms = {held['seen_ms']}", store_url)
    assert (await owner.get("/account")).status_code == 200
    postgres.execute("UPDATE sessions SET ends_ms = 1", store_url)
    assert (await owner.get("/account")).status_code == 303


async def test_the_store_holds_neither_cookies_nor_links_nor_keys(
    plane: Plane, owner: Browser, store_url: str, postgres: Postgres
) -> None:
    answer = await owner.post("/keys", {"name": "ci", "scopes": ["project.read"]})
    key = re.search(r"gk_[A-Za-z0-9_-]{40,}", answer.text)
    assert key is not None
    link = link_in((await owner.post("/people/invite", {"email": "y@example.com", "role": "member"})).text)
    tables = [
        row["tablename"] for row in postgres.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", store_url)
    ]
    everything = "".join(postgres.execute(f'SELECT t::text FROM "{table}" AS t', store_url) for table in tables)
    for secret in (owner.cookies[owner.session], link.rpartition("/")[2], key[0], PASSWORD):
        assert secret not in everything
        assert secret.encode().hex() not in everything


async def test_an_invitation_joins_with_its_role_and_works_once(plane: Plane, owner: Browser) -> None:
    answer = await owner.post("/people/invite", {"email": "Bob@Example.com", "role": "auditor"})
    path = owner.path_of(link_in(answer.text))
    bob = plane.browser()
    assert "As auditor" in (await bob.get(path)).text
    assert (await bob.post(path, {"name": "Bob", "password": "short"})).status_code == 400
    assert (await bob.post(path, {"name": "Bob", "password": PASSWORD})).status_code == 303
    assert (await bob.post(path, {"name": "Bob", "password": PASSWORD})).status_code == 404
    assert (await bob.get("/trail")).status_code == 200
    assert (await bob.post("/people/invite", {"email": "z@example.com", "role": "member"})).status_code == 403


async def test_roles_change_owners_stay(plane: Plane, owner: Browser, store_url: str, postgres: Postgres) -> None:
    admin = await invited(owner, plane, "admin@example.com", "admin")
    ids = {
        row["email"]: row["id"]
        for row in postgres.query("SELECT email, encode(uuid_send(person_id), 'hex') AS id FROM people", store_url)
    }
    ada, own = (ulid_text(int(ids[email], 16)) for email in (OWNER, "admin@example.com"))
    assert (await admin.post(f"/people/{ada}/remove")).status_code == 403
    assert (await admin.post(f"/people/{own}/role", {"role": "owner"})).status_code == 403
    assert (await owner.post(f"/people/{ada}/role", {"role": "member"})).status_code == 409
    assert (await owner.post(f"/people/{own}/role", {"role": "owner"})).status_code == 303
    assert (await owner.post(f"/people/{ada}/role", {"role": "member"})).status_code == 303
    assert (await owner.post(f"/people/{own}/remove")).status_code == 403
    assert (await admin.post(f"/people/{ada}/remove")).status_code == 303
    assert "no organisation" in (await owner.get("/")).text


async def test_who_is_removed_leaves_no_role_and_no_agent_behind(
    plane: Plane, owner: Browser, store_url: str, postgres: Postgres
) -> None:
    made = await owner.post("/new-project", {"name": "Shop", "databases": "main"})
    project = made.headers["location"].rpartition("/")[2].partition("?")[0]
    member = await invited(owner, plane, "max@example.com", "member")
    assert (await member.get(f"/projects/{project}")).status_code == 404
    role = {"email": "max@example.com", "role": "admin"}
    assert (await owner.post(f"/projects/{project}/settings/people", role)).status_code == 303
    for browser in (member, owner):
        assert (await browser.post(f"/projects/{project}/connect", {"name": "agent"})).status_code == 200
    [person] = postgres.query("SELECT encode(uuid_send(person_id), 'hex') AS id FROM people WHERE name = 'max'", store_url)
    bundles = "SELECT max(version) AS version FROM bundles"
    [before] = postgres.query(bundles, store_url)
    max_id = ulid_text(int(person["id"], 16))
    assert (await owner.post(f"/people/{max_id}/remove")).status_code == 303
    assert postgres.query("SELECT 1 AS one FROM project_roles", store_url) == []
    tokens = postgres.query("SELECT p.name, t.revoked_ms FROM agent_tokens t JOIN people p USING (person_id)", store_url)
    assert {token["name"]: token["revoked_ms"] is not None for token in tokens} == {"max": True, "Ada": False}
    [after] = postgres.query(bundles, store_url)
    assert after["version"] == before["version"] + 1, "gateways learn of it"


async def test_who_may_have_no_agents_any_more_leaves_none_behind(
    plane: Plane, owner: Browser, store_url: str, postgres: Postgres
) -> None:
    made = await owner.post("/new-project", {"name": "Shop", "databases": "main"})
    project = made.headers["location"].rpartition("/")[2].partition("?")[0]
    member = await invited(owner, plane, "max@example.com", "member")
    [person] = postgres.query("SELECT encode(uuid_send(person_id), 'hex') AS id FROM people WHERE name = 'max'", store_url)
    max_id = ulid_text(int(person["id"], 16))

    async def in_project(role: str | None) -> None:
        form = {"email": "max@example.com", "role": role} if role is not None else {"person": max_id}
        path = f"/projects/{project}/settings/people" + ("" if role is not None else "/remove")
        assert (await owner.post(path, form)).status_code == 303

    async def in_organisation(role: str) -> None:
        assert (await owner.post(f"/people/{max_id}/role", {"role": role})).status_code == 303

    async def make_agent() -> None:
        assert (await member.post(f"/projects/{project}/connect", {"name": "agent"})).status_code == 200

    def agents_left() -> int:
        return len(postgres.query("SELECT 1 AS one FROM agent_tokens WHERE revoked_ms IS NULL", store_url))

    def bundle() -> int:
        [row] = postgres.query("SELECT max(version) AS version FROM bundles", store_url)
        return int(row["version"])

    await in_project("admin")
    await make_agent()
    before = bundle()
    await in_project("member")
    assert (agents_left(), bundle()) == (1, before), "a member may have agents, too"
    await in_project(None)
    assert (agents_left(), bundle()) == (0, before + 1), "gateways learn of it"
    await in_organisation("reviewer")
    await make_agent()
    await in_organisation("admin")
    assert agents_left() == 1
    await in_organisation("auditor")
    assert agents_left() == 0


async def test_an_api_key_may_what_it_says_and_never_more_than_its_person(
    plane: Plane, owner: Browser, store_url: str, postgres: Postgres
) -> None:
    answer = await owner.post("/keys", {"name": "ci", "scopes": ["org.read"]})
    match = re.search(r"gk_[A-Za-z0-9_-]{40,}", answer.text)
    assert match is not None
    bearer = {"authorization": f"Bearer {match[0]}"}
    script = plane.browser()
    assert (await script.send("GET", "/api/v1/me", headers=bearer)).json()["rights"] == ["org.read"]
    assert (await script.send("GET", "/api/v1/people", headers=bearer)).json()["people"][0]["email"] == OWNER
    assert (await script.send("GET", "/api/v1/me")).status_code == 401
    assert (await owner.get("/api/v1/me")).status_code == 401, "a cookie opens no API"
    assert (await script.send("GET", "/people", headers=bearer)).status_code == 303, "a key opens no page"
    postgres.execute("UPDATE memberships SET role = 'member'", store_url)
    assert (await script.send("GET", "/api/v1/me", headers=bearer)).json()["rights"] == ["org.read"]
    postgres.execute("UPDATE api_keys SET revoked_ms = 1", store_url)
    assert (await script.send("GET", "/api/v1/me", headers=bearer)).status_code == 401


@pytest.mark.parametrize("scope", sorted(PEOPLE_ONLY))
async def test_no_key_is_made_for_what_only_people_do(owner: Browser, scope: str) -> None:
    assert (await owner.post("/keys", {"name": "ci", "scopes": [scope]})).status_code == 400


async def test_recovery_at_the_machine_sets_a_password_and_ends_sessions(plane: Plane, owner: Browser, store_url: str) -> None:
    store = Store(store_url)
    console = Console(plane.settings, store)
    assert await recovery_link(console, "nobody@example.com") is None
    first, link = await recovery_link(console, OWNER), await recovery_link(console, OWNER)
    store.close()
    assert first is not None
    assert link is not None
    browser = plane.browser()
    assert (await browser.get(browser.path_of(first))).status_code == 404, "an older link is void"
    assert (await browser.post(browser.path_of(link), {"password": "a new long password"})).status_code == 303
    assert (await owner.get("/account")).status_code == 303
    assert (await plane.browser().post("/sign-in", {"email": OWNER, "password": "a new long password"})).status_code == 303


async def test_names_and_addresses_are_shown_as_text(plane: Plane, owner: Browser) -> None:
    await owner.post("/account/profile", {"name": "<script>alert(1)</script>", "zone": "UTC"})
    text = (await owner.get("/people")).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


async def test_what_people_did_is_in_the_trail(owner: Browser, plane: Plane) -> None:
    await invited(owner, plane, "carl@example.com", "member")
    text = (await owner.get("/trail")).text.replace("<wbr>", "")
    for action in ("organisation.founded", "person.invited", "invitation.accepted"):
        assert action in text


def test_rights_of_roles() -> None:
    assert in_project("member", None) == frozenset()
    assert "project.approve" in in_project("member", "reviewer")
    assert "project.approve" not in in_project("auditor", None)
    assert OF_ROLE["admin"] == OF_ROLE["owner"] - {"org.owners"}
    assert not may_change_role("admin", "owner", None)
    assert may_change_role("admin", "member", "reviewer")
    assert not may_change_role("reviewer", "member", "auditor")
