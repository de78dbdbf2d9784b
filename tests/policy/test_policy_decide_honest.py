"""What honest statements need, and the edge right beside it: settings by name, reviewed extension functions, EXISTS over the
system catalogs, and casts to json that every answer would run (decisions 3.2, 3.5)."""

from typing import Protocol

import msgspec
import pytest

from gatewayd.catalog import Catalog, Column, Function, Operator, Relation, Type, unread
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Denied
from gatewayd.policy.file.model import Functions, Policy, TableAccess
from gatewayd.sql.builtins import extensions as builtins_extensions
from gatewayd.sql.facts.analyze import analyze
from tests.policy.live_catalog import catalog_of

OPEN = Policy()
HIDING = Policy(table_access=TableAccess("read", {("public", "secrets"): "deny"}))
PLAIN = Catalog(revision=1, database="shop")


class Server(Protocol):
    def create_database(self, sql: str = "") -> str: ...


def reason(sql: str, policy: Policy = HIDING, catalog: Catalog = PLAIN) -> str:
    """Empty when the statement passes."""
    decision = decide(analyze(sql), policy, catalog)
    assert isinstance(decision, Allowed | Denied)
    return "" if isinstance(decision, Allowed) else decision.reason


# --- current_setting


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT current_setting('server_version_num')",
        "SELECT current_setting('server_version_num')::int / 10000",
        "SELECT pg_catalog.current_setting('TimeZone')",
        "SELECT current_setting('search_path', true), current_setting('DateStyle')",
        "SELECT current_setting(E'search_path')",
        "SELECT 1 WHERE current_setting('is_superuser') = 'on'",
    ],
)
def test_a_setting_that_show_may_print_may_be_asked_for_by_name(sql: str) -> None:
    assert reason(sql) == ""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT current_setting('data_directory')",
        "SELECT current_setting('gatewayd.salt', true)",
        "SELECT current_setting('all')",
        "SELECT current_setting('server_version_num'), current_setting('data_directory')",
        "SELECT current_setting(name) FROM (VALUES ('data_directory')) AS v(name)",
        "SELECT current_setting('data_' || 'directory')",
        "SELECT current_setting(CASE WHEN true THEN 'data_directory' ELSE 'TimeZone' END)",
        "SELECT current_setting(VARIADIC ARRAY['TimeZone'])",
        "SELECT current_setting(missing_ok => true, setting_name => 'TimeZone')",
        "SELECT current_setting(NULL)",
        "SELECT ('data_directory'::text).current_setting",
        "SELECT current_setting FROM current_setting('data_directory')",
        "SELECT current_setting('')",
    ],
)
def test_any_other_way_to_a_setting_is_refused(sql: str) -> None:
    assert "current_setting" in reason(sql, OPEN)


def test_an_overload_that_postgresql_may_choose_is_judged_beside_the_setting() -> None:
    evil = Function(20000, "public", "current_setting", "volatile", False, "plpgsql", None, 1)
    catalog = msgspec.structs.replace(PLAIN, functions={20000: evil})
    assert "overload of the built-in current_setting" in reason("SELECT current_setting('TimeZone')", OPEN, catalog)


def test_an_unread_catalog_changes_nothing_where_nothing_is_hidden() -> None:
    assert reason("SELECT current_setting('TimeZone')", OPEN, unread("shop")) == ""


# --- extensions


def extended(function: Function, operator: str) -> Catalog:
    return msgspec.structs.replace(
        PLAIN, functions={function.oid: function}, operators=(Operator("public", operator, function.oid),)
    )


SIMILARITY = Function(20001, "public", "similarity_op", "stable", False, "c", "pg_trgm", 2)


def test_an_operator_of_a_reviewed_extension_does_not_close_the_built_in_of_its_name() -> None:
    """pg_trgm's `%` is STABLE for it reads a threshold."""
    assert reason("SELECT n % 2, 'ada' % 'ida' FROM generate_series(1, 3) AS n", HIDING, extended(SIMILARITY, "%")) == ""


@pytest.mark.parametrize(
    "changed",
    [
        {"extension": None},
        {"extension": "my_own"},
        {"language": "sql"},
        {"language": "plpgsql"},
        {"security_definer": True},
        {"name": "set_limit"},
    ],
)
def test_what_only_looks_like_it_stays_closed_under_a_policy_that_hides(changed: dict[str, object]) -> None:
    other = msgspec.structs.replace(SIMILARITY, **changed)
    assert "overload of this built-in operator" in reason(
        "SELECT n % 2 FROM generate_series(1, 3) AS n", HIDING, extended(other, "%")
    )


def test_an_aggregate_of_a_reviewed_extension_passes_with_its_parts() -> None:
    """PostGIS leaves them unmarked, so VOLATILE; a part that is none of its own is judged for itself."""
    step = Function(20002, "public", "pgis_geometry_accum_transfn", "volatile", False, "c", "postgis", 2)
    union = Function(20003, "public", "st_union", "volatile", False, "internal", "postgis", 1, "aggregate", (20002,))
    catalog = msgspec.structs.replace(PLAIN, functions={20002: step, 20003: union})
    assert reason("SELECT ST_Union(geom) FROM parcels", OPEN, catalog) == ""
    foreign = msgspec.structs.replace(step, name="peek", extension=None)
    catalog = msgspec.structs.replace(PLAIN, functions={20002: foreign, 20003: union})
    assert "peek" in reason("SELECT ST_Union(geom) FROM parcels", OPEN, catalog)


def test_the_list_of_reviewed_functions_is_folded_as_postgresql_folds_names() -> None:
    assert all(name == name.lower() for names in builtins_extensions.SAFE.values() for name in names)


# --- EXISTS


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT EXISTS (SELECT * FROM pg_proc WHERE proname = 'slug')",
        "SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app')",
    ],
)
def test_a_star_that_exists_throws_away_reads_no_column(sql: str) -> None:
    assert reason(sql) == ""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT EXISTS (SELECT * FROM pg_proc WHERE prosrc ~ 'hunter2')",
        "SELECT EXISTS (SELECT DISTINCT * FROM pg_proc OFFSET 1)",
        "SELECT EXISTS (SELECT * FROM pg_proc EXCEPT SELECT * FROM pg_proc)",
        "SELECT EXISTS (SELECT * FROM (SELECT * FROM pg_proc) AS p WHERE p.prosrc = 'x')",
        "SELECT EXISTS (SELECT * FROM pg_proc AS p WHERE p::text ~ 'hunter2')",
        "SELECT EXISTS (SELECT * FROM pg_proc ORDER BY prosrc)",
        "SELECT ARRAY(SELECT * FROM pg_proc)",
        "SELECT (SELECT * FROM pg_proc) IS NULL",
        "SELECT 1 IN (SELECT * FROM pg_proc)",
    ],
)
def test_a_star_whose_columns_matter_reads_them(sql: str) -> None:
    assert "pg_proc" in reason(sql)


# --- casts to json

JSON_CAST = """
CREATE TABLE secrets (value text); INSERT INTO secrets VALUES ('hunter2');
CREATE TYPE mood AS ENUM ('ok', 'sad'); CREATE TYPE pair AS (a int, m mood);
CREATE TABLE typed (id int, m mood); CREATE TABLE nested (id int, p pair[]); CREATE TABLE plain (id int, at timestamptz);
CREATE VIEW v_typed AS SELECT m FROM typed;
CREATE FUNCTION mood_json(mood) RETURNS json LANGUAGE sql VOLATILE AS 'SELECT to_json(max(value)) FROM secrets';
CREATE CAST (mood AS json) WITH FUNCTION mood_json(mood);
CREATE FUNCTION cheerful(text) RETURNS mood LANGUAGE sql IMMUTABLE AS $$SELECT 'ok'::mood$$;
CREATE OPERATOR ~~~> (RIGHTARG = text, FUNCTION = cheerful);
"""


@pytest.fixture(scope="module")
def json_cast(postgres: Server) -> Catalog:
    return catalog_of(postgres.create_database(JSON_CAST))


@pytest.mark.parametrize(
    "sql", ["SELECT m FROM typed", "SELECT * FROM nested", "SELECT to_json(m) FROM typed", "SELECT * FROM v_typed"]
)
def test_a_cast_to_json_that_answers_would_run_is_judged_by_its_function(sql: str, json_cast: Catalog) -> None:
    """row_to_json runs it for every value of the type: without this, `SELECT m FROM typed` answers with a hidden value."""
    assert "mood_json" in reason(sql, HIDING, json_cast)
    listed = msgspec.structs.replace(HIDING, functions=Functions(frozenset({("public", "mood_json")})))
    assert reason(sql, listed, json_cast) == ""


@pytest.mark.parametrize("sql", ["SELECT cheerful('x')", "SELECT ~~~> 'x'", "SELECT f FROM cheerful('x') AS f"])
def test_a_result_that_no_one_names_may_be_of_such_a_type(sql: str, json_cast: Catalog) -> None:
    listed = msgspec.structs.replace(HIDING, functions=Functions(frozenset({("public", "cheerful")})))
    assert "mood_json" in reason(sql, listed, json_cast)
    both = msgspec.structs.replace(HIDING, functions=Functions(frozenset({("public", "cheerful"), ("public", "mood_json")})))
    assert reason(sql, both, json_cast) == ""


def test_returning_writes_json_too(json_cast: Catalog) -> None:
    writing = Policy(table_access=TableAccess("read_write", {("public", "secrets"): "deny"}))
    assert "mood_json" in reason("INSERT INTO typed (id) VALUES (1) RETURNING m", writing, json_cast)
    assert reason("INSERT INTO typed (id) VALUES (1)", writing, json_cast) == ""


def test_tables_of_built_in_types_are_not_touched_by_it(json_cast: Catalog) -> None:
    assert reason("SELECT * FROM plain", HIDING, json_cast) == ""


def test_an_extension_may_have_an_immutable_cast_to_json() -> None:
    """As hstore has."""
    function = Function(20004, "public", "hstore_to_json", "immutable", False, "c", "hstore", 1)
    types = {("public", "hstore"): Type("public", "hstore", "base", (20004,), extension="hstore")}
    types["pg_catalog", "json"] = Type("pg_catalog", "json", "base", (20004,))
    table = Relation(20005, "public", "tagged", "table", (Column("tags", "public.hstore"),))
    catalog = msgspec.structs.replace(PLAIN, functions={20004: function}, types=types, relations={("public", "tagged"): table})
    assert reason("SELECT tags FROM tagged", HIDING, catalog) == ""
