"""Deciding without a database: a catalog that holds just what one statement names, as plain as it can be.

It answers "what do the names in the policy alone say?". Views, partitions, overloads and functions that nobody listed
stay unseen, so the verdict of a running gatewayd may be stricter.
"""

from typing import Final

from gatewayd.catalog import Catalog, Function, Relation, Type
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Decision
from gatewayd.policy.file.model import Policy
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.facts.statement import Statement, Unparsed

_FIRST_OID: Final = 16384  # below it, objects came with the server


def decide_by_names(statement: Statement | Unparsed, policy: Policy, *, tainted: bool = False) -> Decision:
    """The decision with every relation and type that the statement names being a plain one, every listed function there."""
    catalog = catalog_of_names(statement, policy) if isinstance(statement, Statement) else Catalog(revision=1, database="")
    return decide(statement, policy, catalog, tainted=tainted)


def catalog_of_names(statement: Statement, policy: Policy) -> Catalog:
    """A catalog made of the names in statement and policy, for decisions without a database."""
    relations = {
        (use.schema or "public", use.name): Relation(oid, use.schema or "public", use.name, "table")
        for oid, use in enumerate(statement.relations, _FIRST_OID)
        if use.schema not in ("pg_catalog", "information_schema")
        and not use.creates
        and not (use.schema is None and builtins.relation(use.name) is not None)
    }
    allowed = policy.functions.allow
    functions = {}
    for oid, call in enumerate(statement.functions, _FIRST_OID):
        schema = call.schema or "public"
        if (schema, call.name) in allowed or (schema, "*") in allowed:
            functions[oid] = Function(oid, schema, call.name, "volatile", False, "sql", None, call.arguments)
    types = {
        (use.schema or "public", use.name): Type(use.schema or "public", use.name, "base")
        for use in statement.types
        if not (use.schema in (None, "pg_catalog") and builtins.type_name(use.name) is not None)
    }
    return Catalog(revision=1, database="", relations=relations, functions=functions, types=types)
