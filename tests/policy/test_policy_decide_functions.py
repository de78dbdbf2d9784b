"""Which user-defined functions, operators and types may run, by what they are (decision 3.5). Hand-made facts."""

from typing import Any

import msgspec
import pytest

from gatewayd.catalog import Catalog, Column, Function, Operator, Relation, Type, unread
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Denied
from gatewayd.policy.file.model import Functions, Policy, TableAccess
from gatewayd.sql.facts.statement import FieldUse, FunctionUse, OperatorUse, RelationUse, Star, Statement, TypeUse

OPEN = Policy()
HIDING = Policy(table_access=TableAccess("read", {("public", "secrets"): "deny"}))
SELECT = Statement(sql="SELECT f(1)", kind="SELECT", category="read", fingerprint="0" * 16)


def listed(policy: Policy, *names: tuple[str, str]) -> Policy:
    return msgspec.structs.replace(policy, functions=Functions(frozenset(names)))


def function(oid: int = 20001, name: str = "f", **facts: Any) -> Function:
    plain = Function(oid, "public", name, "stable", security_definer=False, language="plpgsql", extension=None, arguments=1)
    return msgspec.structs.replace(plain, **facts)


def having(*functions: Function, **more: Any) -> Catalog:
    return Catalog(1, "shop", functions={each.oid: each for each in functions}, **more)


def passes(statement: Statement, policy: Policy, catalog: Catalog) -> bool:
    decision = decide(statement, policy, catalog)
    assert isinstance(decision, Allowed | Denied)
    return isinstance(decision, Allowed)


def call(name: str = "f", schema: str | None = None, arguments: int = 1) -> Statement:
    return msgspec.structs.replace(SELECT, functions=(FunctionUse(schema, name, arguments, 7),))


def field(name: str, **facts: Any) -> Statement:
    relations = (RelationUse(None, None, "users", True, False, 0),)
    return msgspec.structs.replace(SELECT, relations=relations, fields=(FieldUse(name, 7, **facts),))


@pytest.mark.parametrize(
    ("facts", "in_open", "in_hiding"),
    [
        ({"volatility": "volatile"}, False, False),
        ({"volatility": "stable"}, True, False),
        ({"volatility": "immutable"}, True, False),
        ({"volatility": "immutable", "extension": "citext", "language": "c"}, True, True),
        ({"volatility": "stable", "extension": "pg_trgm", "language": "c"}, True, False),
        ({"volatility": "volatile", "extension": "dblink", "language": "c"}, False, False),
        ({"volatility": "stable", "extension": "tablefunc", "language": "c"}, False, False),
        ({"volatility": "stable", "security_definer": True}, False, False),
        ({"volatility": "immutable", "security_definer": True, "extension": "x"}, True, True),
        ({"volatility": "stable", "language": "c"}, False, False),
        ({"volatility": "immutable", "language": "internal"}, False, False),
        ({"volatility": "stable", "language": "plpython3u"}, False, False),
    ],
)
def test_a_function_is_permitted_by_what_it_is(facts: dict[str, Any], in_open: bool, in_hiding: bool) -> None:
    catalog = having(function(**facts))
    for statement in (call(), call(schema="public"), field("f")):
        assert passes(statement, OPEN, catalog) is in_open
        assert passes(msgspec.structs.replace(statement, relations=()), HIDING, catalog) is in_hiding
    for names in (("public", "f"), ("public", "*")):
        assert passes(call(), listed(HIDING, names), catalog)
    assert not passes(call(), listed(OPEN, ("public", "g"), ("app", "*")), having(function(volatility="volatile")))


@pytest.mark.parametrize(("version", "passing"), [(0, False), (150010, False), (160014, False), (170000, True), (180004, True)])
def test_what_an_older_server_reads_as_a_call_needs_to_be_a_permitted_one(version: int, passing: bool) -> None:
    use = FunctionUse(None, "json_value", -1, 7, grammar_since=170000)
    statement = msgspec.structs.replace(SELECT, functions=(use,))
    hostile = having(function(name="json_value"), server_version=version)
    assert passes(statement, HIDING, hostile) is passing
    assert passes(statement, listed(HIDING, ("public", "json_value")), hostile)
    assert passes(statement, HIDING, having(server_version=version)) is passing  # it would not be found there


@pytest.mark.parametrize(("version", "passing"), [(150000, False), (160000, True)])
def test_what_an_older_server_takes_for_a_column_is_to_be_quoted(version: int, passing: bool) -> None:
    """Before 16 `system_user` is a column's name; unquoted, a masked column of that name would not be seen to be read."""
    word = FunctionUse(None, "system_user", -1, 7, grammar_since=160000)
    assert passes(msgspec.structs.replace(SELECT, functions=(word,)), HIDING, having(server_version=version)) is passing


def test_every_overload_on_the_search_path_must_be_permitted() -> None:
    good, bad = function(1), function(2, volatility="volatile")
    assert not passes(call(), OPEN, having(good, bad))
    elsewhere = having(good, function(2, schema="app", volatility="volatile"))
    assert passes(call(), OPEN, elsewhere)
    assert not passes(call(schema="app"), OPEN, elsewhere)


def test_a_built_in_name_counts_until_a_user_defined_overload_shadows_it() -> None:
    assert passes(call("lower"), HIDING, having())
    shadowed = having(function(name="lower", volatility="volatile"))
    assert not passes(call("lower"), OPEN, shadowed)
    assert passes(call("lower", "pg_catalog"), OPEN, shadowed)
    assert passes(call("lower"), listed(OPEN, ("public", "lower")), shadowed)


def test_listing_opens_no_built_in_and_no_procedure() -> None:
    wide = listed(OPEN, ("pg_catalog", "*"), ("pg_catalog", "pg_sleep"), ("public", "*"))
    assert not passes(call("pg_sleep"), wide, having())
    assert not passes(call("no_such_built_in", "pg_catalog"), wide, having())
    assert not passes(call(), wide, having(function(kind="procedure")))


def test_a_function_called_star_is_not_what_a_schema_key_names() -> None:
    catalog = having(function(name="*", volatility="volatile"))
    assert passes(call("*"), listed(OPEN, ("public", "*")), catalog)
    assert not passes(call("*"), OPEN, catalog)


def test_an_aggregate_is_as_good_as_what_it_calls() -> None:
    step = function(2, "step", volatility="volatile")
    total = function(1, "f", kind="aggregate", language="internal", volatility="immutable", calls=(2,))
    assert not passes(call(), OPEN, having(total, step))
    assert passes(call(), listed(OPEN, ("public", "step")), having(total, step))
    assert passes(call(), listed(OPEN, ("public", "f")), having(total, step))
    assert not passes(call(), OPEN, having(total))
    assert not passes(call(), OPEN, having(msgspec.structs.replace(total, calls=(), builtins=("pg_read_file",))))


def test_an_unread_catalog_knows_built_ins_and_what_is_listed() -> None:
    assert passes(call("lower"), OPEN, unread("shop"))
    assert not passes(call("f"), OPEN, unread("shop"))
    assert passes(call("f"), listed(OPEN, ("public", "f")), unread("shop"))
    assert passes(field("anything"), OPEN, unread("shop"))
    assert not passes(field("ts_stat"), OPEN, unread("shop"))


def test_a_proven_column_shadows_a_function_of_its_name() -> None:
    columns = (Column("ts_stat", "text"), Column("id", "integer"))
    users = {("public", "users"): Relation(30001, "public", "users", "table", columns)}
    bare = {("public", "users"): Relation(30001, "public", "users", "view", columns[1:])}
    whole = (Star(relation=0), "extra")
    assert passes(field("ts_stat", relation=0), HIDING, having(relations=users))
    assert passes(field("ts_stat", outputs=whole), HIDING, having(relations=users))
    assert passes(field("ts_stat", columns=("ts_stat",)), HIDING, having(relations=bare))
    assert passes(field("extra", outputs=whole), HIDING, having(relations=bare))
    for unproved in ({"relation": 0}, {"outputs": whole}, {"columns": ("a",)}, {"columns": ("a",), "relation": 0}, {}):
        assert not passes(field("ts_stat", **unproved), HIDING, having(relations=bare))


def test_system_columns_are_a_tables_own() -> None:
    catalog = having(
        function(name="ctid", volatility="volatile"),
        relations={("public", "users"): Relation(30001, "public", "users", "table", (Column("id", "integer"),))},
    )
    assert passes(field("ctid", relation=0), OPEN, catalog)
    assert not passes(field("ctid", outputs=(Star(relation=0),)), OPEN, catalog)


def test_operators_are_their_functions() -> None:
    def uses(name: str, schema: str | None = None) -> Statement:
        return msgspec.structs.replace(SELECT, operators=(OperatorUse(schema, name, 7),))

    volatile = function(1, volatility="volatile")
    shadowing = having(
        volatile, operators=(Operator("public", "=", 1), Operator("app", "<", 1), Operator("public", "@@@", 0, "texteq"))
    )
    assert not passes(uses("="), OPEN, shadowing)
    assert passes(uses("=", "pg_catalog"), OPEN, shadowing)
    assert passes(uses("="), listed(OPEN, ("public", "f")), shadowing)
    assert passes(uses("<"), HIDING, shadowing)
    assert not passes(uses("<", "app"), OPEN, shadowing)
    assert passes(uses("@@@"), HIDING, shadowing)
    assert not passes(uses("@@@@"), OPEN, shadowing)
    assert not passes(uses("="), OPEN, having(operators=(Operator("public", "=", 99),)))


def test_types_are_what_their_conversions_run() -> None:
    def uses(name: str, schema: str | None = None) -> Statement:
        return msgspec.structs.replace(SELECT, types=(TypeUse(schema, name, 7),))

    types = {
        ("public", "guess"): Type("public", "guess", "domain", functions=(1,)),
        ("public", "mood"): Type("public", "mood", "enum"),
        ("public", "file"): Type("public", "file", "domain", builtins=("pg_read_file",)),
    }
    catalog = having(function(1, volatility="volatile"), types=types)
    for name in ("guess", "_guess", "file", "nope", "internal"):
        assert not passes(uses(name), OPEN, catalog)
    for name in ("mood", "_mood", "int4", "_text", "serial"):
        assert passes(uses(name), HIDING, catalog)
    assert passes(uses("sql_identifier", "information_schema"), HIDING, catalog)
    assert passes(uses("guess"), listed(OPEN, ("public", "f")), catalog)
    assert not passes(call("guess"), OPEN, catalog)
    assert passes(call("guess", arguments=2), OPEN, having(function(2, "guess"), types={})) is True
    assert not passes(call("jsonb_populate_record"), OPEN, catalog)
    assert passes(call("jsonb_populate_record"), OPEN, having())


def test_the_constructor_of_a_range_type_is_part_of_the_type() -> None:
    constructor = function(1, "span", language="internal", volatility="immutable")
    assert passes(
        call("span", arguments=2), HIDING, having(constructor, types={("public", "span"): Type("public", "span", "range")})
    )
    assert not passes(call("span", arguments=2), HIDING, having(constructor))
