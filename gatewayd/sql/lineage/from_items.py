"""FROM for lineage: what each of its items holds, and that its own expressions use no marked column (decision 10)."""

from abc import abstractmethod
from typing import Final

from gatewayd.sql.facts.scope import Cte, RangeItem, Scope
from gatewayd.sql.facts.walk import Use
from gatewayd.sql.lineage.function_columns import function_columns
from gatewayd.sql.lineage.names import Columns
from gatewayd.sql.lineage.origins import Entangled, MarkedColumns, TracedColumn
from gatewayd.sql.lineage.places import NOT_NAMED, TracedColumns
from gatewayd.sql.lineage.relation_columns import Relations
from gatewayd.sql.text.parse import Node

_SYSTEM_COLUMNLESS: Final = ("view", "composite type")


class FromItems(Relations):
    """Works out range items, each once."""

    def __init__(self, marks: MarkedColumns, views: frozenset[int]) -> None:
        super().__init__(marks, views)
        self._items: dict[int, Columns] = {}  # by id() of the item

    @abstractmethod
    def of_with(self, cte: Cte) -> TracedColumns:
        """The columns of a WITH query."""

    def item(self, of: RangeItem) -> Columns:
        known = self._items.get(id(of))
        if known is None:
            known = self._items[id(of)] = self._work_out_item(of)
            self.spend(len(known.all))
        return known

    def _work_out_item(self, of: RangeItem) -> Columns:
        kind, body = of.written or ("", {})
        scope = of.scope or Scope(None, None)
        if of.relation is not None:
            self.free([body.get("args"), body.get("repeatable")], scope, "TABLESAMPLE")
            columns = self._of_relation(of.relation, is_aliased=of.is_aliased)
        elif of.cte is not None:
            columns = Columns(self.of_with(of.cte))
        elif of.body is not None:
            columns = Columns(self.query(of.body))
        elif of.left is not None and of.right is not None:
            columns = self._of_join(of, of.left, of.right, body, scope)
        elif kind == "RangeFunction":
            self.free([body["functions"], body.get("coldeflist")], scope, "a function in FROM")
            columns = Columns(function_columns(body, scope, self.names, self.marks.catalog))
        elif of.kind == "known":
            self.free({**body, "alias": None}, scope, "a function in FROM")
            columns = Columns([*map(TracedColumn, of.known)])
        else:
            raise Entangled(f"a part of FROM: {NOT_NAMED}")
        return columns.renamed(of.aliases)

    def _of_relation(self, use: Use, *, is_aliased: bool) -> Columns:
        relation = self.marks.locate(use.schema, use.name)
        if relation is None:
            raise Entangled(
                f"relation {use.name} is not known here yet, so it cannot be told whether it shows masked columns; check its "
                "name, or retry in a few seconds if it was just created",
                use.position,
            )
        try:
            columns = self.columns(relation)
        except Entangled as entangled:
            raise Entangled(str(entangled), use.position) from None
        stored = relation.kind not in _SYSTEM_COLUMNLESS
        return Columns(columns, schema=None if is_aliased else relation.schema, stored=stored)

    def _of_join(self, of: RangeItem, left_item: RangeItem, right_item: RangeItem, body: Node, scope: Scope) -> Columns:
        left, right = self.item(left_item), self.item(right_item)
        merged = of.merged
        if of.natural:
            if (left.is_open and right.marked) or (right.is_open and left.marked):
                raise Entangled("it cannot be told which columns NATURAL JOIN compares; write JOIN … ON")
            right_names = {column.name for column in right.all}
            merged = tuple(column.name for column in left.all if not column.many and column.name in right_names)
        for side in (left, right):
            self.named(merged, side, "NATURAL JOIN" if of.natural else "JOIN … USING")
        self.spend(len(left.all) + len(right.all))
        both = set(merged)
        rest = [column for side in (left, right) for column in side.all if column.many or column.name not in both]
        self.free(body.get("quals"), scope, "JOIN … ON")
        return Columns([*map(TracedColumn, merged), *rest])
