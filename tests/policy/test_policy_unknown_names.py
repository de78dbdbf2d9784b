"""A statement whose only trouble is a name that nobody knows may be parsed by the database, and the nearest name is told, unless
the policy hides it."""

import pytest

from gatewayd.catalog import Catalog, Function, Operator, Relation
from gatewayd.policy.decide.decision import decide_unknown, unknown_names
from gatewayd.policy.decide.outcomes import Allowed
from gatewayd.policy.decide.unknown_names import UNKNOWN_NAME, nearest
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement

CATALOG = Catalog(
    revision=1,
    database="shop",
    relations={
        (each.schema, each.name): each
        for each in (
            Relation(20001, "public", "orders", "table"),
            Relation(20002, "public", "salaries", "table"),
            Relation(20003, "public", "orders_idx", "index", belongs_to=20001),
        )
    },
    functions={30001: Function(30001, "public", "slugify", "immutable", False, "sql", None, 1)},
    operators=(Operator("public", "<->>", 30001, "slugify"),),
)


def policy(text: str = "table_access: {default: read, tables: {salaries: deny}}") -> Policy:
    single = load_policies(text, {}).single
    assert single is not None
    return single


def decided(sql: str, under: Policy | None = None) -> Allowed | None:
    statement = analyze(sql)
    assert isinstance(statement, Statement), statement
    unknown = unknown_names(statement, CATALOG)
    assert unknown, sql
    return decide_unknown(statement, unknown, under or policy(), CATALOG)


def proposed(sql: str) -> str | None:
    statement = analyze(sql)
    assert isinstance(statement, Statement), statement
    unknown = unknown_names(statement, CATALOG)
    assert unknown, sql
    return nearest(unknown, policy(), CATALOG)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM order_lines",
        "SELECT * FROM archive.orders",
        "SELECT slug(id::text) FROM orders",
        "SELECT id <=>> 1 FROM orders",
        "SELECT id::mood FROM orders",
        "EXPLAIN SELECT * FROM order_lines",
    ],
)
def test_an_unknown_name_alone_is_a_reason_to_ask_the_database(sql: str) -> None:
    found = decided(sql)
    assert found is not None
    assert found.matched_rule == UNKNOWN_NAME


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM order_lines, salaries",  # hidden
        "DELETE FROM order_lines WHERE id IN (SELECT id FROM salaries)",
        "SELECT slug(pg_read_file('x'))",  # never, whatever the name is
        "CREATE VIEW v AS SELECT * FROM order_lines",  # a definition would run
        "SELECT * FROM " + ", ".join(f"t{number}" for number in range(65)),  # a flood
    ],
)
def test_any_other_trouble_keeps_the_denial(sql: str) -> None:
    assert decided(sql) is None


def test_a_name_that_a_key_is_meant_for_is_not_asked_about() -> None:
    keyed = policy("table_access: {default: read, tables: {order_lines: deny, 'archive.*': read}}")
    assert decided("SELECT * FROM order_lines", keyed) is None
    assert decided("SELECT * FROM archive.orders", keyed) is None


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT * FROM ordrs", "orders"),
        ("SELECT * FROM salarys", None),  # hidden
        ("SELECT * FROM orders_id", "orders"),  # never the index orders_idx, though it is nearer
        ("SELECT * FROM something_else", None),
        ("SELECT slugfy('a')", "slugify"),
        ("SELECT id::mood FROM orders", None),
    ],
)
def test_the_nearest_name_that_may_be_known_is_told(sql: str, name: str | None) -> None:
    assert proposed(sql) == name
