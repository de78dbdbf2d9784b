"""A project in a control plane that runs, and gateways that enrol in it."""

import httpx
import msgspec

from gatewayd.control.console import Console
from gatewayd.control.gateways import gateway as gateways
from gatewayd.control.gateways.enrol_tokens import make_token
from gatewayd.control.gateways.gateway import Gateway
from gatewayd.control.people.welcome import ADD_ORGANISATION
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction
from gatewayd.control.trail.record import new_organisation_trail
from gatewayd.control.trust.documents import trust_in_force
from gatewayd.control.trust.signing import signers
from gatewayd.link.formats.answers import Freshness, RefusalAnswer, read_answer
from gatewayd.link.formats.bundle import Bundle, bundle_sha256, sign_bundle
from gatewayd.link.formats.requests import SentRequest
from tests.control.conftest import Plane
from tests.control.gateway_of_tests import TestGateway, now_ms, outside
from tests.control.two_organisations import uuid

POLICY = "databases:\n  - name: shop\n    table_access: {default: read}\n"
WHO = Statement("SELECT org_id, person_id FROM memberships")


class OneProject(msgspec.Struct):
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


async def make_one_project(plane: Plane, store: Store) -> OneProject:
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
    return OneProject(plane, console, org, project)


def refusal(gateway: TestGateway, answer: httpx.Response, sent: SentRequest) -> RefusalAnswer:
    assert gateway.trust is not None
    assert answer.status_code == 403, answer.text
    return read_answer(answer.content, RefusalAnswer, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest)


def freshness(gateway: TestGateway, answer: httpx.Response, sent: SentRequest) -> Freshness:
    assert gateway.trust is not None
    data = bytes(outside(answer).freshness)
    return read_answer(data, Freshness, gateway.trust, now_ms(), gateway=gateway.id, request=sent.digest)


class Who(msgspec.Struct):
    org_id: str
    person_id: str
