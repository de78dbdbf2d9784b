"""The level of a relation by the names in the policy (decision 2)."""

import pytest

from gatewayd.policy.decide.access import resolve
from gatewayd.policy.file.model import TableAccess
from gatewayd.sql.builtins import lookup as builtins

ACCESS = TableAccess(
    default="read",
    tables={
        ("public", "users"): "deny",
        ("app", "*"): "deny",
        ("app", "open"): "read_write",
        ("information_schema", "tables"): "deny",
        ("pg_catalog", "pg_authid"): "read",
        ("pg_toast", "pg_toast_1"): "read_write",
        ("pg_temp", "t"): "read_write",
    },
)


@pytest.mark.parametrize(
    ("schema", "name", "level", "label"),
    [
        ("information_schema", "tables", "read", "information_schema:read"),
        ("public", "users", "deny", "table:public.users→deny"),
        ("audit", "users", "read", "default:read"),
        ("app", "anything", "deny", "table:app.*→deny"),
        ("app", "open", "read_write", "table:app.open→read_write"),
        ("app", "*", "deny", "table:app.*→deny"),
        ("pg_catalog", "pg_type", "read", "default:read"),
        ("pg_catalog", "pg_authid", "read", "table:pg_catalog.pg_authid→read"),
        ("pg_catalog", "pg_shadow", "deny", "table_access"),
        ("pg_catalog", "pg_of_tomorrow", "deny", "table_access"),
        ("pg_toast", "pg_toast_1", "deny", "table_access"),
        ("pg_temp", "t", "deny", "table_access"),
        ("pg_temp_7", "t", "deny", "table_access"),
    ],
)
def test_first_match_wins(schema: str, name: str, level: str, label: str) -> None:
    resolved = resolve(ACCESS, schema, name)
    assert (resolved.level, resolved.label) == (level, label)


def test_a_relation_called_star_has_no_key_of_its_own() -> None:
    assert not resolve(ACCESS, "app", "*").is_exact


def test_information_schema_stays_readable_under_default_deny_and_pg_catalog_does_not() -> None:
    closed = TableAccess(default="deny")
    assert resolve(closed, "information_schema", "columns").level == "read"
    assert resolve(closed, "pg_catalog", "pg_type").level == "deny"


def test_a_schema_key_does_not_open_what_the_review_of_pg_catalog_refuses() -> None:
    wide = TableAccess(default="read_write", tables={("pg_catalog", "*"): "read_write"})
    assert resolve(wide, "pg_catalog", "pg_authid").level == "deny"


def test_a_refused_relation_opens_when_the_refused_columns_are_proved_unread() -> None:
    known = builtins.relation("pg_proc")
    assert known is not None
    assert known.columns
    assert resolve(TableAccess(), "pg_catalog", "pg_proc", frozenset({"proname"})).level == "read"
    assert resolve(TableAccess(), "pg_catalog", "pg_proc", frozenset({"proname", "prosrc"})).level == "deny"
    assert resolve(TableAccess(), "pg_catalog", "pg_proc").level == "deny"


@pytest.mark.parametrize("name", ["user_mapping_options", "_pg_user_mappings"])
def test_passwords_of_information_schema_need_a_key_of_their_own(name: str) -> None:
    assert resolve(TableAccess("read_write"), "information_schema", name).level == "deny"
    opened = TableAccess("deny", {("information_schema", name): "read"})
    assert resolve(opened, "information_schema", name).level == "read"
