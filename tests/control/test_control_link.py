"""The link service on a real socket: enrolment, polls, clones, and what nobody else may say for a gateway."""

from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
import trio

from gatewayd.control.console import Console
from gatewayd.control.gateways import gateway as gateways
from gatewayd.control.gateways.enrol_tokens import LIFE_MS, make_token
from gatewayd.control.gateways.gateway import Gateway
from gatewayd.control.people.welcome import ADD_ORGANISATION
from gatewayd.control.store.store import Store, Transaction
from gatewayd.control.trail.record import new_organisation_trail
from gatewayd.control.trust.documents import trust_in_force
from gatewayd.control.trust.signing import signers
from gatewayd.link.formats.answers import Freshness, RefusalAnswer, read_answer
from gatewayd.link.formats.bundle import Bundle, bundle_sha256, sign_bundle
from gatewayd.link.formats.requests import SentRequest
from gatewayd.link.formats.verdicts import CatalogBody, TaintAnswer, TaintBody, read_taint
from tests.control.conftest import Plane
from tests.control.gateway_of_tests import TestGateway, now_ms, outside
from tests.control.two_organisations import uuid

POLICY = "databases:\n  - name: shop\n    table_access: {default: read}\n"


class World(msgspec.Struct):
    """A control plane, another replica's view of its store, and a project."""

    plane: Plane
    console: Console
    org: str
    project: str

    async def token(self) -> str:
        return (await make_token(self.console, self.org, self.project, "edge", None)).text

    async def gateway(self, seed: int = 1) -> TestGateway:
        return await self.gateway_with(await self.token(), seed)

    async def gateway_with(self, token: str, seed: int = 1) -> TestGateway:
        found = TestGateway(self.plane.url, seed)
        answer = await found.enrol(token)
        assert answer.status_code == 200, answer.text
        return found

    async def row(self, gateway: TestGateway) -> Gateway:
        row = await self.console.store.row(Gateway, gateways.FIND, self.project, gateway.id)
        assert row is not None
        return row

    async def publish(self, version: int) -> Bundle:
        trust = await trust_in_force(self.console)
        bundle = Bundle(1, trust.trust.issuer, self.project, self.org, version, now_ms(), POLICY)
        envelope = sign_bundle(bundle, signers(self.console.secrets.signing)).decode()

        async def work(tx: Transaction) -> None:
            await tx.define(
                "INSERT INTO bundles (project_id, version, envelope, sha256, reason, issued_ms) VALUES"
                f" ('{uuid(self.project)}', {version}, '{envelope}'::bytea, '\\x{bundle_sha256(bundle)}', 'test', 1);"
                f"INSERT INTO bundle_heads VALUES ('{uuid(self.project)}', {version})"
                f" ON CONFLICT (project_id) DO UPDATE SET version = {version}"
            )

        await self.console.store.transaction(work)
        return bundle


async def make_world(plane: Plane, store: Store) -> World:
    console = Console(plane.settings, store)
    org, project, trail = console.new_id(), console.new_id(), new_organisation_trail(console)

    async def work(tx: Transaction) -> None:
        await tx.run(ADD_ORGANISATION, org, "A", 1)
        await trail.begin(tx, org)
        await tx.define(
            "INSERT INTO projects (org_id, project_id, name, name_key, created_ms)"
            f" VALUES ('{uuid(org)}', '{uuid(project)}', 'shop', 'shop', 1)"
        )

    await store.transaction(work)
    return World(plane, console, org, project)


@pytest.fixture
async def world(plane: Plane, store_url: str) -> AsyncIterator[World]:
    store = Store(store_url)
    yield await make_world(plane, store)
    store.close()


def refusal(gateway: TestGateway, answer: httpx.Response, sent: SentRequest) -> RefusalAnswer:
    assert gateway.trust is not None
    assert answer.status_code == 403, answer.text
    return read_answer(answer.content, RefusalAnswer, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest)


def freshness(gateway: TestGateway, answer: httpx.Response, sent: SentRequest) -> Freshness:
    assert gateway.trust is not None
    data = bytes(outside(answer).freshness)
    return read_answer(data, Freshness, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest)


async def test_a_token_enrols_one_gateway_once(world: World) -> None:
    token = await world.token()
    first, second = TestGateway(world.plane.url, 1), TestGateway(world.plane.url, 2)
    assert (await first.enrol(token)).status_code == 200
    assert first.project == world.project
    same = first.id
    assert (await first.enrol(token)).status_code == 200  # its answer was lost
    assert first.id == same
    assert (await second.enrol(token)).status_code == 403
    assert (await second.enrol("gw_enrol_" + "0" * 32 + token[-65:])).status_code == 403


async def test_a_token_lasts_an_hour(world: World) -> None:
    late = Console(world.plane.settings, world.console.store, clock=lambda: now_ms() - LIFE_MS - 1000)
    token = await make_token(late, world.org, world.project, "edge", None)
    assert (await TestGateway(world.plane.url).enrol(token.text)).status_code == 403


async def test_a_poll_brings_the_newest_bundle_and_always_freshness(world: World) -> None:
    gateway = await world.gateway()
    answer, sent = await gateway.poll()
    assert freshness(gateway, answer, sent).version == 0
    bundle = await world.publish(1)
    answer, sent = await gateway.poll(wait_s=20)
    fresh = freshness(gateway, answer, sent)
    assert (fresh.version, fresh.sha256, fresh.n) == (1, bundle_sha256(bundle), gateway.n)
    assert bytes(outside(answer).bundle) != b"null"
    answer, sent = await gateway.poll(state="enforcing", version=1, sha256=fresh.sha256, seen_version=1)
    assert bytes(outside(answer).bundle) == b"null"
    row = await world.row(gateway)
    assert (row.state, row.bundle_version, row.standing) == ("enforcing", 1, "active")


async def test_a_held_poll_is_answered_within_a_second_of_a_publication_made_elsewhere(world: World) -> None:
    gateway = await world.gateway()
    took: list[float] = []

    async def wait() -> None:
        answer, _ = await gateway.poll(wait_s=30)
        took.append(trio.current_time())
        assert bytes(outside(answer).bundle) != b"null"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        with trio.fail_after(10):
            while (await world.row(gateway)).seen_ms is None:  # noqa: ASYNC110  # the store tells no events
                await trio.sleep(0.05)
        await world.publish(1)
        published = trio.current_time()
    assert took[0] - published < 3  # a second on a machine that does nothing else


async def test_a_copied_identity_is_cut_until_a_person_decides(world: World) -> None:
    gateway = await world.gateway()
    await gateway.poll()
    copy = TestGateway(world.plane.url)
    copy.id, copy.trust, copy.run, copy.n = gateway.id, gateway.trust, copy.rows.ulid(), 0
    copy.rows.dice.seed(99)
    copy.run = copy.rows.ulid()
    answer, _ = await copy.poll()  # a restart looks like this, too
    assert answer.status_code == 200
    answer, sent = await gateway.poll()
    assert refusal(gateway, answer, sent).reason == "duplicated"
    answer, sent = await copy.poll()
    assert refusal(copy, answer, sent).reason == "duplicated"
    assert (await world.row(gateway)).standing == "duplicated"


async def test_a_lost_answer_or_a_late_request_is_no_alarm(world: World) -> None:
    gateway = await world.gateway()
    earlier = gateway.request("poll", gateway.status())
    sent = gateway.request("poll", gateway.status())
    for _ in range(2):  # the very bytes come twice
        answer = await gateway.send(sent)
        assert freshness(gateway, answer, sent).n == 3
    assert refusal(gateway, await gateway.send(earlier), earlier).reason == "late"
    assert (await world.row(gateway)).standing == "active"


async def test_a_clock_that_is_off_is_told_the_time(world: World) -> None:
    gateway = await world.gateway()
    answer, sent = await gateway.ask("poll", gateway.status(), ts=now_ms() - 3_600_000)
    said = refusal(gateway, answer, sent)
    assert said.reason == "clock"
    assert abs(said.ts - now_ms()) < 60_000


async def test_a_status_of_a_newer_gateway_is_refused_and_signed(world: World) -> None:
    gateway = await world.gateway()
    body = msgspec.to_builtins(gateway.status()) | {"mood": "good"}
    answer, sent = await gateway.ask("poll", body)
    assert refusal(gateway, answer, sent).reason == "status"


@pytest.mark.parametrize("path", ["/link/v1/poll", "/link/v1/audit", "/link/v1/taint", "/link/v1/catalog"])
async def test_nobody_else_speaks_for_a_gateway(world: World, path: str) -> None:
    gateway, other = await world.gateway(), TestGateway(world.plane.url, 7)
    other.id, other.trust = gateway.id, gateway.trust
    forged = other.request("poll", gateway.status())
    assert (await other.send(forged, path)).status_code == 404
    other.id = other.rows.ulid()
    unknown = other.request("poll", gateway.status())
    answer = await other.send(unknown, path)
    assert answer.status_code == 404
    assert answer.content == (await other.send(forged, path)).content
    for junk in (b"", b"{}", b"[" * 10_000, sent_cut(forged)):
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.post(world.plane.url + path, content=junk)).status_code == 400
    assert (await world.row(gateway)).seen_ms is None


def sent_cut(sent: SentRequest) -> bytes:
    return sent.data[: len(sent.data) // 2]


async def test_a_request_of_one_kind_is_none_of_another(world: World) -> None:
    gateway = await world.gateway()
    answer = await gateway.send(gateway.request("taint", gateway.status()), "/link/v1/poll")
    assert answer.status_code == 400


async def test_a_taint_holds_for_every_gateway_of_the_project(world: World) -> None:
    first, second = await world.gateway(1), await world.gateway(2)
    token, query = first.rows.ulid(), first.rows.ulid()

    async def ask(gateway: TestGateway, **more: str) -> TaintAnswer:
        body = msgspec.structs.replace(TaintBody("ask", token, query), **more)
        answer, sent = await gateway.ask("taint", body)
        assert gateway.trust is not None
        return read_taint(
            answer.content, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest, query_id=query, grant=body.grant
        )

    assert not (await ask(first)).tainted
    assert (await ask(first, action="mark", database="shop", source="public.tickets")).tainted
    found = await ask(second)
    assert (found.tainted, found.database, found.source) == (True, "shop", "public.tickets")
    assert not (await ask(second, grant="")).tainted


async def test_catalogs_are_kept_by_digest(world: World) -> None:
    gateway = await world.gateway()
    for revision in range(2):
        answer, _ = await gateway.ask("catalog", CatalogBody("shop", revision, 0, {"relations": []}))
        assert answer.status_code == 200
