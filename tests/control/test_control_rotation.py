"""A gateway's identity is rotated: who may, what becomes of the key before, and that nothing else of the gateway changes."""

import base64
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
import trio

from gatewayd.audit.proof import check_proof
from gatewayd.control.audit import findings
from gatewayd.control.audit.findings import Finding
from gatewayd.control.audit.one_query import find_events
from gatewayd.control.audit.proof_text import Proof, prove
from gatewayd.control.console import Console
from gatewayd.control.gateways import gateway as gateways
from gatewayd.control.gateways.gateway import SET_STANDING, Gateway
from gatewayd.control.gateways.identities import DAY_MS, ROTATIONS_A_DAY
from gatewayd.control.gateways.rotation import rotate
from gatewayd.control.people.welcome import ADD_ORGANISATION
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction
from gatewayd.control.trail.record import NEWEST, Event, new_organisation_trail
from gatewayd.control.trust.documents import trust_in_force
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.keys.note import verifier_key
from gatewayd.link.formats.answers import read_enrolment
from gatewayd.link.formats.requests import LinkRequest, read_request, sign_request
from gatewayd.link.formats.rotation import rotate_body
from tests.control.conftest import Plane
from tests.control.gateway_of_tests import TestGateway, now_ms, outside
from tests.control.one_project import OneProject, make_one_project, refusal

LONG_AGO = Statement("UPDATE gateway_keys SET ended_ms = $2 WHERE project_id = $1")
FIRST, SECOND, THIRD = (SigningKey(random.Random(seed).randbytes(32)) for seed in (1, 2, 3))


class Kept(msgspec.Struct):
    """A gateway in the store, whose first identity is FIRST."""

    console: Console
    place: ProjectPlace

    async def row(self) -> Gateway:
        row = await self.console.store.row(Gateway, gateways.FIND, self.place.project_id, self.place.id)
        assert row is not None
        return row

    async def ask(self, signer: SigningKey, following: SigningKey, known: Gateway | None = None, **changes: Any) -> int:
        """The status of the answer to a gateway that was `known` so when its request arrived; an answer of 200 is verified."""
        body = rotate_body(following, gateway=self.place.id, signer=signer.public, nonce="of this request")
        raw = msgspec.Raw(msgspec.json.encode(msgspec.structs.replace(body, **changes)))
        sent = sign_request(LinkRequest("issuer", self.place.id, "rotate", "run", 1, now_ms(), raw), signer)
        found = read_request(sent.data, signer.public)
        reply = await rotate(self.console, self.place, known or await self.row(), found)
        if reply.status == 200:
            trust = (await trust_in_force(self.console)).trust
            answer = read_enrolment(reply.body, trust, now_ms(), request=sent.digest, nonce="of this request")
            assert (answer.gateway, answer.project, answer.tenant_id) == (self.place.id, self.place.project_id, self.place.org_id)
        return reply.status

    async def recorded(self) -> list[dict[str, str]]:
        """What the trail holds of rotations, newest first."""
        events = await self.console.store.rows(Event, NEWEST, self.place.org_id, 1 << 62, 100)
        assert {(each.action, each.person_id) for each in events} <= {("gateway.rotated", None)}
        return [msgspec.json.decode(each.details or "{}") for each in events]


@pytest.fixture
async def kept(console: Console) -> Kept:
    place = ProjectPlace(console.new_id(), console.new_id(), console.new_id())
    trail = new_organisation_trail(console)

    async def work(tx: Transaction) -> None:
        await tx.run(ADD_ORGANISATION, place.org_id, "A", 1)
        await trail.begin(tx, place.org_id)
        await tx.run(gateways.ADD, place.project_id, place.id, "edge", FIRST.public.raw, FIRST.key_id, None, 1)

    await console.store.transaction(work)
    return Kept(console, place)


async def test_the_next_key_takes_the_place_and_the_trail_says_so(kept: Kept) -> None:
    before = await kept.row()
    assert await kept.ask(FIRST, SECOND) == 200
    changed = {"public_key": SECOND.public.raw, "key_id": SECOND.key_id}
    assert msgspec.structs.asdict(await kept.row()) == msgspec.structs.asdict(before) | changed
    assert await kept.recorded() == [{"name": "edge", "before": FIRST.key_id, "key": SECOND.key_id}]


async def test_an_answer_that_was_lost_is_given_again_to_the_next_key_and_changes_nothing(kept: Kept) -> None:
    assert await kept.ask(FIRST, SECOND) == 200
    after = await kept.row()
    for _ in range(2):
        assert await kept.ask(SECOND, SECOND) == 200
    assert await kept.row() == after
    assert len(await kept.recorded()) == 1
    assert await kept.ask(SECOND, THIRD) == 200  # the next rotation
    assert (await kept.row()).key == THIRD.public


async def test_a_key_that_does_not_prove_itself_is_not_taken(kept: Kept) -> None:
    of_another = rotate_body(SECOND, gateway=kept.console.new_id(), signer=FIRST.public, nonce="n")
    under_another = rotate_body(SECOND, gateway=kept.place.id, signer=THIRD.public, nonce="n")
    stolen = rotate_body(THIRD, gateway=kept.place.id, signer=FIRST.public, nonce="n")
    small_order = base64.b64encode(bytes(32)).decode()
    wrong: tuple[dict[str, Any], ...] = (
        {"proof": of_another.proof}, {"proof": under_another.proof}, {"proof": stolen.proof}, {"proof": ""}, {"proof": "\0"},
        {"public_key": stolen.public_key}, {"public_key": small_order}, {"public_key": ""}, {"nonce": "n" * 129},
    )  # fmt: skip
    for changes in wrong:
        assert await kept.ask(FIRST, SECOND, **changes) == 400
    assert (await kept.row()).key == FIRST.public
    assert await kept.recorded() == []


async def test_of_two_that_ask_at_once_one_is_taken(kept: Kept) -> None:
    known = await kept.row()
    statuses: dict[str, int] = {}

    async def ask(following: SigningKey) -> None:
        statuses[following.key_id] = await kept.ask(FIRST, following, known)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, SECOND)
        nursery.start_soon(ask, THIRD)
    assert sorted(statuses.values()) == [200, 404]
    assert statuses[(await kept.row()).key_id] == 200
    assert len(await kept.recorded()) == 1


async def test_the_same_request_twice_at_once_is_taken_once(kept: Kept) -> None:
    known = await kept.row()
    assert await kept.ask(FIRST, SECOND, known) == 200
    assert await kept.ask(FIRST, SECOND, known) == 404
    assert len(await kept.recorded()) == 1


async def test_a_key_of_before_is_not_taken_again(kept: Kept) -> None:
    assert await kept.ask(FIRST, SECOND) == 200
    assert await kept.ask(SECOND, FIRST) == 404
    assert await kept.ask(SECOND, THIRD) == 200
    for earlier in (FIRST, SECOND):
        assert await kept.ask(THIRD, earlier) == 404
    assert (await kept.row()).key == THIRD.public


async def test_a_gateway_changes_its_identity_so_often_a_day_and_no_more(kept: Kept) -> None:
    keys = [SigningKey(bytes([number]) * 32) for number in range(ROTATIONS_A_DAY + 1)]
    for before, following in zip([FIRST, *keys], keys[:ROTATIONS_A_DAY], strict=False):
        assert await kept.ask(before, following) == 200
    assert await kept.ask(keys[-2], keys[-1]) == 429
    assert await kept.ask(keys[-2], keys[-2]) == 200  # a lost answer is given again
    assert len(await kept.recorded()) == ROTATIONS_A_DAY
    await kept.console.store.run(LONG_AGO, kept.place.project_id, kept.console.now_ms() - DAY_MS)
    assert await kept.ask(keys[-2], keys[-1]) == 200


@pytest.mark.parametrize("standing", ["cut", "duplicated", "retired"])
async def test_a_gateway_that_is_cut_while_it_asks_keeps_its_key(kept: Kept, standing: str) -> None:
    known = await kept.row()
    await kept.console.store.run(SET_STANDING, kept.place.project_id, kept.place.id, standing, None)
    assert await kept.ask(FIRST, SECOND, known) == 404
    assert (await kept.row()).key == FIRST.public


@pytest.fixture
async def one_project(plane: Plane, store_url: str) -> AsyncIterator[OneProject]:
    store = Store(store_url)
    yield await make_one_project(plane, store)
    store.close()


async def rotated(gateway: TestGateway, following: SigningKey) -> httpx.Response:
    """The answer over the socket; the gateway signs with `following` from then on when it is 200."""
    body = rotate_body(following, gateway=gateway.id, signer=gateway.identity.public, nonce="n")
    answer, sent = await gateway.ask("rotate", body)
    if answer.status_code == 200:
        assert gateway.trust is not None
        read_enrolment(answer.content, gateway.trust, now_ms(), request=sent.digest, nonce="n")
        gateway.identity = following
    return answer


async def test_the_old_key_is_unknown_from_then_on_and_the_new_one_polls(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    await gateway.poll()
    thief = TestGateway(one_project.plane.url)  # it has a copy of the key of before
    thief.id, thief.trust, thief.run = gateway.id, gateway.trust, gateway.rows.ulid()
    body = rotate_body(SECOND, gateway=gateway.id, signer=gateway.identity.public, nonce="n")
    sent = gateway.request("rotate", body)
    assert (await gateway.send(sent)).status_code == 200
    assert (await gateway.send(sent)).status_code == 404  # the very bytes, shown again
    gateway.identity = SECOND
    assert (await thief.poll())[0].status_code == 404
    assert (await rotated(thief, THIRD)).status_code == 404
    assert outside((await gateway.poll())[0]).freshness
    assert (await one_project.row(gateway)).standing == "active"


async def test_a_copy_is_noticed_after_a_rotation_as_before_it(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    await gateway.poll()
    assert (await rotated(gateway, SECOND)).status_code == 200
    copy = TestGateway(one_project.plane.url)
    copy.id, copy.trust, copy.identity, copy.run = gateway.id, gateway.trust, SECOND, gateway.rows.ulid()
    assert (await copy.poll())[0].status_code == 200
    answer, sent = await gateway.poll()
    assert refusal(gateway, answer, sent).reason == "duplicated"
    body = rotate_body(THIRD, gateway=gateway.id, signer=SECOND.public, nonce="n")
    answer, sent = await copy.ask("rotate", body)
    assert refusal(copy, answer, sent).reason == "duplicated"  # a person decides, not whoever rotates first
    assert (await one_project.row(gateway)).key == SECOND.public


async def test_the_audit_goes_on_and_what_the_old_key_signed_still_proves_its_rows(one_project: OneProject) -> None:
    gateway = await one_project.gateway()
    first, old = gateway.identity, gateway.rows.query("SELECT 1")
    await gateway.push()
    await gateway.poll(note=gateway.rows.note(first))
    rest = gateway.rows.query("SELECT 2")  # of the old instance, never in a head that the gateway signed
    assert (await rotated(gateway, SECOND)).status_code == 200
    assert (await gateway.push(gateway.rows.batch(3)))[0].status_code == 200
    ended = gateway.rows.instance
    gateway.rows.instance, gateway.rows.first_seq = gateway.rows.ulid(), len(gateway.rows.rows) + 1
    new = gateway.rows.query("SELECT 3")
    assert (await gateway.push(gateway.rows.batch(6)))[0].status_code == 200
    await gateway.poll(note=gateway.rows.note(SECOND))

    async def proved(query_id: str) -> Proof:
        events = await find_events(one_project.console.store, one_project.project, query_id)
        proof = await prove(one_project.console, one_project.project, events)
        assert len(check_proof(proof.text, [verifier_key(each) for each in proof.keys])) == 3
        return proof

    for query_id, key in ((old, first), (new, SECOND)):
        proof = await proved(query_id)
        assert [verifier_key(each).key for each in proof.keys] == [key.public]
    witnessed = await proved(rest)
    assert witnessed.is_witnessed
    assert f"gatewayd/{first.key_id}/{ended}\n" in witnessed.text
    assert await one_project.console.store.rows(Finding, findings.OPEN, one_project.project) == []
