"""Deciding without a catalog: what the names say, no refusal for want of a catalog, no opening by it either."""

import pytest

from gatewayd.policy.decide.by_names import decide_by_names
from gatewayd.policy.decide.outcomes import Denied
from gatewayd.policy.file.model import Functions, Guardrails, Policy, TableAccess
from gatewayd.sql.facts.analyze import analyze

POLICY = Policy(
    table_access=TableAccess("read", {("public", "secrets"): "deny", ("app", "*"): "deny", ("public", "orders"): "read_write"}),
    functions=Functions(frozenset({("public", "slugify"), ("geo", "*")})),
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM customers",
        "SELECT c.name FROM customers c JOIN orders o ON o.customer = c.id WHERE o.at > now()",
        "UPDATE orders SET status = 'paid' WHERE id = 1",
        "INSERT INTO orders VALUES (1)",
        "SELECT slugify(name), geo.area(shape) FROM customers",
        "SELECT 'ok'::mood, 1::app.kind",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "SELECT * FROM information_schema.tables",
        "CREATE TABLE orders (id integer)",
        "SELECT 1",
    ],
)
def test_allowed(sql: str) -> None:
    decision = decide_by_names(analyze(sql), POLICY)
    assert not isinstance(decision, Denied), decision


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELECT * FROM secrets", "table_access"),
        ("SELECT * FROM app.users", "table_access"),
        ("DELETE FROM customers WHERE id = 1", "table_access"),
        ("DELETE FROM orders", "dangerous_statement"),
        ("SELECT mystery()", "table_access"),
        ("SELECT pg_sleep(1)", "table_access"),
        ("SELECT * FROM pg_authid", "table_access"),
        ("SELECT * FROM other.public.orders", "table_access"),
        ("SELECT 1; SELECT 2", "multi_statement"),
        ("SELEC 1", "parse_error"),
        ("COPY orders TO STDOUT", "table_access"),
    ],
)
def test_denied(sql: str, rule: str) -> None:
    decision = decide_by_names(analyze(sql), POLICY)
    assert isinstance(decision, Denied), decision
    assert decision.policy_rule == rule
    assert "catalog" not in decision.reason or "pg_catalog" in decision.reason


def test_guardrails_that_are_off() -> None:
    loose = Policy(table_access=TableAccess("read_write"), guardrails=Guardrails(False, False, False))
    assert not isinstance(decide_by_names(analyze("DROP TABLE orders"), loose), Denied)
