"""Whether a statement may run user-defined functions, in whatever way they are reached. Pure.

Such code may change settings of the session, also where it calls itself STABLE; reads that may run it are rolled back, which
takes that back. Not all reads: the server counts rollbacks, and operators watch the count.
"""

from gatewayd.catalog import Catalog, Relation
from gatewayd.sql.builtins.lookup import RUNS_ANY_CONVERSION
from gatewayd.sql.facts.statement import RelationUse, Statement


def may_run_own_code(statement: Statement, catalog: Catalog) -> bool:
    """True when in doubt: by name alone, whatever the schema."""
    if not catalog.is_read:
        return True
    functions = catalog.functions_by_name
    called = [use.name for use in statement.functions]
    return (
        any(name in functions for name in called)
        or any(use.name in functions for use in statement.fields)
        or any(use.name in catalog.operators_by_name for use in statement.operators)
        or (catalog.conversions_run_functions and (bool(statement.types) or not RUNS_ANY_CONVERSION.isdisjoint(called)))
        or any(_behind(use, catalog) for use in statement.relations)
    )


def _behind(use: RelationUse, catalog: Catalog) -> bool:
    """Whether a view, or a row security policy, below this relation may call some."""
    schemas = ("pg_catalog", "public") if use.schema is None else (use.schema,)
    ahead = [found for schema in schemas if (found := catalog.relation(schema, use.name)) is not None]
    seen: set[int] = set()
    while ahead:
        relation: Relation = ahead.pop()
        if relation.functions or relation.row_security:
            return True
        seen.add(relation.oid)
        for oid in (*relation.reads, *relation.children):
            below = catalog.by_oid.get(oid)
            if below is not None and oid not in seen:
                ahead.append(below)
    return False
