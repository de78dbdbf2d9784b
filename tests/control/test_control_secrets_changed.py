"""Each secret of the control plane is changed while everything works: two replicas, an agent, a gateway, a person, a script.
Nothing is refused, and in the end the former values are needed nowhere."""

import random
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import trio

from gatewayd.control.backup.backup import back_up
from gatewayd.control.backup.restore import restore
from gatewayd.control.changed_secrets import with_all_peppers
from gatewayd.control.console import Console, now_ms
from gatewayd.control.databases.database import addresses
from gatewayd.control.keyring.former import ALL, MOST, FormerRow, with_former_values
from gatewayd.control.keyring.ring import Key, Ring, key_of
from gatewayd.control.keyring.sealing import NONCE_BYTES
from gatewayd.control.keyring.stored import RINGS
from gatewayd.control.settings import ControlSettings, load_control_settings, with_secrets
from gatewayd.control.store.store import Store, Transaction
from gatewayd.control.tokens.token import find_token
from gatewayd.control.trust.documents import settle_trust, trust_in_force
from gatewayd.control.trust.signing import root_keys, working_keys
from gatewayd.link.formats.documents import public_text
from tests.conftest import Postgres, reserved_port
from tests.control.browser import Browser
from tests.control.conftest import found, serving
from tests.control.linked_rig import READS, SHOP, WRITES, Agent, At, Project, linked, new_project, until
from tests.control.places import MakePlace
from tests.control.system.switch import Switch

Rings = Mapping[str, list[str]]


def settings_of(store_url: str, url: str, state: Path, port: int, rings: Rings) -> ControlSettings:
    environ = {
        "GATEWAY_SELF_HOST": "1",
        "CONTROL_DATABASE_URL": store_url,
        "CONTROL_PUBLIC_URL": url,
        "CONTROL_PORT": str(port),
        "CONTROL_STATE_DIR": str(state),
        "CONTROL_LOG_LEVEL": "error",
        "CONTROL_SHUTDOWN_GRACE_S": "5",
        **{name: "\n".join(values) for name, values in rings.items()},
    }
    return with_secrets(load_control_settings(environ))


class Replica:
    """One that runs, and is started again with other secrets."""

    def __init__(self, store_url: str, url: str, state: Path, port: int, nursery: trio.Nursery) -> None:
        self._given = (store_url, url, state, port)
        self._nursery = nursery
        self._stop = trio.Event()
        self._ended = trio.Event()
        self._ended.set()
        self.first_link: str | None = None

    async def restart(self, rings: Rings) -> None:
        self._stop.set()
        await self._ended.wait()
        self._stop, self._ended = trio.Event(), trio.Event()
        await self._nursery.start(self._run, settings_of(*self._given, rings))

    async def _run(self, settings: ControlSettings, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            async with serving(settings, disturbed=False) as plane:
                self.first_link = plane.first_link
                task_status.started()
                await self._stop.wait()
        finally:
            self._ended.set()


class Everyday:
    """What must go on: `rounds` are counted, and any refusal ends the test."""

    def __init__(self, project: Project, agent: Agent) -> None:
        self.rounds = 0
        self._more = trio.Event()
        self._project = project
        self._agent = agent

    async def run(self) -> None:
        while True:
            assert (await self._agent.query("SELECT count(*) FROM orders"))["rows"] == [{"count": 20}]
            assert (await self._project.owner.get("/account")).status_code == 200
            await self._project.ask("GET", "/gateways")
            self.rounds += 1
            self._more.set()
            self._more = trio.Event()

    async def round(self) -> None:
        """Until everything was done once more, from its beginning."""
        wanted = self.rounds + 2
        while self.rounds < wanted:
            await self._more.wait()


@asynccontextmanager
async def two_replicas(store_url: str, folder: Path, rings: Rings) -> AsyncIterator[tuple[At, list[Replica]]]:
    """The last one has the link for the first owner."""
    with reserved_port() as front, reserved_port() as first, reserved_port() as second:
        at = At(f"http://localhost:{front}")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Switch((first, second), random.Random(1)).serve, front)
            ports = enumerate((first, second))
            replicas = [Replica(store_url, at.url, folder / f"replica-{number}", port, nursery) for number, port in ports]
            for replica in replicas:
                await replica.restart(rings)
            yield at, replicas
            nursery.cancel_scope.cancel()


async def test_every_secret_is_changed_and_nothing_is_refused(
    store_url: str, tmp_path: Path, postgres: Postgres, free_port: int
) -> None:
    old, new = ({name: secrets.token_urlsafe(32) for name in RINGS} for _ in range(2))
    shop = postgres.create_database(SHOP, tcp=True)
    async with two_replicas(store_url, tmp_path, {name: [old[name]] for name in RINGS}) as (at, replicas):
        owner = Browser(at.url)
        await found(owner, replicas[-1].first_link)
        project = await new_project(owner, at)
        token = await project.token()
        (database,) = (await project.ask("GET", "/databases"))["databases"]
        await project.ask("PUT", f"/databases/{database['id']}", {"url": shop})
        version = await project.publish(READS)
        async with linked(project, shop, tmp_path / "gateway", free_port) as gateway:
            await project.until_enforced(version)
            async with trio.open_nursery() as nursery:
                everyday = Everyday(project, await Agent(gateway, token).begin())
                nursery.start_soon(everyday.run)
                for ring in ((old, new), (new, old), (new,)):
                    for replica in replicas:
                        await replica.restart({name: [values[name] for values in ring] for name in RINGS})
                        await everyday.round()
                        version = await project.publish(WRITES if version % 2 else READS)
                        await project.until_enforced(version)  # signed by either replica, and believed
                nursery.cancel_scope.cancel()
            assert len(await project.audited(5)) >= 5
            assert (await project.ask("GET", "/gateways"))["findings"] == []
            assert await gateway.stop() == 0
        settings = settings_of(store_url, at.url, tmp_path / "replica-0", 1, {name: [new[name]] for name in RINGS})
    store = Store(store_url)
    try:
        await assert_only_the_new_values_are_needed(Console(settings, store), project.id, token, shop)
    finally:
        store.close()


async def assert_only_the_new_values_are_needed(console: Console, project_id: str, token: str, shop: str) -> None:
    store, signing = console.store, console.secrets.signing
    whole = Console(await with_all_peppers(console), store)

    async def work(tx: Transaction) -> None:
        assert await find_token(tx, console, token, console.now_ms()) is None
        assert await find_token(tx, whole, token, console.now_ms()) is not None
        assert (await addresses(tx, console, project_id)).by_name == {"shop": shop}

    await store.transaction(work)
    trust = await trust_in_force(console)
    assert [key.public for key in trust.trust.keys] == [public_text(key.public) for key in working_keys(signing)]
    assert trust.trust.root_from_now_on == public_text(root_keys(signing)[0].public)


async def test_replicas_with_different_rings_do_not_take_back_each_other_s_trust(console: Console) -> None:
    first, second = console.secrets.signing.current, key_of(b"2" * 32)

    def with_ring(*keys: Key) -> Console:
        changed = msgspec.structs.replace(console.secrets, signing=Ring(keys))
        return Console(msgspec.structs.replace(console.settings, secrets=changed), console.store)

    for ahead, behind in (
        (with_ring(first, second), with_ring(first)),
        (with_ring(second, first), with_ring(first, second)),
        (with_ring(second), with_ring(second, first)),
    ):
        await settle_trust(ahead)
        settled = (await trust_in_force(ahead)).version
        for each in (behind, ahead, behind, ahead):
            assert (await trust_in_force(each)).version == settled


async def test_a_next_pepper_is_not_sealed_with_the_one_that_it_replaces(console: Console) -> None:
    old, new = console.secrets.pepper.current, key_of(b"2" * 32)

    async def ring(*keys: Key) -> Ring:
        return await with_former_values(console.store, Ring(keys), 1, [console.entropy(NONCE_BYTES) for _ in range(MOST)])

    async def sealed() -> dict[str, bool]:
        rows = await console.store.rows(FormerRow, ALL)
        return {each.key_id: each.sealed is not None for each in rows}

    assert await ring(old) == Ring((old,))
    assert await ring(old, new) == Ring((old, new))
    assert await sealed() == {old.key_id: False}
    assert await ring(new, old) == Ring((new, old))
    assert await ring(new) == Ring((new, old))
    assert await sealed() == {old.key_id: True, new.key_id: False}
    third = key_of(b"3" * 32)
    assert await ring(third, new) == Ring((third, new, old))
    assert set((await ring(third)).keys) == {third, new, old}
    lost = key_of(b"4" * 32)
    assert await ring(lost) == Ring((lost,))  # too early: what the former ones opened is unknown now


async def test_gateways_go_on_after_a_restore_though_the_signing_key_was_changed_since_the_backup(
    settings: ControlSettings, place: MakePlace, postgres: Postgres, tmp_path: Path, free_port: int
) -> None:
    assert settings.secrets is not None
    old, new = settings.secrets.signing.current, key_of(b"2" * 32)
    shop, archive = postgres.create_database(SHOP), tmp_path / "backup.tar"
    async with AsyncExitStack() as gateways:
        async with serving(settings, disturbed=False) as plane:
            owner = plane.browser()
            await found(owner, plane.first_link)
            project = await new_project(owner, plane)
            version = await project.publish(READS)
            gateway = await gateways.enter_async_context(linked(project, shop, tmp_path / "gateway", free_port))
            await project.until_enforced(version)
            await back_up(settings, archive, now_ms(), with_secrets=True)
        for ring in (Ring((old, new)), Ring((new, old))):
            changed = msgspec.structs.replace(settings.secrets, signing=ring)
            async with serving(msgspec.structs.replace(settings, secrets=changed), disturbed=False):
                version = await project.publish(WRITES)
                await project.until_enforced(version)
        given = {"CONTROL_SIGNING_KEY": Ring((new, old))}
        elsewhere = msgspec.structs.replace(place("elsewhere"), port=settings.port, public_url=settings.public_url, given=given)
        await restore(elsewhere, archive)
        async with serving(with_secrets(elsewhere), disturbed=False):

            async def has_brought_back() -> bool:
                (shown,) = await project.gateways()
                return (shown["bundle_version"], shown["is_newest"]) == (version, True)

            await until(has_brought_back, "the bundle that the store had lost")
            assert await project.publish(READS) == version + 1
            await project.until_enforced(version + 1)
        assert await gateway.stop() == 0
