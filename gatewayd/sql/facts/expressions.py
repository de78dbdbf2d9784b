"""Handlers of expressions that run something: calls, operators, casts, field selections (decision 3.5)."""

from collections.abc import Mapping

from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.facts.grammar import NODES
from gatewayd.sql.facts.scope import Scope
from gatewayd.sql.facts.walk import NodeHandler, Walk, Watched
from gatewayd.sql.text.parse import Node
from gatewayd.sql.text.type_name import type_names

# Kinds of A_Expr whose operators PostgreSQL writes itself (transformAExprBetween).
_WRITTEN_OPERATORS = {
    "AEXPR_BETWEEN": (">=", "<="),
    "AEXPR_NOT_BETWEEN": ("<", ">"),
    "AEXPR_BETWEEN_SYM": (">=", "<="),
    "AEXPR_NOT_BETWEEN_SYM": ("<", ">"),
}
_NAMED_OPERATORS = frozenset(
    {
        "AEXPR_OP",
        "AEXPR_OP_ANY",
        "AEXPR_OP_ALL",
        "AEXPR_DISTINCT",
        "AEXPR_NOT_DISTINCT",
        "AEXPR_NULLIF",
        "AEXPR_IN",
        "AEXPR_LIKE",
        "AEXPR_ILIKE",
        "AEXPR_SIMILAR",
    }
)
# Grammar that older servers read as calls: by node type the name, and the version that made it grammar.
_SINCE_16 = {
    "JsonArrayAgg": "json_arrayagg",
    "JsonArrayConstructor": "json_array",
    "JsonArrayQueryConstructor": "json_array",
    "JsonObjectAgg": "json_objectagg",
    "JsonObjectConstructor": "json_object",
}
_SINCE_17 = {
    "JsonParseExpr": "json",
    "JsonScalarExpr": "json_scalar",
    "JsonSerializeExpr": "json_serialize",
    "MergeSupportFunc": "merge_action",
}
# Words before which the grammar puts pg_catalog: to an older server a call of that bare name, or a column.
_QUALIFIED_SINCE_16 = frozenset({"json_object", "system_user"})
_JSON_FUNCTIONS = {"JSON_EXISTS_OP": "json_exists", "JSON_QUERY_OP": "json_query", "JSON_VALUE_OP": "json_value"}
_A_EXPR = NODES["A_Expr"]
_A_INDIRECTION = NODES["A_Indirection"]
_CASE = NODES["CaseExpr"]
_FUNC_CALL = NODES["FuncCall"]
_INDEX_ELEM = NODES["IndexElem"]
_JSON_ARGUMENT = NODES["JsonArgument"]
_JSON_FUNC = NODES["JsonFuncExpr"]
_PLAIN_SELECT = frozenset({"targetList", "fromClause", "whereClause", "limitOption", "op"})
_DECIDED_BY = {"current_setting": 0, "pg_input_is_valid": 1, "pg_input_error_info": 1}
_PLAIN_OPERATORS = ("AEXPR_OP", "AEXPR_DISTINCT", "AEXPR_NOT_DISTINCT", "AEXPR_NULLIF", "AEXPR_LIKE", "AEXPR_ILIKE")
_TEXTS = ("text", "varchar")
_PLAIN_TYPE = frozenset({"names", "typemod", "location"})
_PLAIN_CALL = frozenset({"funcname", "args", "funcformat", "location"})
_CALL_OF_ITS_ARGUMENTS = _PLAIN_CALL | {"agg_order", "agg_filter", "agg_distinct", "over"}
_SORT_BY = NODES["SortBy"]
_SUB_LINK = NODES["SubLink"]
_TYPE_CAST = NODES["TypeCast"]
_TYPE_NAME = NODES["TypeName"]


def column_ref(walk: Walk, body: Node, scope: Scope) -> None:
    """A column reference, or a whole row."""
    fields = body["fields"]
    last = fields[-1].get("String")
    walk.refer()
    if id(body) not in walk.plain:
        walk.used.add("*" if last is None else last.get("sval", ""))
    if last is None:
        walk.stars.append((fields, scope))
    elif len(fields) == 1:
        walk.names.add(last.get("sval", ""))
    else:
        walk.fields.append((fields, body.get("location", 0), scope))


def func_call(walk: Walk, body: Node, scope: Scope) -> None:
    """A function call: the function, its arguments, ORDER BY, FILTER and OVER."""
    count = len(body.get("args", ()))
    if body.get("agg_within_group"):
        count += len(body.get("agg_order", ()))
    if _may_be_column(body):
        item = body["args"][0]["ColumnRef"]["fields"]
        walk.call_or_column(body["funcname"][0]["String"].get("sval", ""), item, body, scope)
    else:
        walk.call(
            body["funcname"],
            -1 if body.get("func_variadic") else count,
            body,
            constant=_constant(walk, body),
            operands=tuple(body.get("args", ())) if body.keys() <= _CALL_OF_ITS_ARGUMENTS else None,
            scope=scope,
        )
    if len(body["funcname"]) == 2 and body["funcname"][1].get("String", {}).get("sval") in _QUALIFIED_SINCE_16:
        walk.call_of_older_servers(body["funcname"][1]["String"]["sval"], 160000, body)
    walk.push_children(_FUNC_CALL, body, scope)


def _may_be_column(body: Node) -> bool:
    """A plain call of an unqualified name that no built-in function has, over something that may be a range item."""
    if not body.keys() <= _PLAIN_CALL or len(body["funcname"]) != 1 or len(body.get("args", ())) != 1:
        return False
    argument = body["args"][0].get("ColumnRef")
    if argument is None or "A_Star" in argument["fields"][-1]:
        return False
    return builtins.function(body["funcname"][0].get("String", {}).get("sval", "")) is None


def _constant(walk: Walk, body: Node) -> str | None:
    """The plain string constant that decides what a call reaches: the name of a setting, which can be held against SHOW's list,
    or of a type, which then counts among those that the statement names."""
    name = body["funcname"][-1].get("String", {}).get("sval")
    place = _DECIDED_BY.get(name)
    arguments = body.get("args", ())
    if place is None or not body.keys() <= _PLAIN_CALL or len(arguments) <= place:
        return None
    node = arguments[place]
    while "TypeCast" in node and _is_text(node["TypeCast"]["typeName"]):
        node = node["TypeCast"]["arg"]
    value = node.get("A_Const", {}).get("sval")
    if value is None:
        return None
    text = str(value.get("sval", ""))
    if name == "current_setting":
        return text
    names = type_names(text)
    if names is None:
        return None
    walk.type_use(names, body)
    return text


def _is_text(type_name: Node) -> bool:
    """A type that keeps a string as it is, without a length."""
    names = [name["String"].get("sval", "") for name in type_name.get("names", ())]
    return names[-1] in _TEXTS and names[:-1] in ([], ["pg_catalog"]) and type_name.keys() <= _PLAIN_TYPE


def a_expr(walk: Walk, body: Node, scope: Scope) -> None:
    """An operator and its operands."""
    kind = body["kind"]
    position = body.get("location", 0)
    if kind in _NAMED_OPERATORS:
        names = body["name"]
        if len(names) == 1:
            pairs = _pairs(kind, body) if walk.watched is not None else ()
            walk.operator(None, names[0]["String"].get("sval", ""), position, pairs, scope)
        else:
            walk.operator(*walk.qualified(names, body), position)
    elif kind in _WRITTEN_OPERATORS:
        pairs = [(body["lexpr"], each) for each in _items(body["rexpr"])] if walk.watched is not None else ()
        for name in _WRITTEN_OPERATORS[kind]:
            walk.operator(None, name, position, pairs, scope)
    else:
        walk.refuse(f"expression {kind}", body)
    walk.push_children(_A_EXPR, body, scope)


def _pairs(kind: str, body: Node) -> list[tuple[Node | None, ...]]:
    """The operands of an operator; of IN those of each comparison, where the types of all are one (transformAExprIn)."""
    if kind == "AEXPR_IN":
        return [(body["lexpr"], *_items(body["rexpr"]))]
    if kind in _PLAIN_OPERATORS and "rexpr" in body:
        return [(body.get("lexpr"), body["rexpr"])]
    return []


def _items(node: Node) -> list[Node]:
    items: list[Node] = node.get("List", {}).get("items", [])
    return items


def a_indirection(walk: Walk, body: Node, scope: Scope) -> None:
    """A field selection or a subscript."""
    position = max((inner.get("location", 0) for inner in body.get("arg", {}).values()), default=-1)
    for part in body.get("indirection", ()):
        if "String" in part:
            walk.fields.append(([part], position, None))
    walk.push_children(_A_INDIRECTION, body, scope)


def type_cast(walk: Walk, body: Node, scope: Scope) -> None:
    """A cast: its type and operand."""
    if walk.watched is not None:
        is_plain = body["typeName"].keys() <= _PLAIN_TYPE | {"typmods"}
        names = [name["String"].get("sval", "") for name in body["typeName"]["names"]]
        key = (names[-2] if len(names) > 1 else None, names[-1])
        walk.watched.append(Watched("cast", key, (body["arg"],) if is_plain else None, scope))
    walk.push_children(_TYPE_CAST, body, scope)


def type_name(walk: Walk, body: Node, scope: Scope) -> None:
    """A type that is named by itself."""
    walk.type_use(body["names"], body)
    walk.push_children(_TYPE_NAME, body, scope)


def sub_link(walk: Walk, body: Node, scope: Scope) -> None:
    """A subquery in an expression, with the operator that compares it."""
    if "operName" in body:
        walk.operator(*walk.qualified(body["operName"], body), body.get("location", 0))
    elif "testexpr" in body:
        walk.operator(None, "=", body.get("location", 0))  # IN (SELECT …)
    if body["subLinkType"] == "EXISTS_SUBLINK":
        [inner] = body["subselect"].values()
        if inner.keys() <= _PLAIN_SELECT and inner.get("op") == "SETOP_NONE":
            walk.unseen.add(id(inner))
    walk.push_children(_SUB_LINK, body, scope)


def case_expr(walk: Walk, body: Node, scope: Scope) -> None:
    """CASE: with a test expression each WHEN compares by `=`."""
    if "arg" in body:
        walk.operator(None, "=", body.get("location", 0))
    walk.push_children(_CASE, body, scope)


def sort_by(walk: Walk, body: Node, scope: Scope) -> None:
    """An item of ORDER BY, and the operator of USING."""
    if "useOp" in body:
        walk.operator(*walk.qualified(body["useOp"], body), body.get("location", 0))
    walk.push_children(_SORT_BY, body, scope)


def index_elem(walk: Walk, body: Node, scope: Scope) -> None:
    """An item of an index, or of an ON CONFLICT target."""
    # Operator classes are taken as they are: only a superuser can create one.
    for option in body.get("opclassopts", ()):
        if "DefElem" not in option:
            walk.refuse("an operator class option", body)
    walk.push_node(body.get("expr"), scope)


def multi_assign_ref(walk: Walk, body: Node, scope: Scope) -> None:
    """A part of `SET (a, b) = …`: the source is walked once."""
    if body.get("colno", 1) == 1:  # the parser repeats the source for each column
        walk.push_node(body.get("source"), scope)


def json_func(walk: Walk, body: Node, scope: Scope) -> None:
    """An SQL/JSON function: its expressions and the type of RETURNING."""
    name = _JSON_FUNCTIONS.get(body.get("op", "JSON_EXISTS_OP"))
    if name is not None:  # JSON_TABLE's COLUMNS are no call to any server
        walk.call_of_older_servers(name, 170000, body)
    walk.push_children(_JSON_FUNC, body, scope)


def json_argument(walk: Walk, body: Node, scope: Scope) -> None:
    """PASSING: what is neither json nor of a few plain types is converted by to_jsonb (transformJsonPassingArgs)."""
    walk.call([{"String": {"sval": "pg_catalog"}}, {"String": {"sval": "to_jsonb"}}], 1, body)
    walk.push_children(_JSON_ARGUMENT, body, scope)


def _call_before(since: int, node: str, name: str) -> NodeHandler:
    form = NODES[node]

    def handler(walk: Walk, body: Node, scope: Scope) -> None:
        walk.call_of_older_servers(name, since, body)
        walk.push_children(form, body, scope)

    return handler


HANDLERS: Mapping[str, NodeHandler] = {
    **{node: _call_before(160000, node, name) for node, name in _SINCE_16.items()},
    **{node: _call_before(170000, node, name) for node, name in _SINCE_17.items()},
    "JsonFuncExpr": json_func,
    "JsonArgument": json_argument,
    "A_Expr": a_expr,
    "A_Indirection": a_indirection,
    "CaseExpr": case_expr,
    "ColumnRef": column_ref,
    "FuncCall": func_call,
    "IndexElem": index_elem,
    "MultiAssignRef": multi_assign_ref,
    "SortBy": sort_by,
    "SubLink": sub_link,
    "TypeCast": type_cast,
    "TypeName": type_name,
}
