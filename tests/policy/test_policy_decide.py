"""decide() on hand-made facts: the order of the rules, names, guardrails, approvals, reasons (decision 3)."""

from typing import Any

import msgspec
import pytest

from gatewayd.catalog import Catalog, Column, Relation, unread
from gatewayd.policy.decide.decision import decide, unknown_names
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied, Held
from gatewayd.policy.decide.reasons import REASON_CHARACTERS
from gatewayd.policy.file.model import Policy
from gatewayd.sql.facts.statement import FunctionUse, RelationUse, Site, Statement, TypeUse, Unparsed

SHOP = Catalog(
    revision=1,
    database="shop",
    relations={
        ("public", "users"): Relation(20001, "public", "users", "table", (Column("id", "integer"),)),
        ("public", "orders"): Relation(20003, "public", "orders", "table"),
        ("app", "items"): Relation(20002, "app", "items", "table"),
        ("pg_catalog", "pg_type"): Relation(1247, "pg_catalog", "pg_type", "table"),
    },
)
SELECT = Statement(sql="SELECT 1", kind="SELECT", category="read", fingerprint="0" * 16)
DML = Site("block_dml", "UPDATE", 0)
NO_WHERE = Site("block_unqualified_dml", "UPDATE without WHERE", 0)
DDL = Site("block_ddl", "DROP", 0)


def policy(default: str = "read", tables: dict[tuple[str, str], str] | None = None, **sections: Any) -> Policy:
    return (
        msgspec.convert({"table_access": {"default": default}, **sections}, Policy)
        if not tables
        else msgspec.structs.replace(
            msgspec.convert(sections, Policy), table_access=msgspec.structs.replace(_access(default), tables=tables)
        )
    )


def _access(default: str) -> Any:
    return msgspec.convert({"table_access": {"default": default}}, Policy).table_access


def reads(name: str, schema: str | None = None, **more: Any) -> RelationUse:
    return RelationUse(more.pop("database", None), schema, name, reads=True, writes=False, position=0, **more)


def writes(name: str, schema: str | None = None, **more: Any) -> RelationUse:
    return RelationUse(None, schema, name, reads=False, writes=True, position=0, **more)


def select(*relations: RelationUse, **more: Any) -> Statement:
    return msgspec.structs.replace(SELECT, relations=relations, **more)


def update(*relations: RelationUse, sites: tuple[Site, ...] = (DML,), **more: Any) -> Statement:
    return msgspec.structs.replace(SELECT, kind="UPDATE", category="row write", relations=relations, sites=sites, **more)


def denied(decision: Decision) -> Denied:
    assert isinstance(decision, Denied), decision
    return decision


def allowed(decision: Decision) -> Allowed:
    assert isinstance(decision, Allowed), decision
    return decision


WRITABLE = policy("read_write")


@pytest.mark.parametrize("rule", ["parse_error", "multi_statement"])
def test_what_is_no_single_statement_is_denied_by_its_own_rule(rule: Any) -> None:
    decision = denied(decide(Unparsed("x", rule, "syntax error at line 1, column 1", "0" * 16), WRITABLE, SHOP))
    assert (decision.policy_rule, decision.matched_rule, decision.reason) == (rule, rule, "syntax error at line 1, column 1")
    assert decision.statement_type is None


def test_table_access_speaks_before_the_guardrails() -> None:
    statement = update(writes("users"), sites=(DML, NO_WHERE))
    assert denied(decide(statement, policy("read"), SHOP)).policy_rule == "table_access"
    assert denied(decide(statement, WRITABLE, SHOP)).policy_rule == "dangerous_statement"


def test_reads_pass_and_writes_are_denied_without_a_policy_file() -> None:
    assert allowed(decide(select(reads("users")), Policy(), SHOP)).matched_rule == "default:read"
    reason = denied(decide(update(writes("users")), Policy(), SHOP)).reason
    assert reason == (
        "table users has level read (default:read), which permits reads, not writes; "
        'an operator can change it with table_access.tables."public.users": read_write'
    )


def test_a_denied_table_says_its_key_and_the_setting_for_a_read() -> None:
    hiding = policy(tables={("app", "*"): "deny"})
    decision = denied(decide(select(reads("users"), reads("items", "app")), hiding, SHOP))
    assert decision.matched_rule == "table:app.*→deny"
    assert 'table_access.tables."app.items": read' in decision.reason
    assert decision.tables == ("public.users", "app.items")


def test_tables_are_qualified_once_each_in_order_and_at_most_64() -> None:
    uses = [reads("orders"), reads("users", "public"), reads("orders", "public"), reads("pg_type")]
    assert allowed(decide(select(*uses), Policy(), SHOP)).tables == ("public.orders", "public.users", "pg_catalog.pg_type")
    many = [reads(f"t{number}") for number in range(100)]
    assert len(allowed(decide(select(*many), Policy(), SHOP)).tables) == 64


def test_matched_rule_is_that_of_the_written_table() -> None:
    writable = policy(tables={("public", "orders"): "read_write"})
    decision = allowed(decide(update(writes("orders"), reads("users")), writable, SHOP))
    assert decision.matched_rule == "table:public.orders→read_write"


@pytest.mark.parametrize(("database", "passes"), [("shop", True), ("Shop", False), ("other", False)])
def test_the_database_part_must_be_the_connected_one(database: str, passes: bool) -> None:
    decision = decide(select(reads("users", "public", database=database)), Policy(), SHOP)
    assert isinstance(decision, Allowed) is passes


def test_the_database_part_is_refused_while_the_catalog_is_unread() -> None:
    assert isinstance(decide(select(reads("users", "public", database="shop")), Policy(), unread("shop")), Denied)


@pytest.mark.parametrize("schema", ["pg_catalog", "information_schema", "pg_toast", "pg_temp", "pg_temp_3"])
@pytest.mark.parametrize("creates", [False, True])
def test_system_schemas_are_never_written(schema: str, creates: bool) -> None:
    wide = policy("read_write", {(schema, "t"): "read_write", (schema, "*"): "read_write"})
    assert denied(decide(update(writes("t", schema, creates=creates)), wide, SHOP)).policy_rule == "table_access"


def test_a_bare_name_is_pg_catalogs_when_it_holds_it_but_what_is_created_is_publics() -> None:
    assert denied(decide(update(writes("pg_type")), WRITABLE, SHOP)).tables == ("pg_catalog.pg_type",)
    made = msgspec.structs.replace(update(writes("pg_type", creates=True)), kind="CREATE TABLE", category="relation write")
    assert allowed(decide(made, WRITABLE, SHOP)).tables == ("public.pg_type",)


def test_a_name_of_a_newer_servers_pg_catalog_is_the_users_table_here() -> None:
    here = msgspec.structs.replace(SHOP, relations={("public", "pg_aios"): Relation(20009, "public", "pg_aios", "table")})
    closed = policy(tables={("public", "pg_aios"): "deny"})
    assert denied(decide(select(reads("pg_aios")), closed, here)).matched_rule == "table:public.pg_aios→deny"


def test_creating_needs_read_write_where_it_lands() -> None:
    made = msgspec.structs.replace(
        update(writes("new", creates=True), sites=()), kind="CREATE TABLE AS", category="relation write"
    )
    assert denied(decide(made, Policy(), SHOP)).matched_rule == "default:read"
    assert isinstance(decide(made, policy(tables={("public", "new"): "read_write"}), SHOP), Allowed)


def test_what_a_policy_cannot_grant_is_denied_whatever_it_says() -> None:
    for statement in (
        msgspec.structs.replace(SELECT, kind="COPY", category="unsupported", sites=(Site("refused", "COPY", 0),)),
        msgspec.structs.replace(SELECT, kind="VACUUM", category="unsupported"),
    ):
        reason = denied(decide(statement, WRITABLE, SHOP)).reason
        assert "has no table target that a policy can grant" in reason


def test_explain_analyze_is_for_reads_only() -> None:
    analyzed: dict[str, Any] = {"kind": "EXPLAIN", "explains": "analyze"}
    assert isinstance(decide(select(reads("users"), **analyzed), WRITABLE, SHOP), Allowed)
    assert isinstance(decide(select(writes("users"), locks=True, **analyzed), WRITABLE, SHOP), Denied)
    assert isinstance(decide(msgspec.structs.replace(update(writes("users")), **analyzed), WRITABLE, SHOP), Denied)


@pytest.mark.parametrize(("setting", "passes"), [("server_version", True), ("data_directory", False), ("all", False)])
def test_show_prints_the_short_list(setting: str, passes: bool) -> None:
    assert isinstance(decide(msgspec.structs.replace(SELECT, kind="SHOW", setting=setting), Policy(), SHOP), Allowed) is passes


def test_row_locks_count_as_writes_and_the_reason_says_so() -> None:
    locked = select(RelationUse(None, None, "users", reads=True, writes=True, position=0), locks=True)
    assert "FOR UPDATE" in denied(decide(locked, Policy(), SHOP)).reason
    assert isinstance(decide(locked, WRITABLE, SHOP), Allowed)


@pytest.mark.parametrize(
    ("site", "flag"),
    [(NO_WHERE, "block_unqualified_dml"), (DDL, "block_ddl"), (DML, "block_dml")],
    ids=lambda value: str(value)[:20],
)
def test_a_guardrail_speaks_when_its_flag_is_on(site: Site, flag: str) -> None:
    off = {"block_unqualified_dml": False, "block_ddl": False, "block_dml": False}
    statement = update(writes("users"), sites=(site,), sql="UPDATE users SET a = 1")
    blocked = denied(decide(statement, policy("read_write", guardrails={**off, flag: True}), SHOP))
    assert (blocked.policy_rule, blocked.matched_rule) == ("dangerous_statement", "dangerous_statement")
    assert f"guardrails.{flag}" in blocked.reason
    assert "line 1, column 1" in blocked.reason
    assert isinstance(decide(statement, policy("read_write", guardrails=off), SHOP), Allowed)


@pytest.mark.parametrize(
    ("kind", "category", "sites", "write_class"),
    [
        ("UPDATE", "row write", (DML,), "row_changes"),
        ("SELECT", "read", (DML,), "row_changes"),
        ("DELETE", "row write", (DML, NO_WHERE), "whole_table_writes"),
        ("TRUNCATE", "relation write", (DDL,), "whole_table_writes"),
        ("DROP TABLE", "relation write", (DDL,), "schema_changes"),
        ("CREATE TABLE AS", "relation write", (DML,), "schema_changes"),
    ],
)
def test_writes_wait_for_approval_by_class(kind: str, category: Any, sites: tuple[Site, ...], write_class: str) -> None:
    off = {"block_unqualified_dml": False, "block_ddl": False}
    statement = msgspec.structs.replace(SELECT, kind=kind, category=category, sites=sites, relations=(writes("users"),))
    for approvals in ({"writes": True}, {write_class: True}):
        decision = decide(statement, policy("read_write", guardrails=off, approvals=approvals), SHOP)
        assert isinstance(decision, Held)
        assert decision.write_class == write_class
    others = {name: name != write_class for name in ("row_changes", "whole_table_writes", "schema_changes")}
    lesser = decide(statement, policy("read_write", guardrails=off, approvals=others), SHOP)
    assert not isinstance(lesser, Held) or lesser.write_class != write_class
    explained = msgspec.structs.replace(statement, explains="plan")
    assert isinstance(decide(explained, policy("read_write", guardrails=off, approvals={"writes": True}), SHOP), Allowed)


def test_reads_never_wait_for_approval() -> None:
    assert isinstance(decide(select(reads("users")), policy(approvals={"writes": True}), SHOP), Allowed)


def test_an_unread_catalog_decides_by_names_only_where_nothing_is_hidden() -> None:
    statement = select(reads("users"))
    assert isinstance(decide(statement, Policy(), unread("shop")), Allowed)
    masked = msgspec.structs.replace(Policy(), column_masks={("public", "orders"): {}})
    for hiding in (policy(tables={("app", "*"): "deny"}), policy("deny", {("public", "users"): "read"}), masked):
        assert "retry" in denied(decide(statement, hiding, unread("shop"))).reason
        assert isinstance(decide(SELECT, hiding, unread("shop")), Allowed)


def test_a_relation_that_the_catalog_does_not_know_is_not_believed_where_something_is_hidden() -> None:
    hiding = policy(tables={("app", "*"): "deny"})
    assert "list_tables" in denied(decide(select(reads("brand_new_view")), hiding, SHOP)).reason
    assert isinstance(decide(select(reads("no_such_table")), Policy(), SHOP), Allowed)
    mixed = policy("read_write", {("public", "users"): "read"})
    assert isinstance(decide(update(writes("brand_new_view")), mixed, SHOP), Denied)


def test_names_unknown_asks_for_a_refresh_once_the_catalog_is_read() -> None:
    assert unknown_names(select(reads("nope")), SHOP)
    assert not unknown_names(select(reads("nope")), unread("shop"))
    assert not unknown_names(select(reads("users"), reads("pg_type"), reads("tables", "information_schema")), SHOP)
    assert not unknown_names(update(writes("nope", creates=True)), SHOP)
    assert unknown_names(select(functions=(FunctionUse(None, "slugify", 1, 0),)), SHOP)
    assert not unknown_names(select(functions=(FunctionUse(None, "lower", 1, 0),), types=(TypeUse(None, "int4", 0),)), SHOP)
    assert unknown_names(select(types=(TypeUse(None, "mood", 0),)), SHOP)


def test_a_reason_is_bounded_and_shows_no_raw_control_character() -> None:
    reason = denied(decide(update(writes("\x1b[31m" + "x" * 5000)), Policy(), SHOP)).reason
    assert len(reason) <= REASON_CHARACTERS
    assert reason.isprintable()


def test_places_are_lines_and_characters_of_the_text_not_bytes() -> None:
    sql = "-- é\nSELECT 'ö', nope(1)"
    position = sql.encode().index(b"nope")
    decision = decide(select(sql=sql, functions=(FunctionUse(None, "nope", 1, position),)), Policy(), SHOP)
    assert "function nope at line 2, column 13 is not permitted" in denied(decision).reason
