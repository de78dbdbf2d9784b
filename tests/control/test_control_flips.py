"""Flips: recorded statements under a new policy, judged over a real database's catalog as a gateway sent it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.catalog import Catalog
from gatewayd.control.audit.retention import forget
from gatewayd.control.audit.statement_days import KEPT_DAYS
from gatewayd.control.bounds import ControlBounds
from gatewayd.control.console import Console
from gatewayd.control.policies.checked import CheckedPolicy, check_policy
from gatewayd.control.policies.flips import NO_CATALOG, NO_DATABASE, NO_TEXT, NO_TIME, Flips, find_flips
from gatewayd.control.store.store import Store
from gatewayd.link.formats.catalogs import catalog_body
from gatewayd.policy.file.model import Limits, Policies
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.pool import Pool
from tests.conftest import Postgres
from tests.control.conftest import Plane
from tests.control.gateway_of_tests import TestGateway, now_ms
from tests.control.one_project import OneProject, make_one_project
from tests.control.two_organisations import uuid

SHOP = """
CREATE TABLE orders (id int PRIMARY KEY, total numeric);
CREATE TABLE customers (id int PRIMARY KEY, email text);
CREATE VIEW mailing AS SELECT email FROM customers;
"""


def policy(text: str) -> Policies:
    checked = check_policy(f"databases:\n  - name: shop\n{text}")
    assert isinstance(checked, CheckedPolicy), checked
    return checked.policies


OPEN = policy("    table_access: {default: read_write}\n")
NO_CUSTOMERS = policy("    table_access: {default: read, tables: {customers: deny}}\n")


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> str:
    return postgres.create_database(SHOP)


async def catalog(dsn: str) -> Catalog:
    pool = Pool("shop", dsn, Limits(), 1)
    try:
        return await read_catalog(pool, 1)
    finally:
        await pool.aclose()


@pytest.fixture
async def one_project(plane: Plane, store_url: str) -> AsyncIterator[OneProject]:
    store = Store(store_url)
    yield await make_one_project(plane, store)
    store.close()


@pytest.fixture
async def gateway(one_project: OneProject, database: str) -> TestGateway:
    """Enrolled, and its catalog is held."""
    made = await one_project.gateway()
    answer, _ = await made.ask("catalog", catalog_body("shop", await catalog(database), definitions=True))
    assert answer.status_code == 200, answer.text
    return made


async def pushed(gateway: TestGateway) -> None:
    answer, _ = await gateway.push()
    assert answer.status_code == 200, answer.text


async def flips(one_project: OneProject, new: Policies, in_force: Policies | None = None, **more: Any) -> Flips:
    return await find_flips(one_project.console, one_project.project, new, in_force, constants=more.get("constants", True))


def listed(found: Flips) -> dict[str | None, tuple[str, int, str]]:
    return {each.sql: (each.change, each.calls, each.rule) for each in found.statements}


async def test_what_would_be_refused_allowed_or_held_is_told_by_statement_rule_table_and_agent(
    one_project: OneProject, gateway: TestGateway
) -> None:
    rows = gateway.rows
    for agent in ("claude", "claude", "cursor"):
        rows.query("SELECT email FROM customers", table="public.customers", agent_name=agent)
    rows.query("SELECT * FROM mailing", table="public.mailing")
    rows.query("SELECT id FROM orders")
    rows.query("DELETE FROM orders WHERE id = 7", deny="table_access")
    rows.query("SELECT nothing FROM of_that_name", table="public.of_that_name")
    await pushed(gateway)

    found = await flips(one_project, NO_CUSTOMERS)
    assert listed(found) == {
        "SELECT email FROM customers": ("now denied", 3, "table_access"),
        "SELECT * FROM mailing": ("now denied", 1, "table_access"),
    }
    assert (found.calls, found.looked_at, found.now_denied, found.now_allowed, found.same) == (7, 7, 4, 0, 3)
    assert {(each.name, each.calls) for each in found.by_table} == {("public.customers", 3), ("public.mailing", 1)}
    assert {(each.name, each.calls) for each in found.by_agent} == {("claude", 3), ("cursor", 1)}
    assert [(each.change, each.name, each.calls) for each in found.by_rule] == [("now denied", "table_access", 4)]
    most = found.statements[0]
    assert (most.agents, most.tables, found.not_judged) == ({"claude": 2, "cursor": 1}, ["public.customers"], [])

    assert listed(await flips(one_project, OPEN)) == {"DELETE FROM orders WHERE id = 7": ("now allowed", 1, "table_access")}
    asking = policy("    table_access: {default: read_write}\n    approvals: {writes: true}\n")
    (held,) = (await flips(one_project, asking)).statements
    assert (held.change, held.sql, held.calls) == ("now held", "DELETE FROM orders WHERE id = 7", 1)


async def test_a_mask_that_cannot_be_kept_refuses_and_what_a_mask_refused_before_is_told_as_such(
    one_project: OneProject, gateway: TestGateway
) -> None:
    gateway.rows.query("SELECT id FROM customers WHERE email LIKE 'a%'", table="public.customers")
    gateway.rows.query("SELECT email FROM customers", table="public.customers")
    now = {"query_id": gateway.rows.ulid(), "ts": now_ms()}
    sql = "SELECT max(email) FROM customers"
    gateway.rows.add("ATTEMPTED", {"sql_raw": sql, "sql_fingerprint": "max"}, **now)
    gateway.rows.add("DECIDED", {"decision": "ALLOW", "tables_touched": ["public.customers"]}, **now)
    failed = {"exec_ms": 0, "overhead_ms": 1, "error_class": "masking", "error_message": "", "masking_stage": "gate"}
    gateway.rows.add("FAILED", failed, **now)
    await pushed(gateway)
    masked = policy("    column_masks: {customers: {email: full-redact}}\n")
    assert listed(await flips(one_project, masked)) == {
        "SELECT id FROM customers WHERE email LIKE 'a%'": ("now denied", 1, "column_masking")
    }
    found = await flips(one_project, OPEN)
    assert listed(found) == {sql: ("now allowed", 1, "column_masking")}
    assert (found.calls, found.looked_at) == (3, 3)


async def test_what_the_policy_in_force_answers_that_way_already_is_no_flip_of_this_change(
    one_project: OneProject, gateway: TestGateway
) -> None:
    gateway.rows.query("SELECT email FROM customers", table="public.customers")
    gateway.rows.query("SELECT id FROM orders")
    await pushed(gateway)
    closed = policy("    table_access: {default: deny}\n")
    found = await flips(one_project, closed, NO_CUSTOMERS)
    assert listed(found) == {"SELECT id FROM orders": ("now denied", 1, "table_access")}
    assert (found.already, found.looked_at) == (1, 2)


async def test_what_a_person_approved_was_held(one_project: OneProject, gateway: TestGateway) -> None:
    now = {"query_id": gateway.rows.ulid(), "ts": now_ms()}
    gateway.rows.add("ATTEMPTED", {"sql_raw": "DELETE FROM orders WHERE id = 7", "sql_fingerprint": "delete"}, **now)
    gateway.rows.add("DECIDED", {"decision": "ALLOW", "approved_by": "Ada"}, **now)
    await pushed(gateway)
    asking = policy("    table_access: {default: read_write}\n    approvals: {writes: true}\n")
    assert (await flips(one_project, asking)).flips == 0
    assert [each.change for each in (await flips(one_project, OPEN)).statements] == ["now allowed"]


async def test_what_cannot_be_judged_says_why(one_project: OneProject, gateway: TestGateway) -> None:
    gateway.rows.query("SELECT id FROM orders", database="books")
    gateway.rows.query("SELECT id FROM orders", database="gone")
    gateway.rows.query("SELECT id FROM orders WHERE id IN (" + "1, " * 40_000 + "2)")
    gateway.rows.query("SELECT total FROM orders")
    await pushed(gateway)
    both = policy("    table_access: {default: read}\n  - name: books\n")
    found = await flips(one_project, both)
    why = {each.database: (each.why, each.calls) for each in found.not_judged}
    assert why == {"books": (NO_CATALOG, 1), "gone": (NO_DATABASE, 1), "shop": (NO_TEXT, 1)}
    assert (found.calls, found.looked_at) == (4, 1)
    at_once = Console(one_project.plane.settings, one_project.console.store, bounds=ControlBounds(judge_s=-1.0))
    found = await find_flips(at_once, one_project.project, OPEN, None, constants=True)
    assert [(each.why, each.calls) for each in found.not_judged] == [(NO_TIME, 4)]


async def test_rows_that_come_twice_or_in_pieces_are_counted_once(one_project: OneProject, gateway: TestGateway) -> None:
    for _ in range(10):
        gateway.rows.query("SELECT email FROM customers", table="public.customers")
    for start, end in ((0, 10), (0, 10), (5, 20), (0, 30), (30, 30)):
        if start < end:
            await gateway.push(gateway.rows.batch(start, end))
    found = await flips(one_project, NO_CUSTOMERS)
    assert (found.calls, found.kinds, found.now_denied) == (10, 1, 10)


async def test_they_are_of_this_project_and_go_after_a_week(
    one_project: OneProject, gateway: TestGateway, postgres: Postgres, store_url: str
) -> None:
    gateway.rows.query("SELECT email FROM customers", table="public.customers")
    await pushed(gateway)
    other = one_project.console.new_id()
    assert (await find_flips(one_project.console, other, NO_CUSTOMERS, None, constants=True)).calls == 0
    await forget(one_project.console)
    assert (await flips(one_project, NO_CUSTOMERS)).calls == 1

    async def work(tx: Any) -> None:
        await tx.define(f"UPDATE statement_days SET day = day - {KEPT_DAYS} WHERE project_id = '{uuid(one_project.project)}'")

    await one_project.console.store.transaction(work)
    assert (await flips(one_project, NO_CUSTOMERS)).calls == 0
    await forget(one_project.console)
    assert postgres.query("SELECT day FROM statement_days", store_url) == []


async def test_who_may_not_see_the_audit_gets_statements_without_constants(one_project: OneProject, gateway: TestGateway) -> None:
    gateway.rows.query("SELECT id FROM customers WHERE email = 'ada@example.com'", table="public.customers")
    await pushed(gateway)
    (shown,) = (await flips(one_project, NO_CUSTOMERS, constants=False)).statements
    assert shown.sql == "SELECT id FROM customers WHERE email = ?"
