"""Writes under masks: a masked column may be given a value, nothing may be read from it, and a refused write leaves no trace."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.masking.plan import Withheld
from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.masking_rig import Failed, Rig, rig
from tests.masking.masking_shop import HIDING, SCHEMA, SHOWING, data
from tests.masking.refused_writes import REFUSED


@pytest.fixture(scope="session")
def dsn(postgres: Postgres) -> str:
    return postgres.create_database(SCHEMA + data(7))


@pytest.fixture
async def shop(dsn: str) -> AsyncIterator[Rig]:
    async with rig(dsn, HIDING) as made:
        yield made


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
async def test_a_write_that_reads_a_masked_column_is_refused_before_it_runs(shop: Rig, postgres: Postgres, sql: str) -> None:
    tables = ("users", "orders", "app.people", "app.staff")
    before = [postgres.query(f"SELECT xmin::text, t::text FROM {table} t", shop_database(shop)) for table in tables]
    outcome = await shop(sql)
    assert isinstance(outcome, Withheld) or (not isinstance(outcome, Result) and "to_jsonb" in sql), outcome
    assert before == [postgres.query(f"SELECT xmin::text, t::text FROM {table} t", shop_database(shop)) for table in tables]


def shop_database(shop: Rig) -> str:
    return shop.catalog.database


ALLOWED = {
    "constant": ("UPDATE users SET ssn = 'new', email = 'e' WHERE id = 1", 1),
    "default": ("UPDATE users SET ssn = DEFAULT WHERE id = 1", 1),
    "from another": ("UPDATE users SET ssn = n.body FROM notes n WHERE n.id = users.id AND users.id = 2", 1),
    "unmasked where": ("UPDATE users u SET city = 'x' WHERE u.id = 3 AND name = 'user 3'", 1),
    "delete": ("DELETE FROM order_items WHERE order_id IN (SELECT o.id FROM orders o WHERE o.card = '***' AND o.id = 5)", 1),
    "insert": ("INSERT INTO users (id, name, email, created_at) VALUES (901, 'n', 'e', now())", 1),
    "upsert": (
        "INSERT INTO orders VALUES (1, 1, 'new', 1, 'c', now()) ON CONFLICT (id) DO UPDATE SET card = excluded.card, status = 'z'",
        1,
    ),
    "merge": ("MERGE INTO users u USING notes n ON u.id = n.id WHEN MATCHED AND n.id = 4 THEN UPDATE SET ssn = n.body", 1),
    "view": ("UPDATE contacts SET email = 'e' WHERE id = 12", 1),
    "same name elsewhere": ("UPDATE notes SET body = u.ssn FROM users u WHERE u.id = notes.id AND notes.id = 5", 1),
}


@pytest.mark.parametrize(("sql", "affected"), ALLOWED.values(), ids=ALLOWED)
async def test_a_masked_column_may_be_given_a_value(shop: Rig, sql: str, affected: int) -> None:
    outcome = await shop(sql)
    assert isinstance(outcome, Result), outcome
    assert outcome.rows_affected == affected


KEYS = """
CREATE TABLE tenants (code text PRIMARY KEY, secret text UNIQUE, low int, high int, city text, CHECK (low < high), CHECK (city <> ''));
CREATE TABLE members (id int PRIMARY KEY, tenant text REFERENCES tenants (secret), code text REFERENCES tenants, note text);
CREATE TABLE accounts (id int PRIMARY KEY, iban text, bank text, name text, UNIQUE (bank, iban));
CREATE UNIQUE INDEX ON accounts (lower(name));
CREATE VIEW account_names AS SELECT id, name FROM accounts;
INSERT INTO tenants VALUES ('a', 's1', 1, 5, 'x'); INSERT INTO members VALUES (1, 's1', 'a', 'n');
INSERT INTO accounts VALUES (1, 'i', 'b', 'N');
"""
KEY_MASKS = """
table_access: {default: read_write}
mask_source_rewrite: true
column_masks: {tenants: {secret: full-redact, low: null-out}, accounts: {iban: full-redact, name: full-redact}}
"""
TOLD = {
    "INSERT INTO tenants VALUES ('b', 's1', 1, 2, 'x')": True,
    "INSERT INTO tenants (code, low, high) VALUES ('c', 1, 2)": False,
    "UPDATE tenants SET secret = 's2' WHERE code = 'a'": True,
    "UPDATE tenants SET high = 3 WHERE code = 'a'": True,
    "UPDATE tenants SET low = 0, high = 3 WHERE code = 'a'": False,
    "UPDATE tenants SET city = 'y' WHERE code = 'a'": False,
    "UPDATE tenants SET code = 'z' WHERE code = 'c'": False,
    "DELETE FROM tenants WHERE code = 'z'": True,  # members.tenant refers to the masked secret
    "INSERT INTO members VALUES (2, 's1', 'a', 'n')": True,
    "INSERT INTO members (id, code) VALUES (3, 'a')": False,
    "UPDATE members SET tenant = 's9' WHERE id = 1": True,
    "UPDATE members SET note = 'm' WHERE id = 1": False,
    "INSERT INTO accounts (id, bank) VALUES (2, 'b')": False,
    "INSERT INTO accounts (id, bank, iban) VALUES (3, 'b', 'i')": True,
    "UPDATE accounts SET bank = 'c' WHERE id = 1": True,
    "UPDATE accounts SET name = 'm' WHERE id = 1": True,
    "INSERT INTO account_names VALUES (4, 'n')": True,
    "MERGE INTO accounts a USING members m ON a.id = m.id WHEN NOT MATCHED THEN INSERT (id, iban) VALUES (m.id, m.note)": True,
    "DELETE FROM accounts WHERE id = 9": False,
}


async def test_a_key_or_check_over_masked_values_is_not_asked(postgres: Postgres) -> None:
    async with rig(postgres.create_database(KEYS), KEY_MASKS) as ask:
        outcomes = {sql: await ask(sql) for sql in TOLD}
        assert {sql: isinstance(outcome, Withheld) for sql, outcome in outcomes.items()} == TOLD
        assert all(isinstance(outcome, Withheld | Result) for outcome in outcomes.values()), outcomes


async def test_what_is_copied_out_of_a_masked_table_is_masked(shop: Rig) -> None:
    assert await shop.rows("INSERT INTO notes SELECT 50 + id, ssn FROM users WHERE id = 11 AND ssn IS NOT NULL RETURNING body")
    assert await shop.rows("SELECT body FROM notes WHERE id = 61") == [{"body": "***"}]
    for sql in (
        "CREATE TABLE copied AS SELECT id, ssn FROM users WHERE ssn IS NOT NULL",
        "SELECT id, ssn INTO copied_too FROM users WHERE ssn IS NOT NULL",
    ):
        assert isinstance(await shop(sql), Result)
    await shop.refresh()
    assert await shop.rows("SELECT DISTINCT ssn FROM copied UNION SELECT ssn FROM copied_too") == [{"ssn": "***"}]


async def test_parameters_go_along_with_every_form(postgres: Postgres) -> None:
    async with rig(postgres.create_database(SCHEMA + data(7)), SHOWING) as shop:
        [read] = await shop.rows("SELECT ssn FROM users WHERE id = 1")
        [written] = await shop.rows("INSERT INTO notes SELECT 70, ssn FROM users WHERE id = 1 RETURNING body")
        assert read["ssn"] == written["body"]
        assert len(str(read["ssn"])) == 32
        rows = await shop.rows(
            "WITH d AS (DELETE FROM notes WHERE id = 70 RETURNING id) SELECT ssn FROM users, d WHERE users.id = 1"
        )
        assert rows == [read]
        outcome = await shop("UPDATE notes SET body = u.ssn FROM users u WHERE u.id = notes.id AND notes.id = 1")
        assert isinstance(outcome, Result)
        assert outcome.rows_affected == 1
        assert isinstance(await shop("CREATE TABLE hashed AS SELECT ssn FROM users WHERE id = 1"), Result)
        await shop.refresh()
        assert await shop.rows("SELECT ssn FROM hashed") == [read]


async def test_a_constraint_says_no_value(shop: Rig) -> None:
    outcome = await shop("UPDATE users SET name = NULL WHERE id = 8")
    assert isinstance(outcome, Failed)
    assert (outcome.sqlstate, outcome.hint) == ("23502", None)
    assert "not-null violation" in outcome.message
    assert "mail" not in outcome.message
