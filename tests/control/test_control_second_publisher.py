"""Where a project wants two people to publish: one proposes, another one confirms. Over HTTP, as pages, scripts and CI do it."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio

from gatewayd.control.api_keys.api_key import PREFIX
from gatewayd.control.projects.change import SET_TERMS
from gatewayd.control.projects.terms import ProjectTerms, terms_text
from gatewayd.control.store.store import Store
from gatewayd.control.trail.record import NEWEST, Event
from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.invited import invited

READS = "databases:\n  - name: shop\n    table_access: {default: read}\n"
CLOSED = "databases:\n  - name: shop\n    table_access: {default: deny}\n"
NOTE = "nothing is read any more"


class Site(msgspec.Struct):
    """Ada owns the organisation and has an API key; Ben is an admin, too. The project wants a second publisher."""

    plane: Plane
    store: Store
    org: str
    project: str
    ada: Browser
    ben: Browser
    key: str

    async def api(self, method: str, path: str, body: object = None) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        content = msgspec.json.encode(body) if body is not None else b""
        return await self.plane.browser().send(method, f"/api/v1/projects/{self.project}{path}", content, headers)

    async def versions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.api("GET", "/policies")).json()["versions"]
        return found

    async def propose(self, text: str = CLOSED, note: str = NOTE) -> str:
        """Ada's API key does; the proposal's id."""
        answer = await self.api("POST", "/policies", {"policy": text, "note": note})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["proposal"])

    async def state(self, proposal: str) -> str:
        return str((await self.api("GET", f"/policy-proposals/{proposal}")).json()["state"])

    def path(self, proposal: str) -> str:
        return f"/projects/{self.project}/policy/proposals/{proposal}"

    async def decide(self, who: Browser, proposal: str, decision: str = "confirm", **more: str) -> httpx.Response:
        """With the text that the page shows."""
        shown = (await who.get(self.path(proposal))).text
        found = re.search(r"<code>([0-9a-f]{64})</code>", shown)
        assert found is not None, shown
        return await who.post(f"{self.path(proposal)}/decide", {"decision": decision, "sha256": found[1]} | more)

    async def acts(self, begin: str) -> list[tuple[str, str | None, dict[str, str]]]:
        """Of the organisation's record, the oldest first."""
        events = reversed(await self.store.rows(Event, NEWEST, self.org, 1 << 62, 200))
        return [(e.action, e.person_id, msgspec.json.decode(e.details or "{}")) for e in events if e.action.startswith(begin)]


@pytest.fixture
async def site(plane: Plane, owner: Browser, store_url: str) -> AsyncIterator[Site]:
    ben = await invited(owner, plane, "ben@example.com", "admin")
    shown = await owner.post("/keys", {"name": "ci", "scopes": ["project.create", "project.policy", "project.read", "org.read"]})
    key = re.search(rf"{PREFIX}[\w-]{{43}}", shown.text)
    assert key is not None, shown.text
    site = Site(plane, Store(store_url), "", "", owner, ben, key[0])
    headers = {"authorization": f"Bearer {site.key}", "content-type": "application/json"}
    body = msgspec.json.encode({"name": "Shop", "databases": ["shop"]})
    site.project = (await owner.send("POST", "/api/v1/projects", body, headers)).json()["id"]
    site.org = (await owner.send("GET", "/api/v1/me", headers=headers)).json()["organisation"]
    await site.store.run(SET_TERMS, site.org, site.project, terms_text(ProjectTerms(second_publisher=True)))
    yield site
    site.store.close()


async def test_a_second_person_confirms_and_both_are_in_the_record(site: Site) -> None:
    proposal = await site.propose()
    assert len(await site.versions()) == 1
    page = (await site.ben.get(f"/projects/{site.project}/policy")).text
    assert site.path(proposal) in page
    shown = (await site.ben.get(f"{site.path(proposal)}?flips=1")).text
    assert "Confirm and publish" in shown
    assert "would be answered otherwise" in shown
    done = await site.decide(site.ben, proposal)
    assert done.headers["location"] == f"/projects/{site.project}/policy/versions/2"
    assert (await site.api("GET", "/policies/2")).json()["policy"] == CLOSED
    ((_, proposer, _),) = await site.acts("policy.proposed")
    ((_, confirmer, details),) = await site.acts("policy.confirmed")
    assert details["proposed_by"] == proposer != confirmer
    assert (await site.acts("policy.published"))[-1] == ("policy.published", proposer, {"note": NOTE, "seconded_by": confirmer})
    assert (await site.decide(site.ben, proposal)).status_code == 409
    assert len(await site.versions()) == 2


async def test_nobody_confirms_what_they_or_their_key_proposed(site: Site) -> None:
    proposal = await site.propose()
    refused = await site.decide(site.ada, proposal)
    assert (refused.status_code, "somebody else confirms it" in refused.text) == (403, True)
    assert "Confirm and publish" not in (await site.ada.get(site.path(proposal))).text
    # An API key decides nothing at all: there is no such route, and a page's route looks at no bearer.
    for path in (f"{site.path(proposal)}/decide", f"/api/v1/projects/{site.project}/policy-proposals/{proposal}"):
        headers = {"authorization": f"Bearer {site.key}", "sec-fetch-site": "same-origin", "origin": site.plane.url}
        answer = await site.plane.browser().send("POST", path, b"decision=confirm", headers)
        assert answer.status_code in (303, 405)
        assert answer.headers.get("location", "/sign-in").startswith("/sign-in")
    for path in ("", "/decide", "/decide?decision=confirm", "?decision=confirm"):
        await site.ben.get(site.path(proposal) + path)  # a GET decides nothing
    assert await site.state(proposal) == "open"
    assert len(await site.versions()) == 1


async def test_a_text_that_was_replaced_is_to_be_confirmed_anew(site: Site) -> None:
    first = await site.propose()
    assert await site.propose() == first  # the same once more is the same proposal
    shown = (await site.ben.get(site.path(first))).text
    second = await site.propose(CLOSED.replace("deny", "read_write"))
    assert [await site.state(each) for each in (first, second)] == ["withdrawn", "open"]
    assert "Confirm and publish" in shown
    assert (await site.decide(site.ben, first)).status_code == 409
    other_text = await site.ben.post(f"{site.path(second)}/decide", {"decision": "confirm", "sha256": "0" * 64})
    assert (other_text.status_code, "another text" in other_text.text) == (409, True)
    assert len(await site.versions()) == 1


async def test_what_another_version_overtook_is_not_published(site: Site) -> None:
    of_ada = await site.propose()
    form = {"yaml": READS, "do": "publish", "note": "all is read", "based_on": "1"}
    proposed = await site.ben.post(f"/projects/{site.project}/policy", form)
    of_ben = proposed.headers["location"].rsplit("/", 1)[1]
    assert (await site.decide(site.ada, of_ben)).status_code == 303
    late = await site.decide(site.ben, of_ada)
    assert (late.status_code, "version 2 was published meanwhile" in late.text) == (409, True)
    assert "It can only be refused" in (await site.ben.get(site.path(of_ada))).text
    assert (await site.decide(site.ben, of_ada, "refuse", note="too late")).status_code == 303
    assert await site.state(of_ada) == "refused"
    assert (await site.versions())[0]["note"] == "all is read"


async def test_of_two_at_once_one_decides(site: Site) -> None:
    proposal = await site.propose()
    cleo = await invited(site.ada, site.plane, "cleo@example.com", "admin")
    statuses: list[int] = []

    async def decide(who: Browser, decision: str) -> None:
        statuses.append((await site.decide(who, proposal, decision)).status_code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(decide, site.ben, "confirm")
        nursery.start_soon(decide, cleo, "refuse")
    assert sorted(statuses) == [303, 409]
    assert len(await site.versions()) == (2 if await site.state(proposal) == "published" else 1)


async def test_who_may_publish_no_more_has_proposed_in_vain_and_confirms_nothing(site: Site) -> None:
    form = {"yaml": CLOSED, "do": "publish", "note": NOTE, "based_on": "1"}
    proposed = await site.ben.post(f"/projects/{site.project}/policy", form)
    of_ben, of_ada = proposed.headers["location"].rsplit("/", 1)[1], await site.propose(READS)
    people = (await site.ada.get("/people")).text
    person = re.search(r"/people/(\w{26})/role", people[people.index("ben@example.com") :])
    assert person is not None
    assert (await site.ada.post(f"/people/{person[1]}/role", {"role": "auditor"})).status_code == 303
    refused = await site.decide(site.ada, of_ben)
    assert (refused.status_code, "may not publish here any more" in refused.text) == (409, True)
    shown = await site.ben.get(site.path(of_ada))
    assert (shown.status_code, "Confirm and publish" in shown.text) == (200, False)
    assert (await site.decide(site.ben, of_ada)).status_code == 403
    assert "nobody can confirm this" in (await site.ada.get(site.path(of_ada))).text
    assert (await site.decide(site.ada, of_ada, "refuse")).status_code == 303
    assert await site.state(of_ada) == "withdrawn"
    assert len(await site.versions()) == 1


async def test_ci_is_told_that_it_waits(site: Site, tmp_path: Path) -> None:
    policy, key = tmp_path / "policy.yaml", tmp_path / "key"
    policy.write_text(CLOSED)
    key.write_text(site.key)
    words = ["publish", str(policy), "--control", site.plane.url, "--project", site.project, "--note", NOTE]
    command, whole = [sys.executable, "-m", "gatewayd", *words], os.environ | {"GATEWAY_API_KEY_FILE": str(key)}
    done: subprocess.CompletedProcess[bytes] = await trio.run_process(
        command, env=whole, capture_stdout=True, capture_stderr=True, check=False
    )
    assert done.returncode == 3, done.stderr
    told = msgspec.json.decode(done.stdout)
    assert b"waits for a second person" in done.stderr
    assert told["url"] == site.plane.url + site.path(told["proposal"])
    assert [each["id"] for each in (await site.api("GET", "/policy-proposals")).json()["proposals"]] == [told["proposal"]]
