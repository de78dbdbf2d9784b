"""The store of an early control plane (migrations up to 0020, `pg_dump --inserts`) under this version: all of it can be read.

`store.json` says what was put in and has the secrets of that throw-away control plane. Its clock stands when it was written.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from gatewayd.audit.proof import check_proof
from gatewayd.control.audit.one_query import find_events
from gatewayd.control.audit.proof_text import prove
from gatewayd.control.audit.rollup import BY_DAY, DayCount
from gatewayd.control.audit.search import Filters, search
from gatewayd.control.console import Console
from gatewayd.control.gateways import gateway as gateways
from gatewayd.control.people.person import BY_EMAIL, MEMBERSHIPS, Membership, Person
from gatewayd.control.policies.issue import NEWEST, BundleRow
from gatewayd.control.settings import load_control_settings, with_secrets
from gatewayd.control.store.days import day_number, day_of
from gatewayd.control.store.migrate import known, migrate, state
from gatewayd.control.store.store import Store, Transaction
from gatewayd.control.tokens.token import find_token
from gatewayd.control.trail.heads import KEPT, KeptHead, keep
from gatewayd.control.trail.proof import ExportedHead, check_export, exported, verifier_of
from gatewayd.control.trail.record import Event
from gatewayd.control.trail.routes import EVENTS
from gatewayd.control.trust.signing import signers
from gatewayd.keys.note import verifier_key
from tests.conftest import Postgres
from tests.control.conftest import OWNER, PASSWORD

ARTEFACTS = Path(__file__).parent / "artefacts" / "control-0020"


class Facts(msgspec.Struct):
    project: str
    token: str
    token_id: str
    queries: list[str]
    gateway: str
    ts: int
    secrets: dict[str, str]


@pytest.fixture
def facts() -> Facts:
    return msgspec.json.decode((ARTEFACTS / "store.json").read_bytes(), type=Facts)


@pytest.fixture
async def console(facts: Facts, postgres: Postgres, tmp_path: Path) -> AsyncIterator[Console]:
    dsn = postgres.create_database((ARTEFACTS / "store.sql").read_text(encoding="utf-8"))
    variables = {"GATEWAY_SELF_HOST": "1", "CONTROL_STATE_DIR": str(tmp_path / "state"), "CONTROL_DATABASE_URL": dsn}
    settings = with_secrets(load_control_settings(variables | facts.secrets))
    store = Store(dsn)
    yield Console(settings, store, clock=lambda: facts.ts + 60_000)
    store.close()


async def test_everything_of_an_early_store_is_there_after_its_migration(console: Console, facts: Facts) -> None:
    store, now_ms = console.store, console.now_ms()
    assert [each.number for each in (await state(store)).applied][-1] == 20
    applied = await migrate(store, console.replica, now_ms)
    assert [each.number for each in applied] == [each.number for each in known() if each.number > 20]

    person = await store.row(Person, BY_EMAIL, OWNER)
    assert person is not None
    assert await console.hashes.is_right(PASSWORD, person.password)
    (membership,) = await store.rows(Membership, MEMBERSHIPS, person.person_id)
    assert membership.role == "owner"

    async def token(tx: Transaction) -> str | None:
        found = await find_token(tx, console, facts.token, now_ms)
        return found and found[1].token_id

    assert await store.transaction(token) == facts.token_id
    bundle = await store.row(BundleRow, NEWEST, facts.project)
    assert bundle is not None
    assert bundle.policy_version == 2
    gateway = await store.row(gateways.Gateway, gateways.FIND, facts.project, facts.gateway)
    assert gateway is not None
    assert gateway.standing == "active"

    newest = await search(store, facts.project, Filters(), now_ms)
    assert sorted(each.query_id for each in newest.queries) == sorted(facts.queries)
    denied = await search(store, facts.project, Filters(rule="table_access", table="public.payroll"), now_ms)
    assert [each.query_id for each in denied.queries] == facts.queries[-1:]
    today = day_number(day_of(facts.ts))
    (count,) = await store.rows(DayCount, BY_DAY, facts.project, "all", today - 1, today + 1)
    assert (count.calls, count.denied) == (len(facts.queries), 1)
    proof = await prove(console, facts.project, await find_events(store, facts.project, facts.queries[0]))
    assert not proof.is_witnessed
    assert len(check_proof(proof.text, [verifier_key(each) for each in proof.keys])) == 3

    await keep(console)
    (head,) = await store.rows(KeptHead, KEPT, membership.org_id, 2)
    acts = await store.rows(Event, EVENTS, membership.org_id, 0, head.size, 1000)
    key = verifier_of(signers(console.secrets.signing)[0])
    lines = [msgspec.json.encode(each).decode() for each in (*map(exported, acts), ExportedHead(head.note, str(key)))]
    actions = [act["action"] for act in check_export(lines, [key]).acts]
    assert actions[0] == "organisation.founded"
    assert {"policy.published", "token.made", "gateway.enrolled"} <= set(actions)
