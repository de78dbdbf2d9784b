"""The places where marked columns may not stand: predicates, groups, orders, comparisons, expressions (decision 10).

By construction a marked column is caught wherever it is named: expressions are searched whole, node types do not matter, and the
few places that name columns without a reference (`*`, USING, names and numbers of outputs) are written out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final

from gatewayd.sql.facts.scope import RangeItem, Scope
from gatewayd.sql.lineage.names import Columns, Names, described
from gatewayd.sql.lineage.origins import Entangled, MarkedColumns, Plain, TracedColumn
from gatewayd.sql.text.parse import Node

TracedColumns = tuple[TracedColumn, ...]

NOT_NAMED: Final = "a masked column may be among what is read here"
MAX_COLUMNS_SEEN: Final = 100_000
_REMEDY: Final = "under post-execution masking it can only be selected as a plain column: leave it out of {place}"
_GROUPED: Final = ", and group by the primary key: then the other columns of its table may be selected as they are"


class _Listed:
    """Output columns by name. Holds them, so that their identity is theirs alone."""

    __slots__ = ("by_name", "columns", "first_many")

    def __init__(self, columns: TracedColumns) -> None:
        self.columns = columns
        self.first_many = next((index for index, column in enumerate(columns) if column.many), len(columns))
        self.by_name: dict[str, list[TracedColumn]] = {}
        for column in columns:
            if not column.many:
                self.by_name.setdefault(column.name, []).append(column)


class Places(ABC):
    """Holds every place of a statement to its marks. Queries below a place are worked out by the class that knows queries."""

    def __init__(self, marks: MarkedColumns) -> None:
        self.marks = marks
        self.names = Names(self.item, self.spend)
        self._columns_seen = 0
        self._listed: dict[int, _Listed] = {}

    def spend(self, columns: int) -> None:
        """Count the columns of a query or range item: stars over stars would build them again and again. Raises Entangled."""
        self._columns_seen += columns
        if self._columns_seen > MAX_COLUMNS_SEEN:
            raise Entangled(
                f"the tables, joins and subqueries here have more than {MAX_COLUMNS_SEEN} columns together, too many to tell "
                "where each comes from; name the columns you need instead of `*`, or send it in several smaller statements"
            )

    @abstractmethod
    def item(self, of: RangeItem) -> Columns:
        """What a range item holds."""

    @abstractmethod
    def query(self, body: Node) -> TracedColumns:
        """The columns of a SELECT, or of the RETURNING of a change."""

    def free(self, value: object, scope: Scope, place: str) -> None:
        """Raises Entangled when anything below `value` names a marked column, or a query below shows one."""
        pending: list[object] = [value]
        while pending:
            part = pending.pop()
            if isinstance(part, list):
                pending += reversed(part)
                continue
            if not isinstance(part, dict):
                continue
            for kind, body in part.items():
                match kind:
                    case "ColumnRef":
                        self._reference(body, scope, place)
                    case "SubLink":
                        pending.append(body.get("testexpr"))
                        [inner] = body["subselect"].values()
                        columns = self.query(inner)
                        if body.get("subLinkType") != "EXISTS_SUBLINK":
                            self.compared(columns, place)
                    case "SelectStmt" | "InsertStmt" | "UpdateStmt" | "DeleteStmt" | "MergeStmt":
                        self.compared(self.query(body), place)
                    case "RangeVar":
                        raise Entangled(f"a relation in {place}: {NOT_NAMED}", body.get("location", -1))
                    case "FuncCall" if self._counts(body, scope):
                        pending.append([body.get("agg_filter"), body.get("over")])
                    case "NullTest" if self._keeps_null(body["arg"], scope):
                        pass
                    case "MultiAssignRef" if body.get("colno", 1) != 1:
                        pass  # the parser repeats the source for each column
                    case _:
                        pending.append(body)

    def _reference(self, body: Node, scope: Scope, place: str) -> None:
        fields, position = body["fields"], body.get("location", -1)
        columns: Iterable[TracedColumn]
        if "A_Star" not in fields[-1]:
            columns = (self.names.resolve(fields, scope, position),)
        elif len(fields) > 1:
            columns = self.names.starred([word["String"].get("sval", "") for word in fields[:-1]], scope, position)
        else:
            columns = (column for item in scope.visible() for column in self.item(item).all)
        self.compared(columns, place, position)

    def compared(self, columns: Iterable[TracedColumn], place: str, position: int = -1) -> None:
        """Columns that are compared, computed with, or copied: none of them may be marked."""
        for column in columns:
            if column.source is not None:
                also = _GROUPED if place == "GROUP BY" else ""
                raise Entangled(f"{described(column)} is used in {place}; {_REMEDY.format(place=place)}{also}", position)

    def named(self, names: Iterable[str], columns: Columns, place: str) -> None:
        for name in names:
            self.compared(columns.find(name), place)

    def _counts(self, body: Node, scope: Scope) -> bool:
        """count(column) of a marked column whose NULLs are shown anyway."""
        names = [name["String"].get("sval", "") for name in body["funcname"]]
        if names not in (["count"], ["pg_catalog", "count"]) or self.marks.catalog.functions_by_name.get("count"):
            return False
        arguments = body.get("args", ())
        plain = not body.get("agg_distinct") and "agg_order" not in body and not body.get("func_variadic")
        return len(arguments) == 1 and plain and self._keeps_null(arguments[0], scope)

    def _keeps_null(self, node: Node, scope: Scope) -> bool:
        body = node.get("ColumnRef")
        if body is None or "A_Star" in body["fields"][-1]:
            return False
        source = self.names.resolve(body["fields"], scope, body.get("location", -1)).source
        return isinstance(source, Plain) and source.mark.keeps_null

    def group(self, node: Node, columns: TracedColumns, scope: Scope) -> None:
        """GROUP BY takes a bare name for an input column first, then for an output. A row without the word ROW stands for its
        members, also within GROUPING SETS, ROLLUP and CUBE (flatten_grouping_sets)."""
        if "GroupingSet" in node:
            for inner in node["GroupingSet"].get("content", ()):
                self.group(inner, columns, scope)
            return
        if node.get("RowExpr", {}).get("row_format") == "COERCE_IMPLICIT_CAST":
            for inner in node["RowExpr"].get("args", ()):
                self.group(inner, columns, scope)
            return
        fields = node.get("ColumnRef", {}).get("fields", ())
        if len(fields) == 1 and "String" in fields[0]:
            name = fields[0]["String"].get("sval", "")
            if self.names.holding(name, scope):
                self.free(node, scope, "GROUP BY")
                return
        self.by_output(node, columns, scope, "GROUP BY")

    def by_output(self, node: Node, columns: TracedColumns, scope: Scope, place: str) -> None:
        """ORDER BY and the like take a bare name for an output column first, and a number for its place."""
        [(kind, body)] = node.items()
        listed = self._listed.get(id(columns))
        if listed is None:
            listed = self._listed[id(columns)] = _Listed(columns)
        if kind == "A_Const" and "ival" in body:
            number = body["ival"].get("ival", 0)
            if listed.first_many < number:
                self.compared(columns, place)
            self.compared(columns[number - 1 : number] if number > 0 else (), place, body.get("location", -1))
            return
        fields: Sequence[Node] = body["fields"] if kind == "ColumnRef" else ()
        if len(fields) == 1 and "String" in fields[0]:
            name = fields[0]["String"].get("sval", "")
            hits = listed.by_name.get(name)
            if hits:
                self.compared(hits, place, body.get("location", -1))
                return
        self.free(node, scope, place)
