"""Lint: one policy, or a policy and a catalog, and the finding that it must give or must not."""

import msgspec
import pytest

from gatewayd.catalog import Catalog, Column, Function, Relation
from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy
from gatewayd.policy.file.problem import dotted
from gatewayd.policy.tools.finding import Finding
from gatewayd.policy.tools.lint import lint

CAREFUL = """
table_access: {default: deny, tables: {orders: read, customers: read}}
guardrails: {block_dml: true}
"""
CATALOG = Catalog(
    revision=1,
    database="d",
    relations={
        (each.schema, each.name): each
        for each in (
            Relation(20001, "public", "orders", "table", (Column("id", "integer"),)),
            Relation(20002, "public", "customers", "table", (Column("id", "integer"),)),
            Relation(20003, "public", "secrets", "table", (Column("word", "bytea"),)),
            Relation(20004, "public", "words", "view", (Column("word", "bytea"),), reads=(20005,)),
            Relation(20005, "public", "deeper", "view", (), reads=(20003,)),
            Relation(20006, "app", "users", "table", (Column("email", "text"), Column("password", "text"))),
            Relation(20007, "public", "Orders", "table"),
        )
    },
    functions={
        20010: Function(20010, "public", "grab", "stable", True, "sql", None, 0),
        20011: Function(20011, "public", "slugify", "immutable", False, "sql", None, 1),
    },
)


def policy_of(text: str) -> Policy:
    policy = load_policies(text, {}, approval_gate=True, mask_salt=True, features={}).single
    assert policy is not None
    return policy


def findings(text: str, catalog: Catalog | None = None) -> list[Finding]:
    return list(lint(policy_of(text), catalog))


def test_a_careful_policy_has_none() -> None:
    assert findings(CAREFUL) == []
    tidy = {key: each for key, each in CATALOG.relations.items() if key != ("public", "Orders")}
    assert findings(CAREFUL, msgspec.structs.replace(CATALOG, relations=tidy)) == []


@pytest.mark.parametrize(
    ("text", "severity", "path", "found"),
    [
        ("", "medium", "table_access.default", "nothing is denied or masked"),
        ("table_access: {default: read_write}", "high", "table_access.default", "also those made later"),
        ("table_access: {tables: {s: deny}}", "low", "table_access.default", "made later is readable"),
        ("table_access: {tables: {s: read_write}}\nguardrails: {block_ddl: false}", "high", "guardrails.block_ddl", "DROP"),
        ("guardrails: {block_unqualified_dml: false}", "low", "guardrails.block_unqualified_dml", "WHERE"),
        ("table_access: {tables: {'app.*': read_write}}", "medium", 'table_access.tables."app.*"', "every table of schema app"),
        ("table_access: {tables: {Users: deny}}", "medium", 'table_access.tables."public.Users"', "capital letters"),
        ("table_access: {tables: {pg_catalog.pg_authid: read}}", "high", 'table_access.tables."pg_catalog.pg_authid"', "opens"),
        ("functions: {allow: ['geo.*']}", "medium", "functions.allow", "geo.* allows every function"),
        ("limits: {max_rows: 100000}", "medium", "limits.max_rows", "100000"),
        ("approvals: {writes: true}", "low", "approvals", "no write is permitted"),
        (
            "table_access: {default: read_write}\nguardrails: {block_dml: true}\napprovals: {writes: true}",
            "low",
            "approvals",
            "no write is permitted",
        ),
        (
            "table_access: {default: read_write}\nguardrails: {block_unqualified_dml: false}\napprovals: {row_changes: true}",
            "medium",
            "approvals.whole_table_writes",
            "writes of whole tables do not",
        ),
        (
            "table_access: {default: read_write}\napprovals: {writes: true, preview: false}",
            "low",
            "approvals.preview",
            "how many rows",
        ),
        ("limits: {max_bytes: 100000000}", "medium", "limits.max_bytes", "memory"),
        ("limits: {statement_timeout_ms: 3600000}", "medium", "limits.statement_timeout_ms", "runaway"),
        ("limits: {lock_timeout_ms: 60000}", "medium", "limits.lock_timeout_ms", "wait"),
        ("table_access: {tables: {t: deny}}\ncolumn_masks: {t: {a: full-redact}}", "low", 'column_masks."public.t"', "denied"),
    ],
)
def test_the_policy_alone(text: str, severity: str, path: str, found: str) -> None:
    matching = [each for each in findings(text) if (each.severity, dotted(each.path)) == (severity, path)]
    assert any(found in each.found for each in matching), findings(text)
    assert all(each.remedy for each in findings(text))


def keys(tables: str) -> str:
    return f"table_access: {{default: deny, tables: {{{tables}}}}}\nguardrails: {{block_dml: true}}"


@pytest.mark.parametrize(
    ("text", "severity", "found", "remedy"),
    [
        (keys("secret: deny"), "high", "no table public.secret is there, so this key protects nothing", "public.secrets"),
        (keys("Customers: deny"), "high", "protects nothing", 'write "public.customers"'),
        (keys("users: deny"), "high", "protects nothing", 'write "app.users"'),
        (keys("users: read"), "medium", "opens nothing", 'write "app.users"'),
        (keys("'apps.*': deny"), "high", "no schema apps is there", '"app.*"'),
        (
            keys("words: read, secrets: deny"),
            "medium",
            "view public.words shows something of public.deeper, public.secrets",
            "look",
        ),
        (keys("words: read, secrets: deny"), "medium", "words is no security barrier", "ALTER VIEW public.words SET"),
        (keys("orders: deny"), "medium", "public.Orders is another table", 'give "public.Orders" a key'),
        (keys("'app.*': read"), "high", "password looks like secrets", "suggest-masks"),
        (keys("'app.*': read"), "medium", "email looks like personal data", "suggest-masks"),
        (CAREFUL + "functions: {allow: [public.grab]}", "medium", "public.grab runs with its owner's rights", "read its code"),
        (CAREFUL + "functions: {allow: [public.slugfy]}", "low", "no function public.slugfy is there", "spelling"),
    ],
)
def test_against_a_catalog(text: str, severity: str, found: str, remedy: str) -> None:
    matching = [each for each in findings(text, CATALOG) if each.severity == severity and found in each.found]
    assert len(matching) == 1, findings(text, CATALOG)
    assert remedy in matching[0].remedy


def test_the_gravest_come_first() -> None:
    order = [each.severity for each in findings("table_access: {default: read_write}\nlimits: {max_rows: 100000}", CATALOG)]
    assert order == sorted(order, key=["high", "medium", "low"].index)
    assert len(set(order)) > 1
