"""What agents did in the world's shop: a gateway that has sent its catalog, a week of statements, and a head over them."""

import random
from typing import Any, Final

from gatewayd.catalog import Catalog
from gatewayd.control.console import Console
from gatewayd.control.gateways.enrol_tokens import make_token
from gatewayd.link.formats.catalogs import catalog_body
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.pool import Pool
from tests.conftest import Postgres
from tests.control.gateway_of_tests import TestGateway, now_ms

SHOP: Final = """
CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric, placed_at timestamptz);
CREATE TABLE customers (id int PRIMARY KEY, name text, email text, phone text);
CREATE TABLE payments (id int PRIMARY KEY, order_id int, card_number text, amount numeric);
CREATE SCHEMA reports;
CREATE TABLE reports.daily (day date PRIMARY KEY, revenue numeric);
"""
ASKED: Final = (
    ("SELECT count(*) FROM orders WHERE placed_at > now() - interval '1 day'", "public.orders", None),
    ("SELECT name, email FROM customers WHERE id = 4711", "public.customers", None),
    ("SELECT day, revenue FROM reports.daily ORDER BY day DESC LIMIT 30", "reports.daily", None),
    (
        "SELECT o.id, o.total, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.total > 500",
        "public.orders",
        None,
    ),
    ("UPDATE orders SET total = 0 WHERE id = 99", "public.orders", "table_access"),
    ("DELETE FROM payments", "public.payments", "table_access"),
)
HIDDEN: Final = "\u202e\u200b\u2066\u00a0"
HOSTILE: Final = f"<script>alert(1)</script><img src=x onerror=alert(1)>'\"&{HIDDEN}{{{{7*7}}}}"
LONG: Final = "SELECT '" + HOSTILE * 60 + "\u200b" * 20_000 + "x" * 900_000 + "'"
DAY_MS: Final = 86_400_000


async def record(
    console: Console, postgres: Postgres, url: str, org: str, project: str, *, with_hostile: bool = True
) -> dict[str, str]:
    """Places of what was made: ids of queries."""
    dice = random.Random(3)
    gateway = TestGateway(url, seed=31)
    token = await make_token(console, org, project, "edge of the shop", None)
    answer = await gateway.enrol(token.text)
    assert answer.status_code == 200, answer.text
    body = catalog_body("main", await catalog_of(postgres.create_database(SHOP)), definitions=True)
    assert (await gateway.ask("catalog", body))[0].status_code == 200
    rows = gateway.rows
    begun = now_ms() - 6 * DAY_MS
    shared: dict[str, Any] = {"database": "main", "agent_intent": "the weekly report"}
    for place in range(160):
        sql, table, deny = ASKED[min(dice.randrange(9), dice.randrange(6))]
        ts = begun + place * 6 * DAY_MS // 160
        name = dice.choice(("claude-code", "claude-code", "cursor"))
        rows.query(sql, table=table, deny=deny, ts=ts, agent_name=name, **shared)
    agent = {"agent_name": HOSTILE[:128], "agent_version": HOSTILE[:64], "agent_intent": HOSTILE * 4}
    hostile: dict[str, Any] = {"database": "main", **agent}
    places: dict[str, str] = {}
    if with_hostile:
        places["long_query"] = rows.query(LONG, table=HOSTILE[:60], deny=HOSTILE[:50], **hostile)
        places["hostile_query"] = rows.query(f"SELECT 1 -- {HOSTILE}", table=HOSTILE[:60], **hostile)
    places["query"] = rows.query("DELETE FROM payments", table="public.payments", deny="table_access", **shared)
    assert (await gateway.push())[0].status_code == 200
    assert (await gateway.poll(note=rows.note(gateway.identity)))[0].status_code == 200
    return places


async def catalog_of(dsn: str) -> Catalog:
    pool = Pool("main", dsn, Limits(), 1)
    try:
        return await read_catalog(pool, 1)
    finally:
        await pool.aclose()
