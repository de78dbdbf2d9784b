"""The pages and routes of gateways, audit and taint, with something to show."""

import json
from collections.abc import AsyncIterator

import pytest

from gatewayd.audit.proof import check_proof
from gatewayd.control.api_keys.api_key import add_key, new_text
from gatewayd.control.people.rights import PEOPLE_ONLY, RIGHTS
from gatewayd.control.store.store import Store, Transaction
from gatewayd.keys.note import verifier_key
from gatewayd.link.formats.verdicts import TaintBody
from tests.conftest import Postgres
from tests.control.browser import Browser
from tests.control.conftest import Plane
from tests.control.one_project import WHO, OneProject, Who, make_one_project, refusal


@pytest.fixture
async def one_project(plane: Plane, owner: Browser, store_url: str, postgres: Postgres) -> AsyncIterator[OneProject]:
    """A project in the organisation of `owner`."""
    store = Store(store_url)
    one_project = await make_one_project(plane, store)
    postgres.execute("UPDATE projects SET org_id = (SELECT org_id FROM memberships)", store_url)
    postgres.execute("UPDATE directory SET org_id = (SELECT org_id FROM memberships)", store_url)
    one_project.org = (await store.rows(Who, WHO))[0].org_id
    yield one_project
    store.close()


async def test_a_person_enrols_a_gateway_looks_at_it_and_cuts_it(one_project: OneProject, owner: Browser) -> None:
    home = f"/projects/{one_project.project}/gateways"
    answer = await owner.post(f"/projects/{one_project.project}/enrol-gateway", {"name": "edge"})
    assert answer.status_code == 200
    token = answer.text.partition("GATEWAY_ENROL_TOKEN=")[2].partition(" ")[0]
    gateway = await one_project.gateway_with(token)
    await gateway.poll()
    for _ in range(3):
        gateway.rows.query("SELECT '<script>alert(1)</script>'", agent_name="<b>bold</b>")
    query_id = gateway.rows.query(deny="table_access")
    await gateway.push()
    await gateway.poll(note=gateway.rows.note(gateway.identity))
    listed = await owner.get(home)
    assert "edge" in listed.text
    assert "waiting" in listed.text
    assert "11 events" in listed.text
    one = f"{home}/{gateway.id}"
    assert (await owner.get(one)).status_code == 200
    audit = f"/projects/{one_project.project}/audit"
    shown = await owner.get(f"{audit}?agent=%3Cb%3Ebold%3C%2Fb%3E&text=")
    assert shown.text.count("&lt;script&gt;") == 3
    assert "<script>alert" not in shown.text
    assert "<b>bold" not in shown.text
    page = await owner.get(f"{audit}/queries/{query_id}")
    assert "table_access" in page.text
    proof = await owner.get(f"{audit}/queries/{query_id}/proof")
    key = page.text.partition("--key ")[2].partition("<")[0].strip().replace("&#43;", "+")
    assert len(check_proof(proof.text, [verifier_key(key)])) == 2
    assert (await owner.get(f"{audit}/export?decision=DENY")).text.count("\r\n") == 2
    lines = (await owner.get(f"{audit}/export?format=lines&proofs=1")).text.splitlines()
    assert len(lines) == 4
    assert all("proof" in json.loads(line) for line in lines)
    assert (await owner.get(f"{audit}?token=x")).status_code == 400
    assert (await owner.get(f"{audit}/queries/{gateway.rows.ulid()}")).status_code == 404
    assert (await owner.post(f"{one}/standing", {"change": "cut", "note": "odd"})).status_code == 303
    answer, sent = await gateway.poll()
    assert refusal(gateway, answer, sent).reason == "cut"
    answer, sent = await gateway.push()
    assert refusal(gateway, answer, sent).reason == "cut"
    await owner.post(f"{one}/standing", {"change": "restore"})
    assert (await gateway.poll())[0].status_code == 200
    await owner.post(f"{one}/standing", {"change": "retire"})
    assert (await owner.post(f"{one}/standing", {"change": "restore"})).status_code == 409
    answer, sent = await gateway.poll()
    assert refusal(gateway, answer, sent).reason == "cut"


async def test_a_person_clears_a_taint_with_a_reason(one_project: OneProject, owner: Browser) -> None:
    gateway = await one_project.gateway()
    body = TaintBody("mark", "", gateway.rows.ulid(), "shop", "public.tickets")
    await gateway.ask("taint", body)
    home = f"/projects/{one_project.project}/taint"
    page = await owner.get(home)
    assert "public.tickets" in page.text
    grant = page.text.partition('name="grant" value="')[2].partition('"')[0]
    assert (await owner.post(f"{home}/clear", {"grant": grant, "note": " "})).status_code == 400
    assert (await owner.post(f"{home}/clear", {"grant": grant, "note": "looked at"})).status_code == 303
    assert "public.tickets" not in (await owner.get(home)).text
    assert (await owner.post(f"{home}/clear", {"grant": grant, "note": "again"})).status_code == 404


async def test_scripts_read_the_audit_with_a_key(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    for _ in range(3):
        gateway.rows.query()
    await gateway.push()
    console = one_project.console
    text, key_id, now = new_text(console.entropy(32)), console.new_id(), console.now_ms()
    person = (await console.store.rows(Who, WHO))[0].person_id

    async def work(tx: Transaction) -> None:
        await add_key(
            tx, console, text, key_id, org_id=one_project.org, project_id=None, person_id=person, name="k",
            rights=RIGHTS - PEOPLE_ONLY, now_ms=now, ends_ms=None,
        )  # fmt: skip

    await console.store.transaction(work)
    browser = one_project.plane.browser()
    headers = {"authorization": f"Bearer {text}"}
    base = f"/api/v1/projects/{one_project.project}"
    found = (await browser.get(f"{base}/audit?agent=claude", **headers)).json()
    assert [each["outcome"] for each in found["queries"]] == ["executed"] * 3
    one = f"{base}/audit/queries/{found['queries'][0]['query_id']}"
    assert len((await browser.get(one, **headers)).json()["events"]) == 3
    assert (await browser.get(f"{one}/proof", **headers)).json()["is_witnessed"]
    statistics = (await browser.get(f"{base}/audit/statistics?kind=table", **headers)).json()
    assert [(each["value"], each["calls"]) for each in statistics["days"]] == [("public.orders", 3)]
    assert (await browser.get(f"{base}/audit/statistics?by=hour", **headers)).json()["hours"][0]["calls"] == 3
    assert (await browser.get(f"{base}/audit/statistics?kind=x", **headers)).status_code == 400
    fleet = (await browser.get(f"{base}/gateways", **headers)).json()
    assert [each["audit_events"] for each in fleet["gateways"]] == [9]
