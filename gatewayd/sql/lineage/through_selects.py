"""SELECT for lineage: its clauses in the order in which PostgreSQL looks at them, WITH, set operations, targets (decision 10)."""

from collections.abc import Callable, Iterable
from typing import Final

from gatewayd.catalog import Relation
from gatewayd.sql.facts.outputs import MAX_COLUMNS, Outputs
from gatewayd.sql.facts.selects import words
from gatewayd.sql.facts.walk import Walk
from gatewayd.sql.lineage.from_items import FromItems
from gatewayd.sql.lineage.names import Item, NameLevel, described, resolve, starred
from gatewayd.sql.lineage.origins import ColumnSource, Entangled, Influenced, MarkedColumns, Plain, TracedColumn
from gatewayd.sql.lineage.places import TracedColumns
from gatewayd.sql.lineage.with_queries import With, Withs, opened
from gatewayd.sql.text.parse import Node

_NAMES: Final = Outputs(Walk({}))  # of expressions; a subquery's name is found here, not there
_TEXTS: Final = frozenset({"text", "character varying"})


class Queries(FromItems):
    """Works out the columns of queries over one set of marks. `modify` does so for INSERT, UPDATE, DELETE and MERGE."""

    def __init__(
        self,
        marks: MarkedColumns,
        modify: "Callable[[Queries, str, Node, NameLevel | None, Withs | None], TracedColumns]",
        views: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(marks, views)
        self._modify = modify

    def inside(self, view: Relation) -> "Queries":
        return Queries(self.marks, self._modify, self.views | {view.oid})

    def query(self, kind: str, body: Node, outer: NameLevel | None, withs: Withs | None) -> TracedColumns:
        """The columns of a SELECT, or of the RETURNING of a change."""
        return self.select(body, outer, withs) if kind == "SelectStmt" else self._modify(self, kind, body, outer, withs)

    def select(self, body: Node, outer: NameLevel | None, withs: Withs | None, recursive: With | None = None) -> TracedColumns:
        if "withClause" in body:
            withs = self.open_with(body["withClause"], outer, withs)
        if body.get("op", "SETOP_NONE") != "SETOP_NONE":
            level = NameLevel(outer)
            columns = self._set_operation(body, outer, withs, recursive)
            for node in body.get("sortClause", ()):
                self.by_output(node["SortBy"]["node"], columns, level, withs, "ORDER BY")
        elif "valuesLists" in body:
            level = NameLevel(outer)
            self.free([body["valuesLists"], body.get("sortClause", [])], level, withs, "VALUES")
            count = len(body["valuesLists"][0]["List"].get("items", ()))
            columns = tuple(TracedColumn(f"column{number}") for number in range(1, count + 1))
        else:
            level = NameLevel(outer)
            for node in body.get("fromClause", ()):
                level.add(*self.from_item(node, level, level.so_far(), withs))
            columns = self._of_level(body, level, withs)
        self.free([body.get("limitOffset"), body.get("limitCount")], level, withs, "LIMIT and OFFSET")
        return columns

    def _of_level(self, body: Node, level: NameLevel, withs: Withs | None) -> TracedColumns:
        self.free(body.get("whereClause"), level, withs, "WHERE")
        self.free(body.get("havingClause"), level, withs, "HAVING")
        self.free(body.get("windowClause"), level, withs, "WINDOW")
        columns = self.targets(body.get("targetList", ()), level, withs)
        for node in body.get("groupClause", ()):
            self.group(node, columns, level, withs)
        distinct = body.get("distinctClause")
        if distinct is not None:
            if distinct == [{}]:
                self.compared(columns, "SELECT DISTINCT")
            else:
                for node in distinct:
                    self.by_output(node, columns, level, withs, "DISTINCT ON")
        for node in body.get("sortClause", ()):
            self.by_output(node["SortBy"]["node"], columns, level, withs, "ORDER BY")
        return columns

    def open_with(self, clause: Node, outer: NameLevel | None, outside: Withs | None) -> Withs:
        """Every WITH query is looked at, also one that nobody reads: a change in it runs all the same."""
        withs = opened(clause, outer, outside)
        for _, each in withs.by_name.values():
            self.of_with(each)
        return withs

    def of_with(self, each: With) -> TracedColumns:
        if each.columns is not None:
            return each.columns
        if each.is_open:
            if each.first_arm is None:
                raise Entangled("a recursive WITH query has a form whose columns cannot be told")
            return each.first_arm
        each.is_open = True
        if each.kind == "SelectStmt":
            columns = self.select(each.body, each.level, each.sees, each)
        else:
            columns = self.query(each.kind, each.body, each.level, each.sees)
        each.columns = self._with_columns(each, columns)
        return each.columns

    def _with_columns(self, each: With, columns: TracedColumns) -> TracedColumns:
        """Under the alias list, with what SEARCH and CYCLE add, which compare the columns that they name."""
        renamed = Item(None, columns).renamed(each.names)
        extra: list[str] = []
        search, cycle = each.wrapped.get("search_clause"), each.wrapped.get("cycle_clause")
        if search is not None:
            self.named(words(search.get("search_col_list")), renamed, "SEARCH")
            extra.append(search.get("search_seq_column", ""))
        if cycle is not None:
            self.named(words(cycle.get("cycle_col_list")), renamed, "CYCLE")
            self.free([cycle.get("cycle_mark_value"), cycle.get("cycle_mark_default")], each.level, each.sees, "CYCLE")
            extra += [cycle.get("cycle_mark_column", ""), cycle.get("cycle_path_column", "")]
        return (*renamed.columns, *map(TracedColumn, extra))

    def _set_operation(self, body: Node, outer: NameLevel | None, withs: Withs | None, recursive: With | None) -> TracedColumns:
        kind = body["op"]
        left = self.select(body["larg"], outer, withs)
        if recursive is not None:
            recursive.first_arm = self._with_columns(recursive, left)
        right = self.select(body["rarg"], outer, withs)
        if kind != "SETOP_UNION" or not body.get("all"):
            name = {"SETOP_UNION": "UNION without ALL", "SETOP_INTERSECT": "INTERSECT"}.get(kind, "EXCEPT")
            self.compared((*left, *right), name)
        if len(left) != len(right) or any(column.many for column in (*left, *right)):
            if any(column.source is not None for column in (*left, *right)):
                raise Entangled("the arms of a set operation have columns that cannot be told; name the columns")
            return left
        return tuple(TracedColumn(one.name, _agreed(one, other)) for one, other in zip(left, right, strict=True))

    def targets(self, nodes: Iterable[Node], level: NameLevel, withs: Withs | None) -> TracedColumns:
        """The columns of a select list or RETURNING list."""
        found: list[TracedColumn] = []
        for node in nodes:
            target = node["ResTarget"]
            value = target["val"]
            if "ColumnRef" in value and "A_Star" in value["ColumnRef"]["fields"][-1]:
                qualifier = [word["String"].get("sval", "") for word in value["ColumnRef"]["fields"][:-1]]
                found += starred(qualifier, level, value["ColumnRef"].get("location", -1))
                if len(found) > MAX_COLUMNS:
                    break
                continue
            try:
                column = self._target(value, level, withs)
            except Entangled:
                if not self.views:
                    raise
                column = TracedColumn("", Influenced("is made of masked columns"))
            found.append(TracedColumn(target["name"], column.source, type=column.type) if "name" in target else column)
            if len(found) > MAX_COLUMNS:
                break
        if len(found) > MAX_COLUMNS:
            raise Entangled(f"a query here has more than {MAX_COLUMNS} columns")
        self.spend(len(found))
        return tuple(found)

    def _target(self, value: Node, level: NameLevel, withs: Withs | None) -> TracedColumn:
        [(kind, body)] = value.items()
        if kind == "ColumnRef":
            return resolve(body["fields"], level, body.get("location", -1))
        if kind == "SubLink" and body.get("subLinkType") == "EXPR_SUBLINK":
            [(inner_kind, inner)] = body["subselect"].items()
            columns = self.query(inner_kind, inner, level, withs)
            if len(columns) == 1:
                return columns[0]
            self.compared(columns, "a subquery")
            return TracedColumn("")
        if kind == "TypeCast" and "ColumnRef" in body["arg"] and _is_text(body["typeName"]):
            column = self._target(body["arg"], level, withs)
            if not isinstance(column.source, Plain) or column.source.type in _TEXTS:
                return column  # the value stays as it is
        elif kind == "A_Indirection" and "A_Star" in body["indirection"][-1]:
            self.free(value, level, withs, "an expression")
            return TracedColumn("", many=True)
        self.free(value, level, withs, "an expression of the select list")
        return TracedColumn(_NAMES.name(value) or "")


def _agreed(one: TracedColumn, other: TracedColumn) -> ColumnSource:
    """What two arms of UNION ALL have in common."""
    left, right = one.source, other.source
    if left is None and right is None:
        return None
    if isinstance(left, Plain) and isinstance(right, Plain) and (left.mark, left.type) == (right.mark, right.type):
        return Plain(tuple(dict.fromkeys((*left.columns, *right.columns))), left.type, left.mark)
    marked = one if left is not None else other
    raise Entangled(
        f"{described(marked)} meets another column in UNION ALL, and one mask must hold for both; select it in every arm or none"
    )


def _is_text(type_name: Node) -> bool:
    names = [name["String"].get("sval", "") for name in type_name.get("names", ())]
    return names in (["text"], ["pg_catalog", "text"]) and "arrayBounds" not in type_name and not type_name.get("setof")
