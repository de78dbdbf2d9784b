"""The catalog as it is read from a real database: everything that decides what a name reaches."""

import msgspec
import pytest
import trio

from gatewayd.catalog import Catalog, Column, Function, Operator, Relation
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.pool import Pool
from tests.conftest import Postgres, StartPostgres
from tests.postgres.inspected import SCHEMA
from tests.postgres.postgres_asking import PATIENT


@pytest.fixture(scope="module")
def rich(postgres: Postgres) -> str:
    """A database that holds one of everything; tests only read it."""
    return postgres.create_database(SCHEMA)


async def catalog_of(dsn: str, revision: int = 1) -> Catalog:
    pool = Pool("main", dsn, Limits(), bounds=PATIENT)
    try:
        return await read_catalog(pool, revision)
    finally:
        await pool.aclose()


def names(catalog: Catalog, oids: tuple[int, ...]) -> set[str]:
    return {catalog.by_oid[oid].qualified for oid in oids}


def function_names(catalog: Catalog, oids: tuple[int, ...]) -> set[str]:
    return {catalog.functions[oid].name for oid in oids}


def function(catalog: Catalog, name: str) -> Function:
    (found,) = catalog.functions_by_name[name]
    return found


def relation(catalog: Catalog, name: str, schema: str = "public") -> Relation:
    found = catalog.relation(schema, name)
    assert found is not None, f"{schema}.{name} is not in the catalog"
    return found


async def test_relations_have_their_columns_as_they_are(rich: str) -> None:
    catalog = await catalog_of(rich, revision=7)
    assert (catalog.revision, catalog.database, catalog.server_version // 10000) == (7, rich.split("/", 3)[3].split("?")[0], 16)
    orders = relation(catalog, "orders")
    assert (orders.kind, orders.row_security) == ("table", True)
    assert orders.columns == (
        Column("id", "bigint", nullable=False),
        Column("total", "numeric", nullable=False),
        Column("note", "character varying[]"),
        Column("feeling", "public.mood"),
    )
    weird = relation(catalog, 'Weird, "table" :relid 1260', "My App")
    assert [column.type for column in weird.columns] == ["public.orders", "public.orders[]"]


async def test_kinds_and_what_belongs_to_a_table(rich: str) -> None:
    catalog = await catalog_of(rich)
    kinds = {
        "orders": "table",
        "events": "partitioned table",
        "big_orders": "view",
        "cached": "materialized view",
        "contact": "composite type",
        "orders_id_seq": "sequence",
        "orders_pkey": "index",
    }
    assert {name: relation(catalog, name).kind for name in kinds} == kinds
    orders = relation(catalog, "orders")
    assert relation(catalog, "orders_pkey").belongs_to == orders.oid
    assert relation(catalog, "orders_id_seq").belongs_to == orders.oid
    assert orders.belongs_to is None


async def test_pg_catalog_and_information_schema_are_there_for_names_and_columns(postgres: Postgres) -> None:
    catalog = await catalog_of(postgres.create_database())
    assert "reltuples" in {column.name for column in relation(catalog, "pg_class", "pg_catalog").columns}
    assert "table_name" in {column.name for column in relation(catalog, "tables", "information_schema").columns}
    assert {schema for schema, _ in catalog.relations} == {"pg_catalog", "information_schema"}
    assert (catalog.functions, catalog.operators, catalog.types) == ({}, (), {})


async def test_inheritance_is_seen_from_both_sides(rich: str) -> None:
    catalog = await catalog_of(rich)
    assert names(catalog, relation(catalog, "events").children) == {"public.events_2025"}
    assert names(catalog, relation(catalog, "events_2025").parents) == {"public.events"}
    both = relation(catalog, "both")
    assert [catalog.by_oid[oid].name for oid in both.parents] == ["person", "company"]
    assert relation(catalog, "company").children == (both.oid,)


async def test_views_tell_what_they_read_and_run(rich: str) -> None:
    catalog = await catalog_of(rich)
    big, bigger = relation(catalog, "big_orders"), relation(catalog, "bigger")
    assert (names(catalog, big.reads), function_names(catalog, big.functions)) == ({"public.orders"}, {"slug"})
    assert (names(catalog, bigger.reads), function_names(catalog, bigger.functions)) == ({"public.big_orders"}, {"same"})
    assert names(catalog, relation(catalog, "cached").reads) == {"public.orders"}
    assert relation(catalog, "recursive_view").reads == ()


async def test_a_view_cannot_hide_built_in_objects_behind_missing_dependencies(rich: str) -> None:
    """PostgreSQL records no dependency on pinned objects: pg_authid and pg_read_file leave no row in pg_depend."""
    catalog = await catalog_of(rich)
    nosy = relation(catalog, "nosy")
    assert names(catalog, nosy.reads) == {"pg_catalog.pg_authid", "pg_catalog.pg_stat_activity"}
    assert nosy.builtins == ("pg_read_file",)
    assert function_names(catalog, nosy.functions) == {"slug", "same"}  # behind the domain
    assert relation(catalog, "big_orders").builtins == ()


async def test_rules_tell_what_a_write_touches(rich: str) -> None:
    catalog = await catalog_of(rich)
    ruled = relation(catalog, "ruled")
    assert names(catalog, ruled.rule_targets(None)) == {"public.person"}
    assert [rule.event for rule in ruled.rules] == ["insert"]
    assert function_names(catalog, ruled.functions) == {"slug"}
    assert ruled.reads == ()


async def test_functions_carry_what_makes_them_dangerous(rich: str) -> None:
    catalog = await catalog_of(rich)
    noisy, slug, chore = (function(catalog, name) for name in ("noisy", "slug", "chore"))
    assert (noisy.volatility, noisy.security_definer, noisy.language, noisy.extension) == ("volatile", True, "plpgsql", None)
    assert (slug.volatility, slug.security_definer, slug.language, slug.arguments) == ("immutable", False, "sql", 1)
    assert chore.kind == "procedure"
    assert {found.extension for found in catalog.functions_by_name["cosine_distance"]} == {"vector"}


async def test_an_aggregate_is_as_bad_as_its_worst_part(rich: str) -> None:
    """pg_proc calls every aggregate immutable and no security definer."""
    catalog = await catalog_of(rich)
    noisy_sum, plain_sum = function(catalog, "noisy_sum"), function(catalog, "plain_sum")
    assert (noisy_sum.kind, noisy_sum.volatility, noisy_sum.security_definer) == ("aggregate", "volatile", True)
    assert function_names(catalog, noisy_sum.calls) == {"noisy2"}
    assert (plain_sum.volatility, plain_sum.calls, plain_sum.builtins) == ("immutable", (), ())
    settings = function(catalog, "settings")
    assert (settings.volatility, settings.builtins) == ("stable", ("current_setting",))


async def test_operators_lead_to_their_functions(rich: str) -> None:
    catalog = await catalog_of(rich)
    same = function(catalog, "same")
    operators = {msgspec.structs.replace(each, oid=0) for each in catalog.operators}
    assert Operator("public", "===", same.oid) in operators
    assert Operator("My App", "#@#", 0, "int4pl") in operators


async def test_types_lead_to_checks_at_any_depth_and_to_casts(rich: str) -> None:
    catalog = await catalog_of(rich)
    types = catalog.types
    reached = {
        name: (function_names(catalog, types["public", name].functions), types["public", name].builtins)
        for name in ("email", "work_email", "contact", "people", "address_range", "positive", "_email")
    }
    deep = ({"slug", "same"}, ("current_setting",))
    shallow: tuple[set[str], tuple[str, ...]] = ({"slug", "same"}, ())
    assert reached == {
        "email": shallow,
        "_email": shallow,
        "address_range": shallow,
        "work_email": deep,
        "contact": deep,
        "people": deep,
        "positive": ({"from_mood"}, ()),
    }
    assert function_names(catalog, types["public", "mood"].functions) == {"to_mood"}
    assert function_names(catalog, types["pg_catalog", "int4"].functions) == {"from_mood"}
    assert types["public", "vector"].extension == "vector"
    assert ("public", "company") not in types
    assert catalog.conversions_run_functions


async def test_a_users_objects_cannot_stand_in_for_catalog_ones(postgres: Postgres) -> None:
    dsn = postgres.create_database(
        """CREATE TABLE public.pg_class (oid oid, relname text); CREATE SCHEMA evil;
           CREATE FUNCTION public.format_type(oid, int) RETURNS text LANGUAGE sql AS $$SELECT 'evil'$$;
           CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE sql AS $$SELECT 'evil'$$;"""
    )
    name = dsn.split("/", 3)[3].split("?")[0]
    postgres.execute(f'ALTER DATABASE "{name}" SET search_path = public, pg_catalog')
    catalog = await catalog_of(dsn)
    assert relation(catalog, "pg_class").columns == (Column("oid", "oid"), Column("relname", "text"))
    assert relation(catalog, "pg_am", "pg_catalog").columns


async def test_temporary_tables_of_others_are_left_out(postgres: Postgres) -> None:
    dsn = postgres.create_database()
    pool = Pool("main", dsn, Limits(), bounds=PATIENT)
    async with pool.connection() as other:
        await other.execute("SET default_transaction_read_only = off")
        await other.execute("CREATE TEMP TABLE passing (a int)")
        async with pool.connection() as watching:
            assert len(await watching.fetch("SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'passing'")) == 1
        catalog = await read_catalog(pool, 1)
    await pool.aclose()
    assert [key for key in catalog.relations if key[1] == "passing"] == []


async def test_reading_leaves_nothing_behind_on_the_session(postgres: Postgres) -> None:
    pool = Pool("main", postgres.create_database(), Limits(), size=1, bounds=PATIENT)
    async with pool.connection() as connection:
        before = await connection.fetch("SELECT name, setting FROM pg_catalog.pg_settings ORDER BY name")
    await read_catalog(pool, 1)
    assert pool.statistics().idle == 1  # the session was clean enough to be kept
    async with pool.connection() as connection:
        assert await connection.fetch("SELECT name, setting FROM pg_catalog.pg_settings ORDER BY name") == before
    await pool.aclose()


async def test_cancelled_midway_the_pool_stays_usable(postgres: Postgres) -> None:
    pool = Pool("main", postgres.create_database(), Limits(), size=1, bounds=PATIENT)
    for steps in range(0, 40, 3):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def cancel_soon(steps: int = steps, scope: trio.CancelScope = scope) -> None:
                    for _ in range(steps):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                nursery.start_soon(cancel_soon)
                await read_catalog(pool, 1)
    assert (await read_catalog(pool, 2)).is_read
    await pool.aclose()


async def test_another_server_version_reads_the_same_way(start_postgres: StartPostgres) -> None:
    server = start_postgres(version=18)
    catalog = await catalog_of(server.create_database(SCHEMA.replace("CREATE EXTENSION vector;", "")))
    assert catalog.server_version // 10000 == 18
    assert names(catalog, relation(catalog, "nosy").reads) == {"pg_catalog.pg_authid", "pg_catalog.pg_stat_activity"}
    assert "pg_read_file" in relation(catalog, "nosy").builtins
    assert function_names(catalog, catalog.types["public", "contact"].functions) == {"slug", "same"}
