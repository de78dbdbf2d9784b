"""What a statement names that neither the built-in lists nor the catalog know, taken for plain things that anybody may use. Pure.

Where a statement would be allowed then, its only trouble is a name that does not exist, and PostgreSQL's own words about it say
more than a refusal: it is sent to be parsed, and never executed. A name that the policy's own keys close stays closed.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

import msgspec

from gatewayd.catalog import Catalog, Function, Operator, Relation, Type
from gatewayd.policy.decide.access import resolve
from gatewayd.policy.decide.relation_reach import Reach
from gatewayd.policy.file.model import Functions, Level, Policy, TableAccess
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.facts.statement import FunctionUse, OperatorUse, RelationUse, Statement, TypeUse

T = TypeVar("T")

UNKNOWN_NAME: Final = "unknown_name"
"""What dry-run calls it, as `Allowed.matched_rule`."""
_NO_OID: Final = 4_294_967_295  # counted down from here: no object of a database has these
_AT_MOST: Final = 64
"""Unknown names of one statement: more are a flood, and refused as before."""


class Unknown(msgspec.Struct, frozen=True):
    """The names in a statement that the catalog does not have."""

    relations: tuple[RelationUse, ...]
    functions: tuple[FunctionUse, ...]
    operators: tuple[OperatorUse, ...]
    types: tuple[TypeUse, ...]


def is_parsed_alone(statement: Statement) -> bool:
    """Whether PostgreSQL looks up the names of such a statement when it parses it: not those of a definition."""
    return statement.form != "utility" or statement.explains != "no"


def assumed(unknown: Unknown, policy: Policy, catalog: Catalog) -> tuple[Policy, Catalog] | None:
    """Policy and catalog in which all of it is plain and may be used. None where it is too much, or a key of the policy's is
    meant for one of the names."""
    relations, functions, operators, types = unknown.relations, unknown.functions, unknown.operators, unknown.types
    if len(relations) + len(functions) + len(operators) + len(types) > _AT_MOST:
        return None
    keys: dict[tuple[str, str], Level] = {}
    for use in relations:
        key = (use.schema or "public", use.name)
        if resolve(policy.table_access, *key).source != "default":
            return None
        keys[key] = "read_write" if use.writes else keys.get(key, "read")
    oid = iter(range(_NO_OID, 0, -1))
    named = {(use.schema or "public", use.name) for use in functions}
    plain = {
        number: Function(number, schema, name, "immutable", False, "sql", None, 0)
        for number, (schema, name) in zip(oid, named, strict=False)
    }
    made = msgspec.structs.replace(
        catalog,
        relations={**catalog.relations, **{key: Relation(next(oid), *key, "table") for key in keys}},
        functions={**catalog.functions, **plain},
        operators=(*catalog.operators, *(Operator(use.schema or "public", use.name, 0, "int4eq") for use in operators)),
        types={
            **catalog.types,
            **{(use.schema or "public", use.name): Type(use.schema or "public", use.name, "base") for use in types},
        },
    )
    opened = msgspec.structs.replace(
        policy,
        table_access=TableAccess(policy.table_access.default, {**policy.table_access.tables, **keys}),
        functions=Functions(policy.functions.allow | named),
    )
    return opened, made


def nearest(unknown: Unknown, policy: Policy, catalog: Catalog) -> str | None:
    """The name most like the first unknown one that the policy lets an agent know; None where none is like it."""
    for use in unknown.relations:
        reach = Reach(policy.table_access, catalog)

        def open_name(relation: Relation, reach: Reach = reach) -> bool:
            return relation.kind != "index" and reach.level(relation).level != "deny"

        own = {relation.name: relation for relation in catalog.relations.values() if relation.schema == (use.schema or "public")}
        return _most_like(use.name, own, open_name)
    for call in unknown.functions:
        return _most_like(call.name, dict.fromkeys((*builtins.function_names(), *catalog.functions_by_name)), lambda _: True)
    return None


def _most_like(name: str, names: Mapping[str, T], may_be_told: Callable[[T], bool]) -> str | None:
    ends = {name[0], name[-1]}
    near: Iterable[str] = (each for each in names if abs(len(each) - len(name)) <= 3 and ends & {each[0], each[-1]})
    found = get_close_matches(name, near, n=5, cutoff=0.75)
    return next((each for each in found if each != name and may_be_told(names[each])), None)
