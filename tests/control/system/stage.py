"""A whole system on one machine: two replicas behind a balancer, their PostgreSQL, the agents' databases, linked gateways.

With `has_engines` the replicas are self-hosted ones, and each runs an engine of the project beside the gateways.
"""

import secrets
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import httpx
import trio

from gatewayd.audit.heads import WITNESS_NAME
from gatewayd.audit.reader import connect_for_reading
from gatewayd.control.console import Console
from gatewayd.control.keyring.stored import RINGS
from gatewayd.control.settings import load_control_settings, with_secrets
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store
from gatewayd.control.trust.signing import signers
from gatewayd.keys.identity import load_identity, verifier_of
from gatewayd.keys.note import VerifierKey
from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.control.browser import Browser
from tests.control.conftest import PASSWORD
from tests.control.linked_rig import HELLO, Project, until
from tests.control.system.comparison import AuditFile, read_file
from tests.control.system.parts import Part
from tests.control.system.switch import Switch
from tests.link.link_rig import variables
from tests.mcp.mcp_rig import ACCEPT

SHOP: Final = """
CREATE TABLE orders (id integer PRIMARY KEY, status text);
CREATE TABLE payroll (id integer, amount integer);
CREATE TABLE ledger (number integer);
INSERT INTO orders SELECT i, 'open' FROM generate_series(0, 19) i;
"""
_OWNER: Final[dict[str, object]] = {
    "organisation": "Analytical Engines",
    "email": "ada@example.com",
    "name": "Ada",
    "password": PASSWORD,
}
_REVIEWER: Final[dict[str, object]] = {"email": "grace@example.com", "role": "reviewer"}
_TERMS: Final[dict[str, object]] = {
    "approval_minutes": 30, "retention_h": 168, "fresh_for_s": 3600, "on_stale": "keep", "statements": "full",
    "self_approval": "1",
}  # fmt: skip
_ORGANISATION: Final = Statement("SELECT org_id FROM organisations")
SETTLE_S: Final = 900.0  # a gateway that was refused for long tries again after minutes


class Stage:
    """`ports`: of the balancer, of two replicas, and one for each gateway."""

    def __init__(self, folder: Path, ports: Sequence[int], dice: Random, *, has_engines: bool, logs: Path | None = None) -> None:
        self.folder: Final = folder
        self._logs: Final = logs or folder
        self.url: Final = f"http://localhost:{ports[0]}"
        self.has_engines: Final = has_engines
        self.store: Final = EmbeddedPostgres(folder / "store", version=16, settings={"fsync": "off", "max_connections": "100"})
        self.shop: Final = EmbeddedPostgres(folder / "shop", version=16, settings={"fsync": "off", "max_connections": "200"})
        self.switch: Final = Switch(ports[1:3], dice)
        self.replicas: list[Part] = []
        self.gateways: list[Part] = []
        self._ports: Final = tuple(ports)
        self._rings: Final = {name: secrets.token_urlsafe(32) for name in RINGS}

    @property
    def switch_port(self) -> int:
        return self._ports[0]

    # -- the beginning

    def open(self) -> None:
        """The databases run, and the replicas are ready to be started."""
        for server, name in ((self.store, "store"), (self.shop, "shop")):
            server.initialise()
            server.start()
            server.psql(f"CREATE DATABASE {name}")
        self.shop.psql(SHOP, "shop")
        for number in (1, 2):
            log = self._logs / f"replica-{number}.log"
            self.replicas.append(Part(f"replica {number}", ["control", "serve"], self._environment(number), log))

    def close(self) -> None:
        for part in (*self.gateways, *self.replicas):
            if part.is_running:
                part.kill_now()
        for server in (self.store, self.shop):
            server.stop("immediate")

    def _environment(self, number: int) -> dict[str, str]:
        own = {
            "CONTROL_DATABASE_URL": self.store.url(database="store"),
            "CONTROL_PUBLIC_URL": self.url,
            "CONTROL_PORT": str(self._ports[number]),
            "CONTROL_STATE_DIR": str(self.folder / f"replica-{number}"),
            "CONTROL_SHUTDOWN_GRACE_S": "5",
            **self._rings,
        }
        return {**own, "GATEWAY_SELF_HOST": "1"} if self.has_engines else own

    async def people(self) -> tuple[Browser, Browser]:
        """Starts both replicas; an owner and a reviewer are signed in."""
        first, second = self.replicas
        first.start()
        link = (await first.told("/welcome/")).strip()
        owner, reviewer = Browser(self.url), Browser(self.url)
        await _sent(owner, link.removeprefix(self.url), _OWNER, 303)
        second.start()
        await second.told("gatewayd control serves")
        invited = await _sent(owner, "/people/invite", _REVIEWER, 200)
        path = "/welcome/" + invited.partition(f"{self.url}/welcome/")[2].partition("<")[0].partition('"')[0].strip()
        await _sent(reviewer, path, {"name": "Grace", "password": PASSWORD}, 303)
        return owner, reviewer

    async def project(self, project: Project) -> None:
        """The terms under which everybody may decide; for engines, the address of the database."""
        await _sent(project.owner, f"/projects/{project.id}/settings", _TERMS, 303)
        if self.has_engines:
            (database,) = (await project.ask("GET", "/databases"))["databases"]
            await project.ask("PUT", f"/databases/{database['id']}", {"url": self.shop.url(database="shop")})

    async def enrol(self, project: Project) -> None:
        """Starts one gateway for each port that is left."""
        for number, port in enumerate(self._ports[3:], 1):
            folder = self.folder / f"gateway-{number}"
            folder.mkdir()
            token = (await project.ask("POST", "/gateways/tokens", {"name": f"edge {number}"}))["token"]
            own = variables(self.url, self.shop.url(database="shop"), folder, port, GATEWAY_ENROL_TOKEN=token)
            gateway = Part(f"gateway {number}", ["serve"], own, self._logs / f"gateway-{number}.log")
            gateway.start()
            await gateway.told("gatewayd started")
            self.gateways.append(gateway)

    def agent_urls(self) -> list[str]:
        """Where agents call: each gateway, and the control plane where it runs engines."""
        return [f"http://127.0.0.1:{port}" for port in self._ports[3:]] + ([self.url] if self.has_engines else [])

    # -- the end

    def console(self) -> Console:
        """A console over the store, for looking at it. Its store is to be closed."""
        settings = with_secrets(load_control_settings(self._environment(1)))
        return Console(settings, Store(self.store.url(database="store")))

    async def organisation(self, console: Console) -> str:
        return str(await console.store.value(_ORGANISATION))

    def witness(self, console: Console) -> VerifierKey:
        key = signers(console.secrets.signing)[0]
        return VerifierKey(WITNESS_NAME.format(key.key_id), key.public)

    def ledger(self) -> Counter[int]:
        rows = self.shop.psql("SELECT number FROM ledger", "shop").split()
        return Counter(map(int, rows))

    def files(self) -> list[AuditFile]:
        found = []
        for path in sorted(self.folder.rglob("audit.db")):
            state = path.parent / "state" if (path.parent / "state").is_dir() else path.parent
            identity = load_identity(str(state))
            assert identity is not None, f"{state} has no identity"
            found.append(read_file(path, verifier_of(identity)))
        return found

    async def settle(self, token: str) -> None:
        """Everything runs; then until nothing is owed to the store."""
        for server in (self.store, self.shop):
            await trio.to_thread.run_sync(server.start)
        for part in (*self.replicas, *self.gateways):
            if not part.is_running:
                part.start()
        if self.has_engines:
            for port in self._ports[1:3]:
                await until(partial(self._has_engine, port, token), "an engine of each replica")

        async def all_pushed() -> bool:
            here = await trio.to_thread.run_sync(self._events_here)
            return here == await trio.to_thread.run_sync(self._events_held)

        with trio.move_on_after(SETTLE_S):
            while not await all_pushed():  # noqa: ASYNC110  # it becomes true in other processes
                await trio.sleep(1)
            return
        raise AssertionError(f"{self._events_here()} rows are in the files, {self._events_held()} in the store")

    async def _has_engine(self, port: int, token: str) -> bool:
        """An engine that nobody calls is not started, and one that was killed owes its last rows."""
        headers = {"host": self.url.partition("://")[2], "authorization": f"Bearer {token}", "accept": ACCEPT}
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            try:
                answer = await client.post(f"http://127.0.0.1:{port}/mcp", json=message, headers=headers)
            except httpx.HTTPError:
                return False
        return answer.status_code == 200

    def _events_here(self) -> int:
        total = 0
        for path in self.folder.rglob("audit.db"):
            connection = connect_for_reading(str(path))
            total += int(connection.execute("SELECT count(*) FROM audit_events").fetchone()[0])
            connection.close()
        return total

    def _events_held(self) -> int:
        return int(self.store.psql("SELECT sum(size) FROM audit_heads", "store") or 0)


async def _sent(browser: Browser, path: str, form: dict[str, object], status: int) -> str:
    answer = await browser.post(path, form)
    assert answer.status_code == status, answer.text
    return answer.text
