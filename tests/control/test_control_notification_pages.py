"""Webhooks by HTTP: the pages and the API, and a delivery by the running control plane itself."""

import ipaddress
import re

import httpx
import msgspec
import pytest
import trio

from gatewayd.control.settings import ControlSettings
from tests.control.browser import Browser
from tests.control.conftest import Plane, found, serving
from tests.notify.receiver import receiving, status


@pytest.fixture
def settings(settings: ControlSettings) -> ControlSettings:
    return msgspec.structs.replace(settings, outbound_networks=(ipaddress.ip_network("127.0.0.0/8"),))


def secret_in(answer: httpx.Response) -> str:
    match = re.search(r"whsec_[A-Za-z0-9+/=]+", answer.text)
    assert match is not None, answer.text
    return match[0]


async def test_a_webhook_from_adding_to_removing(plane: Plane, owner: Browser) -> None:
    async with receiving(status("204 No Content")) as receiver:
        form = {"name": "Pager", "url": receiver.url, "shape": "standard", "project": "", "kinds": ["people.changed"]}
        wrong = await owner.post("/notifications/webhooks", form | {"url": "ftp://x"})
        assert wrong.status_code == 400
        assert "url: this is no address" in wrong.text
        assert 'value="Pager"' in wrong.text, "what was typed is kept"
        added = await owner.post("/notifications/webhooks", form)
        first = secret_in(added)
        listed = await owner.get("/notifications")
        path = re.search(r"/notifications/webhooks/[0-9A-Z]{26}", listed.text)
        assert path is not None
        shown = await owner.get(path[0])
        for text in (first, "path-canary", "query-canary"):
            assert text not in listed.text + shown.text, "shown once; the address is a secret, too"
        assert (await owner.post(f"{path[0]}/test")).status_code == 303
        with trio.fail_after(60):
            await receiver.received(1)
        assert receiver.requests[0][1]["type"] == "test"
        await owner.post("/people/invite", {"email": "zoe@example.com", "role": "member"})
        with trio.fail_after(60):
            await receiver.received(2)
        assert receiver.requests[1][1]["type"] == "people.changed"
        assert "zoe" not in str(receiver.requests), "a person's address is told to nobody"
        renewed = await owner.post(f"{path[0]}/secret")
        assert secret_in(renewed) != first
        await owner.post(f"{path[0]}/disable")
        assert "A person disabled it" in (await owner.get(path[0])).text
        assert (await owner.post(f"{path[0]}/test")).status_code == 409
        assert (await owner.post(f"{path[0]}/remove")).headers["location"] == "/notifications"
        assert (await owner.get(path[0])).status_code == 404


async def test_scripts_add_and_read_them(settings: ControlSettings) -> None:
    async with serving(settings) as plane, receiving(status("500 Oops")) as receiver:
        browser = plane.browser()
        await found(browser, plane.first_link)
        made = await browser.post("/keys", {"name": "ci", "scopes": ["org.settings"], "days": "1", "project": ""})
        key = re.search(r"gk_[A-Za-z0-9_-]{43}", made.text)
        assert key is not None

        async def ask(method: str, path: str, body: object = None) -> httpx.Response:
            headers = {"authorization": f"Bearer {key[0]}", "content-type": "application/json"}
            data = msgspec.json.encode(body) if body is not None else b""
            return await browser.send(method, f"/api/v1/webhooks{path}", data, headers)

        new = {"name": "Chat", "url": receiver.url, "kinds": ["keys.changed"], "shape": "slack"}
        assert (await ask("POST", "", new | {"shape": "smoke"})).status_code == 400
        assert (await ask("POST", "", new | {"kinds": ["every.thing"]})).json()["error"].startswith("kinds:")
        one = (await ask("POST", "", new)).json()
        assert one["secret"].startswith("whsec_")
        with trio.fail_after(60):
            await receiver.received(1)
            while True:
                (listed,) = (await ask("GET", "")).json()["webhooks"]
                if listed["state"] == "failing":  # its answer is stored just after it has come
                    break
        (sent,) = (await ask("GET", f"/{one['id']}/deliveries")).json()["deliveries"]
        assert (sent["state"], sent["answer"], sent["tries"]) == ("waiting", "500", 1)
        changed = await ask("PUT", f"/{one['id']}", {"name": "Chat", "kinds": ["policy.published"]})
        assert changed.json()["kinds"] == ["policy.published"]
        assert (await ask("DELETE", f"/{one['id']}")).json() == {"webhooks": []}
        assert (await ask("GET", f"/{one['id']}/deliveries")).status_code == 404
