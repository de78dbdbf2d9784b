"""The catalog rows that a decision rests on, as one number for each object: equal numbers, equal rows. SQL text alone.

PostgreSQL never changes a row in place where a definition changes: the new row has another `xmin`, and no row gets an old one
back. So a hash over the `xmin` of all rows that define an object stands for its definition, at 8 bytes an object. The same
expressions are read with the catalog and asked again by the guard (`execute/guard.py`), so they must name every schema and use
operators that exist for exactly these types: the guard runs on a search_path that agents' tables share.
"""

from typing import Final

from gatewayd.catalog import FIRST_USER_OID


def _rows(what: str, order: str) -> str:
    return f"ARRAY(SELECT x.xmin FROM pg_catalog.{what} ORDER BY x.{order})"


def _hash(*parts: str) -> str:
    return f"pg_catalog.hashtextextended(pg_catalog.concat_ws('|', {', '.join(parts)}) COLLATE pg_catalog.\"C\", 0)"


SHAPE: Final = _hash(
    "c.xmin",
    "(SELECT x.xmin FROM pg_catalog.pg_namespace AS x WHERE x.oid = c.relnamespace)",
    _rows("pg_attribute AS x WHERE x.attrelid = c.oid AND x.attnum > 0", "attnum"),
    _rows("pg_rewrite AS x WHERE x.ev_class = c.oid", "rulename"),
    _rows("pg_inherits AS x WHERE x.inhparent = c.oid", "inhrelid"),
)
"""Of the relation `c` (a row of pg_class): its name and schema, columns, rules (a view's query is one), children."""

KEYS: Final = _hash(
    _rows("pg_index AS x WHERE x.indrelid = c.oid", "indexrelid"),
    _rows("pg_constraint AS x WHERE x.conrelid = c.oid", "oid"),
    _rows("pg_trigger AS x WHERE x.tgrelid = c.oid", "oid"),
)
"""Of the relation `c`: indexes, constraints, and triggers (a foreign key of another table has some here). Masks ask for these."""


EVERYWHERE: Final = _hash(
    "(SELECT x.xmin FROM pg_catalog.pg_namespace AS x WHERE x.nspname = 'public')",
    _rows(f"pg_operator AS x WHERE x.oid >= {FIRST_USER_OID}", "oid"),
    _rows(f"pg_cast AS x WHERE x.oid >= {FIRST_USER_OID}", "oid"),
    _rows(f"pg_constraint AS x WHERE x.contypid >= {FIRST_USER_OID}", "contypid, x.oid"),
)
"""Of the database: the schema that names without one are looked up in, user-defined operators and casts, CHECKs of domains."""


def _listed(condition: str, catalog: str) -> str:
    rows = "pg_catalog.string_agg(x.oid::pg_catalog.text || ':' || x.xmin::pg_catalog.text, ',' ORDER BY x.oid)"
    return f"COALESCE((SELECT {rows} FROM pg_catalog.{catalog} AS x WHERE {condition}), '')"


def functions_named(names: str) -> str:
    """`oid:xmin,…` of the user-defined functions of these names, whatever the schema. The cast keeps the planner from a range
    over all oids, which would read every user-defined function there is."""
    return _listed(f"x.proname = ANY ({names}) AND x.oid::pg_catalog.int8 >= {FIRST_USER_OID}", "pg_proc")


def functions(oids: str) -> str:
    """`oid:xmin,…` of these functions."""
    return _listed(f"x.oid = ANY ({oids})", "pg_proc")


def types_named(names: str) -> str:
    """`oid:xmin,…` of the user-defined types of these names that are neither arrays nor rows of a relation."""
    elsewhere = "(SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname LIKE 'pg\\_t%')"  # temporary, of other sessions
    own = (
        f"x.oid::pg_catalog.int8 >= {FIRST_USER_OID} AND x.typrelid = 0 AND x.typcategory <> 'A' "
        f"AND x.typnamespace NOT IN {elsewhere}"
    )
    return _listed(f"x.typname = ANY ({names}) AND {own}", "pg_type")
