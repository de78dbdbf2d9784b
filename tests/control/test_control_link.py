"""The link service on a real socket: enrolment, polls, clones, and what nobody else may say for a gateway."""

from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
import trio

from gatewayd.control.console import Console
from gatewayd.control.gateways.enrol_tokens import LIFE_MS, make_token
from gatewayd.control.store.store import Store
from gatewayd.link.formats.bundle import bundle_sha256
from gatewayd.link.formats.requests import SentRequest
from gatewayd.link.formats.verdicts import CatalogBody, TaintAnswer, TaintBody, read_taint
from tests.control.conftest import Plane
from tests.control.gateway_of_tests import TestGateway, now_ms, outside
from tests.control.one_project import OneProject, freshness, make_one_project, refusal


@pytest.fixture
async def one_project(plane: Plane, store_url: str) -> AsyncIterator[OneProject]:
    store = Store(store_url)
    yield await make_one_project(plane, store)
    store.close()


async def test_a_token_enrols_one_gateway_once(one_project: OneProject) -> None:
    token = await one_project.token()
    first, second = TestGateway(one_project.plane.url, 1), TestGateway(one_project.plane.url, 2)
    assert (await first.enrol(token)).status_code == 200
    assert first.project == one_project.project
    same = first.id
    assert (await first.enrol(token)).status_code == 200  # its answer was lost
    assert first.id == same
    assert (await second.enrol(token)).status_code == 403
    assert (await second.enrol("gw_enrol_" + "0" * 32 + token[-65:])).status_code == 403


async def test_a_token_lasts_an_hour(one_project: OneProject) -> None:
    late = Console(one_project.plane.settings, one_project.console.store, clock=lambda: now_ms() - LIFE_MS - 1000)
    token = await make_token(late, one_project.org, one_project.project, "edge", None)
    assert (await TestGateway(one_project.plane.url).enrol(token.text)).status_code == 403


async def test_a_poll_brings_the_newest_bundle_and_always_freshness(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    answer, sent = await gateway.poll()
    assert freshness(gateway, answer, sent).version == 0
    bundle = await one_project.publish(1)
    answer, sent = await gateway.poll(wait_s=20)
    fresh = freshness(gateway, answer, sent)
    assert (fresh.version, fresh.sha256, fresh.n) == (1, bundle_sha256(bundle), gateway.n)
    assert bytes(outside(answer).bundle) != b"null"
    answer, sent = await gateway.poll(state="enforcing", version=1, sha256=fresh.sha256, seen_version=1)
    assert bytes(outside(answer).bundle) == b"null"
    row = await one_project.row(gateway)
    assert (row.state, row.bundle_version, row.standing) == ("enforcing", 1, "active")


async def test_a_held_poll_is_answered_within_a_second_of_a_publication_made_elsewhere(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    took: list[float] = []

    async def wait() -> None:
        answer, _ = await gateway.poll(wait_s=30)
        took.append(trio.current_time())
        assert bytes(outside(answer).bundle) != b"null"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        with trio.fail_after(10):
            while (await one_project.row(gateway)).seen_ms is None:  # noqa: ASYNC110  # the store tells no events
                await trio.sleep(0.05)
        await one_project.publish(1)
        published = trio.current_time()
    assert took[0] - published < 3  # a second on a machine that does nothing else


async def test_a_copied_identity_is_cut_until_a_person_decides(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    await gateway.poll()
    copy = TestGateway(one_project.plane.url)
    copy.id, copy.trust, copy.run, copy.n = gateway.id, gateway.trust, copy.rows.ulid(), 0
    copy.rows.dice.seed(99)
    copy.run = copy.rows.ulid()
    answer, _ = await copy.poll()  # a restart looks like this, too
    assert answer.status_code == 200
    answer, sent = await gateway.poll()
    assert refusal(gateway, answer, sent).reason == "duplicated"
    answer, sent = await copy.poll()
    assert refusal(copy, answer, sent).reason == "duplicated"
    assert (await one_project.row(gateway)).standing == "duplicated"


async def test_a_lost_answer_or_a_late_request_is_no_alarm(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    earlier = gateway.request("poll", gateway.status())
    sent = gateway.request("poll", gateway.status())
    for _ in range(2):  # the very bytes come twice
        answer = await gateway.send(sent)
        assert freshness(gateway, answer, sent).n == 3
    assert refusal(gateway, await gateway.send(earlier), earlier).reason == "late"
    assert (await one_project.row(gateway)).standing == "active"


async def test_a_clock_that_is_off_is_told_the_time(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    answer, sent = await gateway.ask("poll", gateway.status(), ts=now_ms() - 3_600_000)
    said = refusal(gateway, answer, sent)
    assert said.reason == "clock"
    assert abs(said.ts - now_ms()) < 60_000


async def test_a_status_of_a_newer_gateway_is_refused_and_signed(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    body = msgspec.to_builtins(gateway.status()) | {"mood": "good"}
    answer, sent = await gateway.ask("poll", body)
    assert refusal(gateway, answer, sent).reason == "status"


@pytest.mark.parametrize("path", ["/link/v1/poll", "/link/v1/audit", "/link/v1/taint", "/link/v1/catalog"])
async def test_nobody_else_speaks_for_a_gateway(one_project: OneProject, path: str) -> None:
    gateway, other = await one_project.gateway(), TestGateway(one_project.plane.url, 7)
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
            assert (await client.post(one_project.plane.url + path, content=junk)).status_code == 400
    assert (await one_project.row(gateway)).seen_ms is None


def sent_cut(sent: SentRequest) -> bytes:
    return sent.data[: len(sent.data) // 2]


async def test_a_request_of_one_kind_is_none_of_another(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    answer = await gateway.send(gateway.request("taint", gateway.status()), "/link/v1/poll")
    assert answer.status_code == 400


async def test_a_taint_holds_for_every_gateway_of_the_project(one_project: OneProject) -> None:
    first, second = await one_project.gateway(1), await one_project.gateway(2)
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


async def test_catalogs_are_kept_by_digest(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    for revision in range(2):
        answer, _ = await gateway.ask("catalog", CatalogBody("shop", revision, 0, {"relations": []}))
        assert answer.status_code == 200
