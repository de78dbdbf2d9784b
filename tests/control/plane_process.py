"""A control plane as a process of its own, with an owner, a project on a real database, and tokens: for what needs engines."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from gatewayd.control.api_keys.api_key import PREFIX
from gatewayd.control.people.rights import PEOPLE_ONLY, RIGHTS
from tests.cli.gatewayd_process import Running, serving

OWNER = "ada@example.com"
PASSWORD = "correct horse battery"
SHOP = """
CREATE TABLE orders (id integer PRIMARY KEY, status text);
CREATE TABLE secrets (word text);
INSERT INTO orders SELECT n, 'open' FROM generate_series(1, 100) AS n;
"""
POLICY = """
databases:
  - name: shop
    table_access:
      default: read
      tables: {orders: read_write, secrets: deny}
"""


class PlaneProcess:
    """`running` is the process; `url` its public address; `key` the owner's API key, once there is an owner."""

    def __init__(self, running: Running, url: str) -> None:
        self.running = running
        self.url = url
        self.project = ""
        self._client = httpx.Client(trust_env=False, timeout=60, base_url=url)
        self.key = ""

    def found(self, link: str) -> None:
        """Takes the first sign-in link, and makes a key that may all that keys can."""
        form: dict[str, Any] = {"organisation": "Analytical Engines", "email": OWNER, "name": "Ada", "password": PASSWORD}
        assert self.form(link.removeprefix(self.url), form).status_code == 303
        shown = self.form("/keys", {"name": "all", "scopes": sorted(RIGHTS - PEOPLE_ONLY), "days": 1})
        found = re.search(rf"{PREFIX}[\w-]{{43}}", shown.text)
        assert found is not None, shown.text
        self.key = found[0]

    def form(self, path: str, form: Mapping[str, Any]) -> httpx.Response:
        """What a page of the owner's browser sends."""
        return self._client.post(path, data=dict(form), headers={"origin": self.url, "sec-fetch-site": "same-origin"})

    def api(self, method: str, path: str, body: object = None) -> Any:
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        content = msgspec.json.encode(body) if body is not None else b""
        answer = self._client.request(method, f"/api/v1{path}", content=content, headers=headers)
        assert answer.status_code < 400, answer.text
        return answer.json()

    def new_project(self, name: str, database_url: str, policy: str = POLICY) -> str:
        """Its id: one database, `shop`, under this policy."""
        project = str(self.api("POST", "/projects", {"name": name, "databases": ["shop"]})["id"])
        (database,) = self.api("GET", f"/projects/{project}/databases")["databases"]
        self.api("PUT", f"/projects/{project}/databases/{database['id']}", {"url": database_url})
        self.api("POST", f"/projects/{project}/policies", {"policy": policy, "note": "for tests"})
        return project

    def new_token(self, project: str, **more: Any) -> dict[str, Any]:
        """With `id` and `text`."""
        made: dict[str, Any] = self.api("POST", f"/projects/{project}/tokens", {"name": "claude", **more})
        return made

    def mcp(self, token: str) -> str:
        return f"{self.url}/mcp/{token}"

    def close(self) -> None:
        self._client.close()


def plane_environment(store_url: str, state: Path, port: int) -> dict[str, str]:
    return {
        "GATEWAY_SELF_HOST": "1",
        "CONTROL_DATABASE_URL": store_url,
        "CONTROL_PORT": str(port),
        "CONTROL_STATE_DIR": str(state),
        "CONTROL_SHUTDOWN_GRACE_S": "2",
    }


@contextmanager
def plane_process(store_url: str, state: Path, port: int, more: Mapping[str, str] | None = None) -> Iterator[PlaneProcess]:
    """Serving; with an owner where the store had none."""
    with serving(["control", "serve"], plane_environment(store_url, state, port) | dict(more or {})) as running:
        running.wait_for("gatewayd control serves")
        plane = PlaneProcess(running, f"http://localhost:{port}")
        try:
            yield plane
        finally:
            plane.close()
