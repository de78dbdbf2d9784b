"""Dry-run: which requests are taken, and what their verdicts say (decision 7)."""

from typing import Any

import msgspec
import pytest

from gatewayd.catalog import Catalog, Relation, unread
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.file.model import Approvals, Guardrails, Policy, TableAccess
from gatewayd.policy.tools.probe import DryRunAnswer, DryRunRefused, answer, read_dry_run, texts
from gatewayd.sql.facts.analyze import analyze

HASH = "0123456789abcdef"
SHOP = unread("shop")
ACCESS = TableAccess("read", {("public", "orders"): "read_write", ("billing", "*"): "read_write"})


def run(request: dict[str, Any], policy: Policy, catalog: Catalog = SHOP) -> DryRunAnswer:
    checked = read_dry_run(msgspec.json.encode({"database": "shop", **request}), {"shop": None})
    facts = [analyze(text) for text in texts(checked)]
    return answer(checked, [(each, decide(each, policy, catalog)) for each in facts], HASH)


def probes(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"probes": [{"table": table, "action": action} for table, action in pairs]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "truncated"),
        (b"\xff", "malformed"),
        (b"[]", "object"),
        (b'{"sql": "SELECT 1"}', "database"),
        (b'{"database": "shop"}', "found neither"),
        (b'{"database": "shop", "sql": "SELECT 1", "probes": []}', "found both"),
        (b'{"database": "shop", "probes": null}', "$.probes"),
        (b'{"database": "shop", "sql": "SELECT 1", "more": 1}', "more"),
        (b'{"database": "nope", "sql": "SELECT 1"}', "database: no database of that name"),
        (b'{"database": "shop", "probes": [{"table": "users", "action": "truncate"}]}', "$.probes[0].action"),
        (b'{"database": "shop", "probes": [{"table": "users"}]}', "action"),
        (
            b'{"database": "shop", "probes": [{"table": "users", "action": "select"}, {"table": "", "action": "select"}]}',
            "probes[1].table",
        ),
        (b'{"database": "shop", "probes": [{"table": "a.b.c", "action": "select"}]}', "probes[0].table"),
        (b'{"database": "shop", "probes": [{"table": "app.*", "action": "select"}]}', "probes[0].table"),
        (b'{"database": "shop", "probes": [{"table": "a\\u0000", "action": "select"}]}', "probes[0].table"),
    ],
)
def test_a_request_that_is_none_is_refused_by_field(body: bytes, message: str) -> None:
    with pytest.raises(DryRunRefused) as refused:
        read_dry_run(body, {"shop": None})
    assert message in str(refused.value)
    assert str(refused.value).isprintable()


def test_250_probes_are_taken_and_one_more_is_not() -> None:
    many = probes(*[("users", "select")] * 250)
    assert len(run(many, Policy()).verdicts) == 250
    with pytest.raises(DryRunRefused, match="found 251; expected at most 250"):
        run(probes(*[("users", "select")] * 251), Policy())


@pytest.mark.parametrize(
    ("table", "action", "decision", "rule"),
    [
        ("users", "select", "allow", "default:read"),
        ("users", "update", "deny", "default:read"),
        ("public.users", "delete", "deny", "default:read"),
        ("orders", "insert", "allow", "table:public.orders→read_write"),
        ("orders", "update", "allow", "table:public.orders→read_write"),
        ("orders", "delete", "allow", "table:public.orders→read_write"),
        ("billing.invoices", "delete", "allow", "table:billing.*→read_write"),
        ("information_schema.tables", "select", "allow", "information_schema:read"),
        ("pg_catalog.pg_authid", "select", "deny", "table_access"),
        ("Weird Table", "select", "allow", "default:read"),
    ],
)
def test_a_probe_says_what_the_policy_on_its_table_permits(table: str, action: str, decision: str, rule: str) -> None:
    [verdict] = run(probes((table, action)), Policy(table_access=ACCESS)).verdicts
    assert (verdict.decision, verdict.matched_rule, verdict.action) == (decision, rule, action)
    assert verdict.tables == (table if "." in table else f"public.{table}",)
    assert verdict.reason


def test_a_probe_meets_the_guardrail_on_all_dml() -> None:
    blocked = Policy(table_access=ACCESS, guardrails=Guardrails(block_dml=True))
    [verdict] = run(probes(("orders", "delete")), blocked).verdicts
    assert (verdict.decision, verdict.matched_rule) == ("deny", "dangerous_statement")


def test_a_probe_of_a_held_write_is_an_allow_that_says_so() -> None:
    [verdict] = run(probes(("orders", "insert")), Policy(table_access=ACCESS, approvals=Approvals(writes=True))).verdicts
    assert verdict.decision == "allow"
    assert "approvals.row_changes" in verdict.reason


def test_a_probe_sees_through_views_once_the_catalog_is_read() -> None:
    users, view = Relation(1, "public", "users", "table"), Relation(2, "public", "v", "view", reads=(1,))
    catalog = Catalog(1, "shop", relations={("public", "users"): users, ("public", "v"): view})
    [verdict] = run(
        probes(("v", "select")), Policy(table_access=TableAccess(tables={("public", "users"): "deny"})), catalog
    ).verdicts
    assert (verdict.decision, verdict.matched_rule) == ("deny", "table:public.users→deny")


def test_beyond_fifty_distinct_tables_only_the_probes_of_the_first_fifty_are_decided() -> None:
    pairs = [(f"t{number}", action) for action in ("select", "insert") for number in range(60)]
    result = run(probes(*pairs, ("public.t0", "delete")), Policy())
    assert (result.truncated, result.total_tables, len(result.verdicts)) == (True, 60, 101)
    assert {verdict.tables[0] for verdict in result.verdicts} == {f"public.t{number}" for number in range(50)}
    fifty = run(probes(*pairs[:50]), Policy())
    assert (fifty.truncated, fifty.total_tables, len(fifty.verdicts)) == (False, 50, 50)


def test_a_statement_gets_one_verdict_with_its_echo() -> None:
    result = run({"sql": "UPDATE users SET a = 1"}, Policy())
    [verdict] = result.verdicts
    assert (verdict.sql, verdict.decision, verdict.action, verdict.tables) == (
        "UPDATE users SET a = 1",
        "deny",
        "update",
        ("public.users",),
    )
    assert (result.truncated, result.total_tables, result.policy_hash) == (False, 1, HASH)


def test_a_statement_that_does_not_parse_is_a_denial() -> None:
    [verdict] = run({"sql": "SELEC 1"}, Policy()).verdicts
    assert (verdict.decision, verdict.matched_rule, verdict.action) == ("deny", "parse_error", "unknown")


def test_the_answer_echoes_either_the_probe_or_the_statement() -> None:
    [probed] = msgspec.to_builtins(run(probes(("users", "select")), Policy()))["verdicts"]
    assert probed["probe"] == {"table": "users", "action": "select"}
    assert "sql" not in probed
    [literal] = msgspec.to_builtins(run({"sql": "SELECT 1"}, Policy()))["verdicts"]
    assert "probe" not in literal
    assert set(literal) == {"sql", "decision", "reason", "matched_rule", "tables", "action"}
