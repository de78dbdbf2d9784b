"""The reviewed lists against real servers: whatever a server has, someone has decided about."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewayd.postgres.embedded import VERSIONS, EmbeddedPostgres
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.builtins import objects as builtins_objects
from gatewayd.sql.builtins.lookup import Clearance
from gatewayd.sql.builtins.result_columns import result_columns
from tests.conftest import Postgres
from tests.sql import builtins_generate as generate

VOLATILE_BUT_HARMLESS = {
    "array_sample", "array_shuffle", "gen_random_uuid", "random", "random_normal", "uuidv4", "uuidv7",  # chance
    "clock_timestamp", "timeofday",  # clocks
    "pg_collation_actual_version", "pg_database_collation_actual_version", "pg_get_wait_events", "pg_get_wal_resource_managers",
    "pg_is_in_recovery", "pg_jit_available", "pg_partition_ancestors", "pg_partition_tree",  # look-ups
}  # fmt: skip
CALLED_BY_OPERATORS_AND_CASTS = """
SELECT DISTINCT p.proname::text AS name FROM pg_catalog.pg_proc AS p
WHERE p.oid IN (SELECT o.oprcode FROM pg_catalog.pg_operator AS o WHERE o.oid < 16384
                UNION ALL SELECT c.castfunc FROM pg_catalog.pg_cast AS c WHERE c.oid < 16384)
"""
COLUMNS = """
SELECT c.relname::text AS relation, a.attname::text AS name FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid WHERE c.relnamespace = 'pg_catalog'::regnamespace
"""
ADDED_LATER = {("pg_class", "relallfrozen")}  # 18


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest, short_folder: Callable[[], Path]) -> Iterator[Postgres]:
    """Each version that the environment carries. Debian's 15 was read by hand with builtins_generate.py."""
    server = EmbeddedPostgres(short_folder(), version=request.param, settings={"fsync": "off"})
    server.initialise()
    server.start()
    try:
        yield Postgres(server)
    finally:
        server.stop("immediate")


@pytest.fixture(scope="module")
def functions(server: Postgres) -> list[generate.FunctionFacts]:
    return [generate.FunctionFacts(**row) for row in server.query(generate.FUNCTIONS)]


def test_every_function_is_listed(functions: list[generate.FunctionFacts]) -> None:
    assert len(functions) > 2500
    assert [fact.overloads for fact in functions if builtins.function(fact.name) is None] == []


def test_every_relation_operator_type_and_helper_is_listed(server: Postgres) -> None:
    rows = server.query(generate.OBJECTS)
    assert {row["kind"] for row in rows} == {"relation", "operator", "type", "information_schema function"}
    assert generate.unlisted_objects(rows) == []


def test_no_volatile_function_is_allowed_but_for_a_reviewed_few(functions: list[generate.FunctionFacts]) -> None:
    allowed = {fact.name for fact in functions if fact.volatile and _is(fact.name, Clearance.ALLOWED)}
    assert allowed - VOLATILE_BUT_HARMLESS == set()


def test_no_support_routine_is_open_to_statements(functions: list[generate.FunctionFacts]) -> None:
    assert {fact.name for fact in functions if fact.support and not _is(fact.name, Clearance.REFUSED)} == set()


def test_of_the_conversion_routines_only_the_sending_ones_are_allowed(functions: list[generate.FunctionFacts]) -> None:
    """Input routines take a type's oid as argument: a way around the look at the types that a statement names."""
    allowed = {fact.name for fact in functions if fact.conversion and _is(fact.name, Clearance.ALLOWED)}
    assert {name for name in allowed if not name.endswith("send")} == set()


def test_operators_and_casts_run_allowed_functions_only(server: Postgres) -> None:
    """That is why `builtins.operator` needs no verdict, and casts no list."""
    names = {row["name"] for row in server.query(CALLED_BY_OPERATORS_AND_CASTS)}
    assert len(names) > 500
    assert {name for name in names if not _is(name, Clearance.ALLOWED)} == set()


RESULTS = """
SELECT p.proname::text AS name, t.typname::text AS type, t.typtype::text AS kind,
       ARRAY(SELECT p.proargnames[i] FROM generate_subscripts(p.proargmodes, 1) AS i
             WHERE p.proargmodes[i] IN ('o', 'b', 't') ORDER BY i) AS parameters
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_type AS t ON t.oid = p.prorettype
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
"""


def test_columns_of_functions_are_called_as_the_server_calls_them(server: Postgres) -> None:
    wrong = []
    for row in server.query(RESULTS):
        parameters, told = tuple(row["parameters"]), result_columns(row["name"])
        if told is None or _is(row["name"], Clearance.REFUSED):
            continue
        anything = row["type"] in ("anyelement", "anycompatible", "anynonarray", "anycompatiblenonarray")
        is_row = row["type"] == "record" or row["kind"] == "c" or anything
        if is_row != (len(told) > 1) or (told or ()) != (parameters if is_row or parameters[:1] > ("",) else ()):
            wrong.append((row["name"], told, parameters))
    assert wrong == []


def test_columns_that_hold_a_relation_back_exist(server: Postgres) -> None:
    """A column that a newer server renames would be shown without anyone noticing."""
    have = {(row["relation"], row["name"]) for row in server.query(COLUMNS)}
    held_back = {
        (name, column)
        for _, _, columns, names in builtins_objects.RELATIONS
        for name in names.split()
        for column in columns.split()
    }
    assert held_back - have <= ADDED_LATER


def test_no_column_holds_expressions_or_options_unnoticed(server: Postgres) -> None:
    """Node trees, options, configurations: each such column of a readable relation was looked at; pg_roles blanks passwords."""
    harmless = {("pg_attrdef", "adbin"), ("pg_type", "typdefaultbin"), ("pg_attribute", "attmissingval"),
                ("pg_attribute", "attoptions"), ("pg_attribute", "attfdwoptions"), ("pg_class", "reloptions"),
                ("pg_tablespace", "spcoptions"), ("pg_extension", "extconfig"), ("pg_proc", "proargdefaults"),
                ("pg_roles", "rolpassword")}  # fmt: skip
    rows = server.query(
        COLUMNS
        + """ AND c.relkind IN ('r', 'v') AND (a.atttypid IN ('pg_node_tree'::regtype, 'anyarray'::regtype)
              OR a.attname ~ '(options|config|conninfo|password|definition|src|bin)$')"""
    )
    shown = set()
    for row in rows:
        builtin = builtins.relation(row["relation"])
        assert builtin is not None
        if builtin.clearance is Clearance.ALLOWED or (builtin.columns and row["name"] not in builtin.columns):
            shown.add((row["relation"], row["name"]))
    assert shown - harmless == set()


def test_the_generator_changes_nothing_that_is_up_to_date(functions: list[generate.FunctionFacts]) -> None:
    assert generate.source(generate.refiled(functions)) == generate.DATA.read_text(encoding="utf-8")


def _is(name: str, verdict: Clearance) -> bool:
    builtin = builtins.function(name)
    return builtin is not None and builtin.clearance is verdict
