"""What a function in FROM gives: names as PostgreSQL's addRangeTableEntryForFunction chooses them (parse_relation.c). Pure.

An alias names the column of a function only when its result is a plain value, it is the only function of its item, and it has
no named OUT parameter. Rows keep the names of their attributes. Where text and catalog do not tell which of the two a call
gives, the item is open: it may have any column, all of them free, since every argument is.
"""

from collections.abc import Iterator
from typing import Final

from gatewayd.catalog import Catalog
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.builtins.result_columns import ARRAYS_OF_VALUES, result_columns
from gatewayd.sql.facts.scope import Scope
from gatewayd.sql.facts.selects import words
from gatewayd.sql.lineage.names import Names
from gatewayd.sql.lineage.origins import Entangled, TracedColumn
from gatewayd.sql.text.parse import Node

_CONSTANTS: Final = ("A_Const", "SQLValueFunction")
_DECORATED: Final = ("agg_order", "agg_filter", "over", "agg_distinct", "agg_star", "func_variadic", "agg_within_group")
_NO_VALUES: Final = frozenset({"record", "any", "anyarray"})


def function_columns(body: Node, scope: Scope, names: Names, catalog: Catalog) -> list[TracedColumn]:
    """The columns of a RangeFunction, all of whose arguments are free, before a column alias list. `scope`: what they see."""
    alias = body.get("alias", {})
    calls = list(_calls(body))
    columns: list[TracedColumn] = []
    if "coldeflist" in body:
        columns = [TracedColumn(column["ColumnDef"]["colname"]) for column in body["coldeflist"]]
    else:
        for call, defined in calls:
            columns += _of_call(call, defined, alias.get("aliasname") if len(calls) == 1 else None, scope, names, catalog)
    if body.get("ordinality"):
        columns.append(TracedColumn("ordinality", type="bigint"))
    return columns


def _calls(body: Node) -> Iterator[tuple[Node, list[Node] | None]]:
    """Each function with its column definition list. `unnest(a, b)` stands for two of them (transformRangeFunction)."""
    for node in body["functions"]:
        call, defined = node["List"]["items"]
        inner = call.get("FuncCall", {})
        arguments = inner.get("args", ())
        multiple = len(arguments) > 1 and not defined and "coldeflist" not in body and not any(key in inner for key in _DECORATED)
        if multiple and words(inner["funcname"]) == ("unnest",):
            for argument in arguments:
                yield {"FuncCall": {**inner, "args": [argument]}}, None
        else:
            yield call, defined["List"]["items"] if defined else None


def _of_call(
    call: Node, defined: list[Node] | None, alias: str | None, scope: Scope, names: Names, catalog: Catalog
) -> list[TracedColumn]:
    if defined is not None:
        return [TracedColumn(column["ColumnDef"]["colname"]) for column in defined]
    name = builtin_called(call.get("FuncCall", {}), catalog)
    if name is None:
        return [TracedColumn("", many=True)]
    told = result_columns(name)
    if told is None and name == "unnest":
        arguments = call["FuncCall"].get("args", ())
        told = () if len(arguments) == 1 and _holds_values(arguments[0], scope, names, catalog) else None
    if told is None:
        return [TracedColumn("", many=True)]
    return [*map(TracedColumn, told or (alias or name,))]


def builtin_called(call: Node, catalog: Catalog) -> str | None:
    """The name of the built-in function that a FuncCall runs; None where a user-defined one may be meant, or none is known."""
    if "funcname" not in call:
        return None
    *schema, name = words(call["funcname"])
    if schema not in ([], ["pg_catalog"]) or builtins.function(name) is None:
        return None
    if not schema and any(each.schema == "public" for each in catalog.functions_by_name.get(name, ())):
        return None
    return name


def _holds_values(node: Node, scope: Scope, names: Names, catalog: Catalog) -> bool:
    """Whether unnest of this argument certainly gives plain values: an array or multirange of them, no rows and no tsvector."""
    [(kind, body)] = node.items()
    match kind:
        case "A_ArrayExpr":
            elements = body.get("elements", ())
            return bool(elements) and all(_is_value(each, scope, names, catalog) for each in elements)
        case "TypeCast":
            name = _plain_type(body["typeName"])
            return name is not None and ("arrayBounds" in body["typeName"] or name.endswith("multirange"))
        case "FuncCall":
            return builtin_called(body, catalog) in ARRAYS_OF_VALUES
        case "ColumnRef":
            return _is_array_of_values(_type_of(body, scope, names))
    return False


def _is_value(node: Node, scope: Scope, names: Names, catalog: Catalog) -> bool:
    [(kind, body)] = node.items()
    match kind:
        case "A_ArrayExpr":
            return _holds_values(node, scope, names, catalog)
        case "TypeCast":
            return _plain_type(body["typeName"]) is not None
        case "ColumnRef":
            type_ = _type_of(body, scope, names)
            return _is_array_of_values(f"{type_}[]") if type_ else False
    return kind in _CONSTANTS


def _type_of(body: Node, scope: Scope, names: Names) -> str:
    if "A_Star" in body["fields"][-1]:
        return ""
    try:
        return names.resolve(body["fields"], scope, -1).type
    except Entangled:
        return ""


def _is_array_of_values(type_: str) -> bool:
    """`type_` as format_type() prints it: types from elsewhere than pg_catalog carry their schema, rows of its relations pg_."""
    element = type_.removesuffix("[]").removesuffix("[]")
    return type_.endswith("[]") and element not in _NO_VALUES and not element.startswith(("pg_", '"')) and "." not in element


def _plain_type(type_name: Node) -> str | None:
    """The name of a type of pg_catalog whose values are no rows."""
    *schema, name = words(type_name.get("names"))
    plain = name.removeprefix("_")
    if schema not in ([], ["pg_catalog"]) or plain in _NO_VALUES or type_name.get("setof"):
        return None
    known = builtins.type_name(plain)
    is_row = builtins.relation(plain) is not None
    return plain if known is not None and known.clearance is builtins.Clearance.ALLOWED and not is_row else None
