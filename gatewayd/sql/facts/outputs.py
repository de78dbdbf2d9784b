"""The columns of queries and range items as far as the text tells them, and what a selection `x.name` picks (decision 3.5).

Names of result columns are chosen as PostgreSQL's FigureColname and expandRelAttrs do. What only the catalog knows stays a Star.
"""

from collections.abc import Callable

import msgspec

from gatewayd.sql.facts.scope import QueryLevel, RangeItem, Scope
from gatewayd.sql.facts.statement import FieldUse, FunctionUse, Star
from gatewayd.sql.facts.walk import Walk
from gatewayd.sql.text.parse import Node

OutputNames = tuple[str | Star, ...]
UNKNOWN: OutputNames = (Star(),)
MAX_COLUMNS = 1664  # PostgreSQL's own limit of a target list: stars of stars must not grow without end
NO_NAME = "?column?"

_SQL_VALUES = {
    "SVFOP_CURRENT_DATE": "current_date",
    "SVFOP_CURRENT_TIME": "current_time",
    "SVFOP_CURRENT_TIME_N": "current_time",
    "SVFOP_CURRENT_TIMESTAMP": "current_timestamp",
    "SVFOP_CURRENT_TIMESTAMP_N": "current_timestamp",
    "SVFOP_LOCALTIME": "localtime",
    "SVFOP_LOCALTIME_N": "localtime",
    "SVFOP_LOCALTIMESTAMP": "localtimestamp",
    "SVFOP_LOCALTIMESTAMP_N": "localtimestamp",
    "SVFOP_CURRENT_ROLE": "current_role",
    "SVFOP_CURRENT_USER": "current_user",
    "SVFOP_USER": "user",
    "SVFOP_SESSION_USER": "session_user",
    "SVFOP_CURRENT_CATALOG": "current_catalog",
    "SVFOP_CURRENT_SCHEMA": "current_schema",
}
_XML = {
    "IS_XMLCONCAT": "xmlconcat",
    "IS_XMLELEMENT": "xmlelement",
    "IS_XMLFOREST": "xmlforest",
    "IS_XMLPARSE": "xmlparse",
    "IS_XMLPI": "xmlpi",
    "IS_XMLROOT": "xmlroot",
    "IS_XMLSERIALIZE": "xmlserialize",
}
_JSON = {"JSON_EXISTS_OP": "json_exists", "JSON_QUERY_OP": "json_query", "JSON_VALUE_OP": "json_value"}
_FIXED = {
    "A_ArrayExpr": "array",
    "CoalesceExpr": "coalesce",
    "GroupingFunc": "grouping",
    "JsonArrayAgg": "json_arrayagg",
    "JsonArrayConstructor": "json_array",
    "JsonArrayQueryConstructor": "json_array",
    "JsonObjectAgg": "json_objectagg",
    "JsonObjectConstructor": "json_object",
    "JsonParseExpr": "json",
    "JsonScalarExpr": "json_scalar",
    "JsonSerializeExpr": "json_serialize",
    "MergeSupportFunc": "merge_action",
    "RowExpr": "row",
    "XmlSerialize": "xmlserialize",
}


class Outputs:
    """Answers for one finished walk; each query is worked out once."""

    def __init__(self, walk: Walk) -> None:
        self._queries = walk.queries
        self._selections = walk.fields
        self._functions = walk.functions
        self._projections = walk.projections
        self._told: dict[
            int, tuple[OutputNames, tuple[str, ...]]
        ] = {}  # by id() of an item: its columns, and the names among them

    def of_statement(self, body: Node) -> OutputNames:
        """The result columns of a SELECT, or of the RETURNING of a DML; empty for a DML without one."""
        return self._of_query(self._queries[id(body)])

    def fields(self) -> tuple[FieldUse, ...]:
        """Every selection of the walk, with as much proof as the text holds."""
        found: dict[FieldUse, None] = {}
        for names, position, scope in self._selections:
            found[self._selection(names, position, scope)] = None
        return tuple(found)

    def functions(self) -> tuple[FunctionUse, ...]:
        """Every call of the walk, with the column that it may be instead."""
        for key, selection in self._projections.items():
            self._functions[key] = msgspec.structs.replace(self._functions[key], column=self._selection(*selection))
        return tuple(self._functions.values())

    def _selection(self, names: list[Node], position: int, scope: Scope | None) -> FieldUse:
        item = self._qualifier(names, scope.find) if scope is not None else None
        return self._field(names[-1]["String"].get("sval", ""), position, item)

    def _qualifier(self, names: list[Node], find: Callable[[str], RangeItem | None]) -> RangeItem | None:
        """The range item that `A` of `A.name`, or `S.A` of `S.A.name`, stands for; None where that is not certain."""
        words = [name["String"].get("sval", "") for name in names[:-1]]
        item = find(words[-1]) if len(words) <= 3 else None
        if item is None:
            return None
        if len(words) == 1:
            return item
        if item.kind != "relation" or item.aliases:
            return None
        if item.schema is not None:
            return item if item.schema == words[-2] else None
        # A bare name is public's unless pg_catalog has it.
        return item if words[-2] == "public" and not words[-1].startswith("pg_") else None

    def _field(self, name: str, position: int, item: RangeItem | None) -> FieldUse:
        if item is None:
            return FieldUse(name, position)
        if item.relation is not None and not item.aliases:
            return FieldUse(name, position, item.relation.index)
        told = self._told.get(id(item))
        if told is None:
            columns = self._of_item(item)
            told = self._told[id(item)] = columns, tuple(column for column in columns if type(column) is str)
        columns, names = told
        if name in names or len(names) == len(columns):
            return FieldUse(name, position, columns=names)
        return FieldUse(name, position, outputs=columns)

    def _of_query(self, query: QueryLevel) -> OutputNames:
        if query.columns is None:
            query.columns = UNKNOWN  # while it is being worked out: a query that reads itself
            query.columns = self._work_out(query)
        known: OutputNames = query.columns
        return known

    def _work_out(self, query: QueryLevel) -> OutputNames:
        while query.arms:  # a set operation has the names of its first arm
            first = self._queries.get(id(query.arms[0]))
            if first is None:
                return UNKNOWN
            query = first
        if query.values is not None:
            if any("ColumnRef" in node and _is_star(node) for node in query.values):
                return UNKNOWN
            return tuple(f"column{number}" for number in range(1, len(query.values) + 1))
        columns: list[str | Star] = []
        for node in query.targets:
            target = node["ResTarget"]
            if "name" in target:
                columns.append(target["name"])
            elif _is_star(target["val"]):
                columns += self._of_star(target["val"], query)
            else:
                name = self.name(target["val"])
                columns.append(Star() if name is None else name)
            if len(columns) > MAX_COLUMNS:
                return UNKNOWN
        unknown = Star()
        return tuple(
            column for index, column in enumerate(columns) if index == 0 or column != unknown or columns[index - 1] != unknown
        )

    def _of_star(self, node: Node, query: QueryLevel) -> OutputNames:
        if "ColumnRef" not in node:
            return UNKNOWN  # (expression).*
        names = node["ColumnRef"]["fields"]
        if len(names) > 1:
            item = self._qualifier(names, query.scope.find)
            return UNKNOWN if item is None else self._of_item(item)
        columns: list[str | Star] = []
        for part in query.parts:
            columns += self._of_item(part)
            if len(columns) > MAX_COLUMNS:
                return UNKNOWN
        return tuple(columns)

    def _of_item(self, item: RangeItem) -> OutputNames:
        columns: OutputNames = UNKNOWN
        if item.relation is not None:
            columns = (Star(item.relation.index),)
        elif item.kind == "known":
            columns = item.known
        elif item.kind == "query":
            query = self._queries.get(id(item.body))
            if query is not None:
                columns = (*self._of_query(query), *item.known)
        elif item.kind == "join" and item.left is not None and item.right is not None:
            columns = self._of_join(self._of_item(item.left), self._of_item(item.right), item)
        if item.aliases:
            columns = _rename(columns, item.aliases)
        return columns if len(columns) <= MAX_COLUMNS else UNKNOWN

    @staticmethod
    def _of_join(left: OutputNames, right: OutputNames, item: RangeItem) -> OutputNames:
        if not item.natural and not item.merged:
            return (*left, *right)
        if any(type(column) is Star for column in (*left, *right)):
            return UNKNOWN  # the merged columns are left out of a relation's own
        merged: OutputNames = item.merged or tuple(column for column in left if column in set(right))
        both = set(merged)
        return (*merged, *(column for column in left if column not in both), *(column for column in right if column not in both))

    def name(self, node: Node) -> str | None:
        """The name PostgreSQL gives to a result column of this expression (FigureColname); None: it depends on the catalog."""
        return self._figure(node)[0]

    def _figure(self, node: Node) -> tuple[str | None, int]:
        """The name and how strongly it is meant: 2 for a name, 1 for a fallback such as a cast's type, 0 for none."""
        [(kind, body)] = node.items()
        fallback: str | None = None
        while True:
            name: str | None = NO_NAME
            strength = 0
            if kind == "ColumnRef":
                words = [part["String"].get("sval", "") for part in body["fields"] if "String" in part]
                name, strength = words[-1], 2
            elif kind == "A_Indirection":
                words = [part["String"].get("sval", "") for part in body.get("indirection", ()) if "String" in part]
                if not words:
                    [(kind, body)] = body["arg"].items()
                    continue
                name, strength = words[-1], 2
            elif kind == "FuncCall":
                name, strength = body["funcname"][-1]["String"].get("sval", ""), 2
            elif kind == "A_Expr":
                if body["kind"] == "AEXPR_NULLIF":
                    name, strength = "nullif", 2
            elif kind == "TypeCast":
                if fallback is None:
                    fallback = body["typeName"]["names"][-1]["String"].get("sval", "")
                [(kind, body)] = body["arg"].items()
                continue
            elif kind == "CollateClause":
                [(kind, body)] = body["arg"].items()
                continue
            elif kind == "CaseExpr":
                fallback = fallback or "case"
                if "defresult" in body:
                    [(kind, body)] = body["defresult"].items()
                    continue
            elif kind == "SubLink":
                name, strength = self._of_sublink(body)
            elif kind == "MinMaxExpr":
                name, strength = ("greatest" if body.get("op", "IS_GREATEST") == "IS_GREATEST" else "least"), 2
            elif kind == "SQLValueFunction":
                name, strength = _SQL_VALUES.get(body.get("op", ""), NO_NAME), 2
            elif kind == "XmlExpr":
                if body.get("op") in _XML:
                    name, strength = _XML[body["op"]], 2
            elif kind == "JsonFuncExpr":
                if body.get("op") in _JSON:
                    name, strength = _JSON[body["op"]], 2
            elif kind in _FIXED:
                name, strength = _FIXED[kind], 2
            if strength == 0 and fallback is not None:
                return fallback, 1
            return name, strength

    def _of_sublink(self, body: Node) -> tuple[str | None, int]:
        kind = body.get("subLinkType")
        if kind == "EXISTS_SUBLINK":
            return "exists", 2
        if kind == "ARRAY_SUBLINK":
            return "array", 2
        if kind == "EXPR_SUBLINK":
            query = self._queries.get(id(next(iter(body["subselect"].values()))))
            columns = self._of_query(query) if query is not None else UNKNOWN
            first = columns[0] if columns else None
            return (first, 2) if type(first) is str else (None, 2)
        return NO_NAME, 0


def _is_star(node: Node) -> bool:
    if "ColumnRef" in node:
        return "A_Star" in node["ColumnRef"]["fields"][-1]
    if "A_Indirection" in node:
        return "A_Star" in node["A_Indirection"]["indirection"][-1]
    return False


def _rename(columns: OutputNames, aliases: tuple[str, ...]) -> OutputNames:
    """A column alias list renames the first columns."""
    if all(type(column) is str for column in columns[: len(aliases)]):
        return (*aliases, *columns[len(aliases) :])
    return (*aliases, Star())  # which of a relation's columns are left under their own names, only the catalog knows
