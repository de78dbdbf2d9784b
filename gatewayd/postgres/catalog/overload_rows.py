"""Rows of the catalog queries -> what overload resolution asks for. Pure."""

import sys
from collections import defaultdict

from gatewayd.catalog import Cast, OperatorOverload, Overload, Overloads, TypeShape
from gatewayd.postgres.catalog.catalog_queries import Rows


def overloads(rows: Rows) -> Overloads:
    """What overload resolution needs, from the rows of the catalog's queries."""
    shared: dict[TypeShape, TypeShape] = {}
    shapes: dict[int, TypeShape] = {}
    for row in rows.types:
        element = row["element"] if row["is_array"] else 0
        shape = TypeShape(row["kind"], row["category"], row["preferred"], element, row["base"])
        shapes[row["oid"]] = shared.setdefault(shape, shape)
    functions: dict[str, list[Overload]] = defaultdict(list)
    for row in rows.overloads:
        made = Overload(row["oid"], sys.intern(row["schema"]), tuple(row["arguments"]), row["defaults"], row["variadic"])
        functions[row["name"]].append(made)
    operators: dict[str, list[OperatorOverload]] = defaultdict(list)
    for row in rows.operator_overloads:
        operator = OperatorOverload(row["oid"], sys.intern(row["schema"]), row["left"], row["right"], row["function"])
        operators[row["name"]].append(operator)
    return Overloads(
        shapes=shapes,
        printed={sys.intern(row["printed"]): row["oid"] for row in rows.types},
        named={(sys.intern(row["schema"]), row["name"]): row["oid"] for row in rows.types},
        functions={name: tuple(found) for name, found in functions.items()},
        operators={name: tuple(found) for name, found in operators.items()},
        casts={(row["source"], row["target"]): Cast(row["context"], row["function"]) for row in rows.all_casts},
    )
