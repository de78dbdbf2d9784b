"""source_rewrite at every place where a masked relation can be read, on a real server (decision 10)."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.masking.plan import Withheld
from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.masking_rig import Failed, Rig, rig
from tests.masking.masking_shop import HIDING, SCHEMA, data


@pytest.fixture(scope="session")
def shop_dsn(postgres: Postgres) -> str:
    return postgres.create_database(SCHEMA + data(7))


@pytest.fixture
async def shop(shop_dsn: str) -> AsyncIterator[Rig]:
    async with rig(shop_dsn, HIDING) as made:
        yield made


READS = [
    "SELECT ssn FROM users WHERE ssn IS NOT NULL",
    "SELECT u.ssn FROM users u WHERE u.ssn IS NOT NULL",
    "SELECT u.ssn FROM users AS u WHERE ssn = '***'",
    "SELECT public.users.ssn FROM public.users WHERE public.users.ssn IS NOT NULL",
    "SELECT users.ssn FROM public.users WHERE users.ssn IS NOT NULL",
    "SELECT s AS ssn FROM users AS u(a, b, c, d, s) WHERE s IS NOT NULL",
    "SELECT ssn FROM ONLY users WHERE ssn IS NOT NULL",
    "SELECT ssn FROM ONLY (users) AS u WHERE ssn IS NOT NULL",
    "SELECT ssn FROM users * WHERE ssn IS NOT NULL",
    "SELECT ssn FROM users * u WHERE ssn IS NOT NULL",
    "SELECT ssn FROM (TABLE users) q WHERE ssn IS NOT NULL",
    "SELECT ssn FROM (TABLE ONLY users) q WHERE ssn IS NOT NULL",
    "SELECT ssn FROM users TABLESAMPLE bernoulli (100) REPEATABLE (3) WHERE ssn IS NOT NULL",
    "SELECT u.ssn FROM users AS u TABLESAMPLE system (100) WHERE ssn IS NOT NULL",
    "WITH w AS (SELECT * FROM users) SELECT ssn FROM w WHERE ssn IS NOT NULL",
    "WITH users AS (SELECT ssn FROM public.users) SELECT ssn FROM users WHERE ssn IS NOT NULL",
    "WITH RECURSIVE up AS (SELECT id, ssn, manager_id FROM users WHERE id = 40 UNION ALL SELECT u.id, u.ssn, u.manager_id FROM up JOIN users u ON u.id = up.manager_id) SELECT ssn FROM up WHERE ssn IS NOT NULL",
    "SELECT (SELECT ssn FROM users u WHERE u.id = o.user_id) AS ssn FROM orders o WHERE o.user_id IN (SELECT id FROM users WHERE ssn IS NOT NULL)",
    "SELECT l.ssn FROM orders o, LATERAL (SELECT ssn FROM users u WHERE u.id = o.user_id) AS l WHERE l.ssn IS NOT NULL",
    "SELECT a.ssn FROM users a JOIN users b USING (ssn) LIMIT 5",
    "SELECT a.ssn FROM users a JOIN users b ON a.manager_id = b.id WHERE a.ssn IS NOT NULL",
    "SELECT ssn FROM users NATURAL JOIN (SELECT id FROM orders) o WHERE ssn IS NOT NULL",
    "SELECT ssn FROM users WHERE ssn IS NOT NULL UNION ALL SELECT card FROM orders",
    "SELECT ssn FROM users WHERE ssn IS NOT NULL INTERSECT SELECT card FROM orders",
    "SELECT max(ssn) AS ssn FROM users GROUP BY city",
    "SELECT DISTINCT ssn FROM users WHERE ssn IS NOT NULL",
    "SELECT ssn FROM users WHERE ssn IS NOT NULL ORDER BY ssn, id LIMIT 3",
    "SELECT first_value(ssn) OVER (ORDER BY id) AS ssn FROM users WHERE ssn IS NOT NULL",
    "SELECT j->>'ssn' AS ssn FROM (SELECT row_to_json(u) AS j FROM users u WHERE u.ssn IS NOT NULL) q",
    "SELECT (u).ssn FROM users u WHERE (u).ssn IS NOT NULL",
    "SELECT (q.u).ssn AS ssn FROM (SELECT u FROM users u WHERE ssn IS NOT NULL) q",
    "SELECT unnest(array_agg(ssn)) AS ssn FROM users WHERE ssn IS NOT NULL",
    "SELECT number AS ssn FROM contacts WHERE number IS NOT NULL",
    "SELECT number AS ssn FROM app.contacts_again WHERE number IS NOT NULL",
    "SELECT card AS ssn FROM app.cards",
    "SELECT label AS ssn FROM app.people",
    "SELECT label AS ssn FROM app.staff",
    'SELECT "Näme x" AS ssn FROM app."Größe"',
    "SELECT g.\"Näme x\" AS ssn, 'ö' AS ö FROM app.\"Größe\" AS g WHERE 'é' = 'é'",
    "/* ü */ SELECT 'ü', ssn FROM users -- é\nWHERE ssn IS NOT NULL -- users",
    "SELECT ssn FROM users WHERE (age, city) IS NOT NULL AND ssn IS NOT NULL;",
    "VALUES ((SELECT min(ssn) FROM users))",
]


@pytest.mark.parametrize("sql", READS)
async def test_every_read_gives_masked_values(shop: Rig, sql: str) -> None:
    rows = await shop.rows(sql)
    assert rows
    assert {row.get("ssn", row.get("column1")) for row in rows} == {"***"}


async def test_a_star_has_the_columns_of_the_table_in_their_order(shop: Rig) -> None:
    [row] = await shop.rows("SELECT * FROM users WHERE id = 1")
    assert list(row) == [column.name for column in shop.catalog.relations["public", "users"].columns]
    assert [row[name] for name in ("email", "phone", "birthday", "salary", "age", "profile", "tags")] == [
        "***", None, None, None, "***", "***", None,
    ]  # fmt: skip
    assert row["name"] == "user 1"
    assert "public.users.phone" in shop.columns


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) AS n FROM users", 40),
        ("SELECT count(*) AS n FROM users WHERE ssn LIKE 'ssn%'", 0),
        ("SELECT count(DISTINCT email) AS n FROM users", 1),
        ("SELECT count(*) AS n FROM users a JOIN orders o ON a.email = o.card", 40 * 120),
        ("SELECT count(salary) AS n FROM users", 0),
        ("SELECT count(*) AS n FROM user_cities", 40),
        ("SELECT sum(n) AS n FROM spend", 120),
    ],
)
async def test_predicates_and_aggregates_see_masked_values(shop: Rig, sql: str, expected: int) -> None:
    assert [row["n"] for row in await shop.rows(sql)] == [expected]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM rich",
        "SELECT count(*) FROM rich",
        "SELECT j FROM whole",
        "SELECT id FROM users FOR UPDATE",
        "SELECT u.id FROM users u JOIN orders o ON o.user_id = u.id FOR SHARE OF u",
        "EXPLAIN ANALYZE SELECT id FROM users",
        "EXPLAIN SELECT id FROM users WHERE ssn = 'x'",
        "EXPLAIN SELECT DISTINCT * FROM users",
        "CREATE VIEW v AS SELECT ssn FROM users",
        "CREATE MATERIALIZED VIEW v AS SELECT ssn FROM users",
        "ALTER TABLE users RENAME TO people",
        "ALTER TABLE users RENAME COLUMN ssn TO x",
        "CREATE UNIQUE INDEX ON users (ssn)",
        "CREATE TABLE child () INHERITS (users)",
        "SELECT ssn FROM users TABLESAMPLE bernoulli ((SELECT 50))",
    ],
)
async def test_what_cannot_be_masked_is_withheld(shop: Rig, sql: str) -> None:
    outcome = await shop(sql)
    assert isinstance(outcome, Withheld), outcome
    assert outcome.stage == "gate"
    assert "users" not in outcome.reason_agent


async def test_explain_shows_the_plan_without_estimates(shop: Rig) -> None:
    for sql in (
        "EXPLAIN SELECT * FROM users WHERE id = 3",
        "EXPLAIN (VERBOSE) SELECT id FROM users",
        "EXPLAIN VERBOSE SELECT id FROM users",
    ):
        lines = [str(row["QUERY PLAN"]) for row in await shop.rows(sql)]
        assert any("users" in line for line in lines)
        assert not any("cost=" in line or "width=" in line or "rows=" in line for line in lines)


async def test_an_error_points_into_the_text_as_it_was_sent(shop: Rig) -> None:
    sql = "SELECT ü.id, (SELECT 1), ü.nothing FROM users ü, orders o WHERE o.nix = 1"
    outcome = await shop(sql)
    assert isinstance(outcome, Failed)
    assert outcome.sqlstate == "42703"
    assert outcome.position == sql.index("ü.nothing") + 1
    outcome = await shop("SELECT u.id FROM users u, orders o WHERE o.nix = 1")
    assert isinstance(outcome, Failed)
    assert outcome.position == 42


async def test_an_error_text_carries_no_value(shop: Rig) -> None:
    outcome = await shop("SELECT CAST(ssn AS int) FROM users")
    assert isinstance(outcome, Failed)
    assert (outcome.sqlstate, "invalid text representation" in outcome.message, "***" in outcome.message) == (
        "22P02",
        True,
        False,
    )


async def test_unmasked_relations_run_as_they_are(shop: Rig) -> None:
    outcome = await shop("SELECT id FROM products, notes n WHERE n.id = products.id ORDER BY 1")
    assert isinstance(outcome, Failed)  # ambiguous: the agent's own mistake comes back as PostgreSQL says it
    assert outcome.message == 'column reference "id" is ambiguous'
    assert isinstance(await shop("SELECT title FROM products"), Result)
    assert shop.columns == ()


@pytest.mark.parametrize(
    "sql", ["SELECT id FROM ordered WHERE city = 'Oslo'", "SELECT id FROM ordered", "SELECT id, code FROM ordered"]
)
@pytest.mark.parametrize("mask", ["full-redact", "consistent-hash"])
async def test_no_row_comes_in_the_order_of_a_masked_column(postgres: Postgres, sql: str, mask: str) -> None:
    """PostgreSQL would rather read the index, and in its order the rows would tell that of the masked column."""
    dsn = postgres.create_database(
        "CREATE TABLE ordered (id int PRIMARY KEY, city text, code text); CREATE INDEX ON ordered (city, code) INCLUDE (id);"
        "INSERT INTO ordered SELECT n, 'Oslo', 'code ' || (1000 - n) FROM generate_series(1, 300) n; ANALYZE ordered;"
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET enable_seqscan = off', current_database()); END $$"
    )
    async with rig(dsn, f"mask_source_rewrite: true\ncolumn_masks: {{ordered: {{code: {mask}}}}}") as ask:
        assert [row["id"] for row in await ask.rows(sql)] == list(range(1, 301))


GRANTED = {
    "SELECT count(*) FROM users": True,
    "SELECT id, ssn FROM users WHERE city = 'Oslo' ORDER BY id": True,
    "SELECT u.city, count(u.ssn) FROM users AS u JOIN orders AS o ON o.user_id = u.id GROUP BY 1": True,
    "SELECT x.ssn FROM orders AS o, LATERAL (SELECT ssn FROM users WHERE id = o.user_id) AS x": True,
    "INSERT INTO notes SELECT 700 + id, ssn FROM users WHERE ssn IS NOT NULL": True,
    "SELECT name FROM users": False,
    "SELECT id FROM users ORDER BY salary": False,
    "SELECT * FROM users": False,
    "SELECT users FROM users": False,
    "SELECT q.c FROM users AS q (a, b, c)": False,
    "SELECT count(*) FROM users NATURAL JOIN orders": False,
}


async def test_columns_that_the_role_may_not_read_are_not_asked_for(postgres: Postgres) -> None:
    """What a plain statement could be granted, the rewritten one can."""
    postgres.execute("CREATE ROLE some_columns LOGIN")
    grants = "GRANT SELECT (id, city, ssn) ON users TO some_columns; GRANT SELECT ON orders TO some_columns; GRANT INSERT ON notes TO some_columns;"
    dsn = postgres.create_database(SCHEMA + data(5) + grants, user="some_columns")
    async with rig(dsn, HIDING) as ask:
        outcomes = {sql: await ask(sql) for sql in GRANTED}
    assert {sql: isinstance(outcome, Result) for sql, outcome in outcomes.items()} == GRANTED, outcomes
    assert all(isinstance(outcome, Result) or getattr(outcome, "sqlstate", "") == "42501" for outcome in outcomes.values()), (
        outcomes
    )


VIEWS = """
CREATE TABLE papers (id int PRIMARY KEY, email text, title text);
INSERT INTO papers VALUES (1, 'open', 'x');
CREATE VIEW by_with AS WITH q AS (SELECT id, ssn AS s FROM users WHERE city IS NOT NULL) SELECT q.id, q.s FROM q;
CREATE VIEW same_name AS SELECT u.id, u.ssn, upper(p.email) AS email FROM users u JOIN papers p ON p.id = u.id WHERE p.email > 'a';
CREATE VIEW both_arms AS SELECT id, ssn FROM users UNION ALL SELECT id, ssn FROM users;
CREATE VIEW held AS SELECT id, ssn FROM users WHERE ssn IS NOT NULL;
CREATE VIEW one_arm AS SELECT id, ssn FROM users UNION ALL SELECT id, title FROM papers;
CREATE VIEW only_different AS SELECT id, ssn FROM users UNION SELECT id, ssn FROM users;
CREATE VIEW computed AS SELECT id, lower(ssn) AS ssn FROM users;
CREATE VIEW sorted AS SELECT id FROM users ORDER BY ssn;
CREATE VIEW matched AS SELECT u.id FROM users u JOIN papers p ON p.title = u.ssn;
"""
MASKED_VIEWS = {"by_with": "s", "same_name": "ssn", "both_arms": "ssn", "held": "ssn"}
REFUSED_VIEWS = ("one_arm", "only_different", "computed", "sorted", "matched")


async def test_views_are_masked_where_lineage_can_tell_and_refused_elsewhere(postgres: Postgres) -> None:
    async with rig(postgres.create_database(SCHEMA + data(7) + VIEWS), HIDING) as ask:
        for view, column in MASKED_VIEWS.items():
            assert {row[column] for row in await ask.rows(f"SELECT * FROM {view}")} <= {"***", None}, view
        assert await ask.rows("SELECT email FROM same_name") == [{"email": "OPEN"}]
        for view in REFUSED_VIEWS:
            assert isinstance(await ask(f"SELECT id FROM {view}"), Withheld), view


@pytest.mark.parametrize(
    ("where", "columns", "rows", "truncated"),
    [
        ("id <= 4", "id, ssn", 4, False),
        ("id <= 5", "id, ssn", 4, True),
        ("id <= 3", "id, ssn, repeat('x', 100) AS x", 2, True),
        ("id <= 4", "repeat('x', 400) AS x, ssn", 0, True),
        ("id < 0", "id, ssn", 0, False),
    ],
)
async def test_rows_that_need_keys_keep_both_limits(shop_dsn: str, where: str, columns: str, rows: int, truncated: bool) -> None:
    """They come all in one value, by prepare and bind."""
    policy = "column_masks: {users: {ssn: consistent-hash}}\nmask_source_rewrite: true\nlimits: {max_rows: 4, max_bytes: 330}\n"
    async with rig(shop_dsn, policy) as ask:
        outcome = await ask(f"SELECT {columns} FROM users WHERE {where} ORDER BY id")
        assert isinstance(outcome, Result), outcome
        assert (len(outcome.rows), outcome.rows_returned, outcome.truncated) == (rows, rows, truncated)
        assert sum(map(len, outcome.rows)) <= 330
        lines = await ask.rows(r"SELECT id, E'a\001b\n' AS text, '{ }'::json AS doc, ssn FROM users WHERE id < 3 ORDER BY id")
        assert [(row["id"], row["text"], row["doc"]) for row in lines] == [(1, "a\x01b\n", {}), (2, "a\x01b\n", {})]
