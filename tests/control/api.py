"""The API with a key that may all that keys can."""

from typing import Any

import httpx
import msgspec
import pytest

from gatewayd.control.api_keys.api_key import add_key, new_text
from gatewayd.control.console import Console
from gatewayd.control.people.rights import PEOPLE_ONLY, RIGHTS
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction
from tests.control.browser import TLS, Browser
from tests.control.conftest import OWNER, Plane

WHO = Statement("SELECT person_id FROM people WHERE email_key = $1")
ORG = Statement("SELECT org_id FROM memberships WHERE person_id = $1")


class Api:
    """The API with a key that may all that keys can."""

    def __init__(self, plane: Plane, key: str) -> None:
        self.url, self.key = plane.url, key

    async def __call__(self, method: str, path: str, body: object = None) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=60, verify=TLS) as client:
            headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
            content = msgspec.json.encode(body) if body is not None else b""
            return await client.request(method, f"{self.url}/api/v1{path}", content=content, headers=headers)


async def project(api: Api, *databases: str) -> str:
    made = await api("POST", "/projects", {"name": "Shop", "databases": databases or ("shop",)})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


@pytest.fixture
async def console_of_plane(plane: Plane, store_url: str) -> Any:
    store = Store(store_url)
    yield Console(plane.settings, store)
    store.close()


@pytest.fixture
async def api(plane: Plane, owner: Browser, console_of_plane: Console) -> Api:
    console = console_of_plane
    person = str(await console.store.value(WHO, OWNER))
    org = str(await console.store.value(ORG, person))
    text, key_id = new_text(console.entropy(32)), console.new_id()

    async def work(tx: Transaction) -> None:
        await add_key(
            tx, console, text, key_id, org_id=org, project_id=None, person_id=person, name="all", rights=RIGHTS - PEOPLE_ONLY,
            now_ms=console.now_ms(), ends_ms=None,
        )  # fmt: skip

    await console.store.transaction(work)
    return Api(plane, text)
