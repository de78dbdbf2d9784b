"""What the world's project Shop has: databases, gateways with a day of audit, tokens, a taint, a finding, keys, an invitation."""

import random
from collections.abc import Iterator
from typing import Final

import msgspec

from gatewayd.control.api_keys.api_key import add_key, new_text
from gatewayd.control.audit.findings import find_out
from gatewayd.control.console import Console
from gatewayd.control.databases.connection_check import Finding
from gatewayd.control.databases.database import OF_PROJECT, SET_ADDRESS, SET_CHECKED, Database, sealed_address, shown_host
from gatewayd.control.gateways.enrol_tokens import make_token
from gatewayd.control.gateways.fleet import NEWEST_BUNDLE
from gatewayd.control.keyring.sealing import NONCE_BYTES
from gatewayd.control.moment import moment
from gatewayd.control.notifications.channel import ADD as ADD_WEBHOOK
from gatewayd.control.notifications.deliveries import GIVE_UP
from gatewayd.control.people.links import new_link, store_link
from gatewayd.control.people.providers import ADD as ADD_PROVIDER
from gatewayd.control.policies.issue import issue_bundle
from gatewayd.control.projects.find import SET_ROLE
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.text import RANDOM_BYTES, SHOWN, token_text
from gatewayd.control.tokens.token import Token, add_token
from gatewayd.control.trail.record import Act
from gatewayd.link.formats.status import DatabaseStatus, NotEnforced
from gatewayd.link.formats.verdicts import TaintBody
from tests.console.world import World
from tests.control.gateway_of_tests import TestGateway, now_ms

HOUR_MS: Final = 3600 * 1000
URL: Final = "postgresql://gatewayd_agent:secret@db.internal.example:5432/shop"
WRITES: Final = "INSERT, UPDATE, DELETE"
TEST: Final = [
    Finding("reach", "OK", "PostgreSQL 16.9 answers in 3 ms", "", "main"),
    Finding("role", "OK", "gatewayd_agent: no superuser, no BYPASSRLS, owns nothing", "", "main"),
    Finding(
        "read only",
        "WARN",
        "the role may write to 3 tables",
        "REVOKE INSERT, UPDATE, DELETE ON orders, carts, events FROM gatewayd_agent",
        "main",
    ),
    Finding("statistics", "OK", "pg_stat_statements is not readable", "", "main"),
]
STATEMENTS: Final = (
    ("SELECT count(*) FROM orders WHERE placed_at > now() - interval '1 day'", None, "public.orders"),
    ("SELECT c.country, sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY 1", None, "public.orders"),
    ("SELECT id, email FROM customers WHERE email LIKE '%@example.org'", "table_access", "public.customers"),
    ("SELECT sku, stock FROM products WHERE stock < 5 ORDER BY stock", None, "public.products"),
    ("DELETE FROM orders WHERE status = 'draft'", "block_dml", "public.orders"),
    ("SELECT date_trunc('week', placed_at), count(*) FROM orders GROUP BY 1 ORDER BY 1", None, "public.orders"),
)  # fmt: skip
TOKENS: Final = ("Support assistant", "Nightly report", "Ada’s laptop")
AGENTS: Final = (("claude-code", "support"), ("cursor", "development"), ("claude-code", "finance"))


async def fill(world: World, console: Console) -> None:
    await _databases(world, console)
    tokens = [
        await token(world, console, world.places["shop"], name)
        for name in ("Support assistant", "Nightly report", "Ada’s laptop")
    ]
    await _gateways(world, console, tokens)
    await _around(world, console)


async def token(world: World, console: Console, project: str, name: str) -> str:
    """The id of a new token."""
    now, issuer = moment(console), console.new_id()
    text = token_text("live", console.entropy(RANDOM_BYTES))
    ends_ms = now.now_ms + 90 * 24 * HOUR_MS
    who = world.people["ada"]
    made = Token(now.fresh_id, "live", name, who, b"", text[:SHOWN], now.now_ms, ends_ms, now.now_ms, None, None, None)

    async def work(tx: Transaction) -> None:
        await add_token(tx, console, ProjectPlace(world.org, project, made.token_id), text, made)
        await issue_bundle(tx, console, world.org, project, "token made", now_ms=now.now_ms, issuer=issuer)
        await now.record(tx, world.org, Act("token.made", world.people["ada"], project, made.token_id, {"name": name}))

    await console.store.transaction(work)
    return made.token_id


async def gateway(world: World, console: Console, project: str, name: str, seed: int) -> TestGateway:
    enrolled = TestGateway(world.url, seed)
    new = await make_token(console, world.org, project, name, world.people["ada"])
    answer = await enrolled.enrol(new.text)
    assert answer.status_code == 200, answer.text
    return enrolled


async def _databases(world: World, console: Console) -> None:
    project, nonce, at_ms = world.places["shop"], console.entropy(NONCE_BYTES), console.now_ms()
    main = next(each for each in await console.store.rows(Database, OF_PROJECT, project) if each.name == "main")
    world.places["database"] = main.database_id

    async def work(tx: Transaction) -> None:
        sealed = sealed_address(console, project, main.database_id, URL, nonce)
        await tx.run(SET_ADDRESS, project, main.database_id, sealed, shown_host(URL))
        await tx.run(SET_CHECKED, project, main.database_id, at_ms, msgspec.json.encode(TEST).decode())

    await console.store.transaction(work)


async def _gateways(world: World, console: Console, tokens: list[str]) -> None:
    project = world.places["shop"]
    edge = await gateway(world, console, project, "Frankfurt", 1)
    answers = (DatabaseStatus("main", True, 4, 38), DatabaseStatus("reporting", True, 2, 12))
    await edge.poll()
    await edge.poll(state="enforcing", version=await _newest(world, console), sha256="", databases=answers)
    _write_a_day(edge, tokens, random.Random(1))
    for start in range(0, len(edge.rows.rows), 500):
        answer, _ = await edge.push(edge.rows.batch(start, min(start + 500, len(edge.rows.rows))))
        assert answer.status_code == 200, answer.text
    await edge.poll(
        state="enforcing", version=await _newest(world, console), databases=answers, note=edge.rows.note(edge.identity)
    )
    await edge.ask("taint", TaintBody("mark", tokens[0], edge.rows.rows[-1]["query_id"], "main", "public.tickets"))
    halted = await gateway(world, console, project, "Dublin, standby", 2)
    error = "table_access names public.refunds, which the database does not have"
    problem = NotEnforced("policy", error, await _newest(world, console))
    await halted.poll(state="halted", version=1, problem=problem, databases=(DatabaseStatus("main", False, 1, 0),))
    await gateway(world, console, project, "Ada’s laptop", 3)
    world.places |= {"gateway": edge.id, "halted": halted.id}


async def _newest(world: World, console: Console) -> int:
    return int(await console.store.value(NEWEST_BUNDLE, world.places["shop"]))


def _write_a_day(edge: TestGateway, tokens: list[str], dice: random.Random) -> None:
    """Busier by day than by night, and something denied in most hours."""
    for ts in _moments(dice):
        sql, deny, table = dice.choice(STATEMENTS)
        who = dice.randrange(len(AGENTS))
        agent, intent = AGENTS[who]
        edge.rows.query(
            sql, deny=deny if deny and dice.random() < 0.6 else None, table=table, ts=ts, agent_name=agent, agent_intent=intent,
            mcp_token_id=tokens[who],
        )  # fmt: skip


def _moments(dice: random.Random) -> Iterator[int]:
    newest = now_ms()
    for back in range(23, -1, -1):
        calls = 4 + int(18 * max(0.0, 1 - abs(back - 7) / 8)) + dice.randrange(6)
        begin = newest - (back + 1) * HOUR_MS
        yield from sorted(begin + dice.randrange(HOUR_MS) for _ in range(calls))


async def _around(world: World, console: Console) -> None:
    """An API key, an invitation, a role in the project, a webhook; a finding about the audit of the gateway that halted."""
    now, at_ms, finding_id = moment(console), console.now_ms(), console.new_id()
    ada = world.people["ada"]
    link = new_link(
        console, "invitation", org_id=world.org, email="lin@example.com", role="reviewer", in_projects=(), made_by=ada
    )
    world.places["invitation"] = link.address("").rpartition("/")[2]
    facts = {"instance": "01M81PHR2G8X7T3N5V9C6B4Q0D", "held": 512, "sent": 500}
    text, webhook, provider = new_text(console.entropy(32)), console.new_id(), console.new_id()
    world.places["webhook"] = webhook

    async def work(tx: Transaction) -> None:
        await add_key(
            tx, console, text, now.fresh_id, org_id=world.org, project_id=None, person_id=ada, name="CI of the shop",
            rights=frozenset({"project.policy", "project.read"}), now_ms=at_ms, ends_ms=at_ms + 90 * 24 * HOUR_MS,
        )  # fmt: skip
        await store_link(tx, link)
        await tx.run(SET_ROLE, world.places["shop"], world.people["grace"], "reviewer", at_ms)
        await find_out(
            tx, ProjectPlace(world.org, world.places["shop"], world.places["halted"]), "lost", facts, finding_id, at_ms
        )
        await tx.run(
            ADD_WEBHOOK,
            world.org,
            webhook,
            None,
            "standard",
            "Pager",
            "hooks.example.com",
            b"",
            b"",
            '["keys.changed"]',
            at_ms,
            ada,
        )
        await now.record(tx, world.org, Act("api_key.made", ada, None, now.fresh_id, {"name": "CI of the shop"}))
        await tx.run(GIVE_UP, world.org, webhook, "503")
        await tx.run(
            ADD_PROVIDER, provider, world.org, "Login", "https://login.example.com", "console", b"", "member", '["example.com"]',
            False, at_ms,
        )  # fmt: skip

    await console.store.transaction(work)
