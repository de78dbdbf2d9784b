"""SELECT for lineage: its clauses in the order in which PostgreSQL looks at them, WITH, set operations, targets (decision 10)."""

from collections.abc import Callable, Iterable
from typing import Final

from gatewayd.catalog import Relation
from gatewayd.sql.facts.outputs import MAX_COLUMNS, Outputs
from gatewayd.sql.facts.scope import Cte, QueryLevel, Scope
from gatewayd.sql.facts.selects import words
from gatewayd.sql.facts.walk import Walk
from gatewayd.sql.lineage.from_items import FromItems
from gatewayd.sql.lineage.names import Columns, described
from gatewayd.sql.lineage.origins import ColumnSource, Entangled, Influenced, MarkedColumns, Plain, TracedColumn
from gatewayd.sql.lineage.places import NOT_NAMED, TracedColumns
from gatewayd.sql.text.parse import Node

_TEXTS: Final = frozenset({"text", "character varying"})


class _With:
    """What is known of the columns of one WITH query."""

    __slots__ = ("columns", "first_arm")

    def __init__(self) -> None:
        self.columns: TracedColumns | None = None
        self.first_arm: TracedColumns | None = None  # of a recursive query, while its second one is worked out


class Queries(FromItems):
    """Works out the columns of a statement's queries over one set of marks. `walk` is the walk over it; `modify` works out
    INSERT, UPDATE, DELETE and MERGE."""

    def __init__(
        self,
        marks: MarkedColumns,
        walk: Walk,
        modify: "Callable[[Queries, QueryLevel], TracedColumns]",
        views: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(marks, views)
        self._walk = walk
        self._outputs = Outputs(walk)
        self._modify = modify
        self._withs: dict[int, _With] = {}  # by id() of the Cte

    def inside(self, view: Relation, definition: Walk) -> "Queries":
        return Queries(self.marks, definition, self._modify, self.views | {view.oid})

    def query(self, body: Node, recursive: Cte | None = None) -> TracedColumns:
        """The columns of a SELECT, or of the RETURNING of a change. `recursive`: the WITH query that it is."""
        query = self._walk.queries.get(id(body))
        if query is None:
            raise Entangled(f"a query that the walk does not know: {NOT_NAMED}")
        for _, cte in query.withs.by_name.values() if query.withs is not None else ():
            self.of_with(cte)  # also one that nobody reads: a change in it runs all the same
        return self._select(query, recursive) if query.kind == "SelectStmt" else self._modify(self, query)

    def _select(self, query: QueryLevel, recursive: Cte | None) -> TracedColumns:
        body, scope = query.body, query.scope
        if query.arms:
            columns = self._set_operation(query, recursive)
            for node in body.get("sortClause", ()):
                self.by_output(node["SortBy"]["node"], columns, scope, "ORDER BY")
        elif query.values is not None:
            self.free([body["valuesLists"], body.get("sortClause", [])], scope, "VALUES")
            columns = tuple(TracedColumn(f"column{number}") for number in range(1, len(query.values) + 1))
        else:
            for item in query.parts:
                self.item(item)
            columns = self._of_level(query)
        self.free([body.get("limitOffset"), body.get("limitCount")], scope, "LIMIT and OFFSET")
        return columns

    def _of_level(self, query: QueryLevel) -> TracedColumns:
        body, scope = query.body, query.scope
        self.free(body.get("whereClause"), scope, "WHERE")
        self.free(body.get("havingClause"), scope, "HAVING")
        self.free(body.get("windowClause"), scope, "WINDOW")
        columns = self.targets(query.targets, query)
        for node in body.get("groupClause", ()):
            self.group(node, columns, scope)
        distinct = body.get("distinctClause")
        if distinct is not None:
            if distinct == [{}]:
                self.compared(columns, "SELECT DISTINCT")
            else:
                for node in distinct:
                    self.by_output(node, columns, scope, "DISTINCT ON")
        for node in body.get("sortClause", ()):
            self.by_output(node["SortBy"]["node"], columns, scope, "ORDER BY")
        return columns

    def of_with(self, cte: Cte) -> TracedColumns:
        known = self._withs.get(id(cte))
        if known is None:
            known = self._withs[id(cte)] = _With()
            known.columns = self._with_columns(cte, self.query(cte.body, cte))
        elif known.columns is None:
            if known.first_arm is None:
                raise Entangled("a recursive WITH query has a form whose columns cannot be told")
            return known.first_arm
        return known.columns

    def _with_columns(self, cte: Cte, columns: TracedColumns) -> TracedColumns:
        """Under the alias list, with what SEARCH and CYCLE add, which compare the columns that they name."""
        renamed = Columns(columns).renamed(cte.aliases)
        search, cycle = cte.written.get("search_clause"), cte.written.get("cycle_clause")
        if search is not None:
            self.named(words(search.get("search_col_list")), renamed, "SEARCH")
        if cycle is not None:
            self.named(words(cycle.get("cycle_col_list")), renamed, "CYCLE")
            self.free([cycle.get("cycle_mark_value"), cycle.get("cycle_mark_default")], cte.scope, "CYCLE")
        return (*renamed.all, *map(TracedColumn, cte.extra))

    def _set_operation(self, query: QueryLevel, recursive: Cte | None) -> TracedColumns:
        body, kind = query.body, query.body["op"]
        left_arm, right_arm = query.arms
        left = self.query(left_arm)
        if recursive is not None:
            self._withs[id(recursive)].first_arm = self._with_columns(recursive, left)
        right = self.query(right_arm)
        if kind != "SETOP_UNION" or not body.get("all"):
            name = {"SETOP_UNION": "UNION without ALL", "SETOP_INTERSECT": "INTERSECT"}.get(kind, "EXCEPT")
            self.compared((*left, *right), name)
        if len(left) != len(right) or any(column.many for column in (*left, *right)):
            if any(column.source is not None for column in (*left, *right)):
                raise Entangled("the arms of a set operation have columns that cannot be told; name the columns")
            return left
        return tuple(TracedColumn(one.name, _agreed(one, other)) for one, other in zip(left, right, strict=True))

    def targets(self, nodes: Iterable[Node], query: QueryLevel) -> TracedColumns:
        """The columns of a select list or RETURNING list."""
        found: list[TracedColumn] = []
        for node in nodes:
            target = node["ResTarget"]
            value = target["val"]
            if "ColumnRef" in value and "A_Star" in value["ColumnRef"]["fields"][-1]:
                found += self._star(value["ColumnRef"], query)
                if len(found) > MAX_COLUMNS:
                    break
                continue
            try:
                column = self._target(value, query.scope)
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

    def _star(self, body: Node, query: QueryLevel) -> TracedColumns:
        qualifier = [word["String"].get("sval", "") for word in body["fields"][:-1]]
        if qualifier:
            return self.names.starred(qualifier, query.scope, body.get("location", -1))
        return tuple(column for item in query.parts for column in self.item(item).all)

    def _target(self, value: Node, scope: Scope) -> TracedColumn:
        [(kind, body)] = value.items()
        if kind == "ColumnRef":
            return self.names.resolve(body["fields"], scope, body.get("location", -1))
        if kind == "SubLink" and body.get("subLinkType") == "EXPR_SUBLINK":
            [inner] = body["subselect"].values()
            columns = self.query(inner)
            if len(columns) == 1:
                return columns[0]
            self.compared(columns, "a subquery")
            return TracedColumn("")
        if kind == "TypeCast" and "ColumnRef" in body["arg"] and _is_text(body["typeName"]):
            column = self._target(body["arg"], scope)
            if not isinstance(column.source, Plain) or column.source.type in _TEXTS:
                return column  # the value stays as it is
        elif kind == "A_Indirection" and "A_Star" in body["indirection"][-1]:
            self.free(value, scope, "an expression")
            return TracedColumn("", many=True)
        self.free(value, scope, "an expression of the select list")
        return TracedColumn(self._outputs.name(value) or "")


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
