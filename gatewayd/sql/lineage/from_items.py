"""FROM for lineage: what each of its items gives to `*`, to bare names and to qualified ones (decision 10)."""

from abc import abstractmethod
from typing import Final

from gatewayd.sql.facts.selects import json_table_names, words
from gatewayd.sql.lineage.function_columns import function_item
from gatewayd.sql.lineage.names import Item, NameLevel
from gatewayd.sql.lineage.origins import Entangled, TracedColumn
from gatewayd.sql.lineage.places import NOT_NAMED, TracedColumns
from gatewayd.sql.lineage.relation_columns import Relations
from gatewayd.sql.lineage.with_queries import With, Withs
from gatewayd.sql.text.parse import Node

_SYSTEM_COLUMNLESS: Final = ("view", "composite type")


class FromItems(Relations):
    """Works out range items."""

    @abstractmethod
    def of_with(self, each: With) -> TracedColumns:
        """The columns of a WITH query."""

    def from_item(self, node: Node, level: NameLevel, left: NameLevel, withs: Withs | None) -> tuple[Item, list[Item]]:
        """One item of a FROM tree: what `*` and bare names take from it, and the items that qualified names see."""
        [(kind, body)] = node.items()
        item: Item
        match kind:
            case "RangeVar":
                item = self._range_var(body, withs)
            case "JoinExpr":
                return self._join(body, level, left, withs)
            case "RangeSubselect":
                [(inner_kind, inner)] = body["subquery"].items()
                outer = left if body.get("lateral") else level.outer
                item = _aliased(Item(None, self.query(inner_kind, inner, outer, withs)), body)
            case "RangeFunction":
                self.free([body["functions"], body.get("coldeflist")], left, withs, "a function in FROM")
                item = function_item(body, left, self.marks.catalog)
            case "RangeTableFunc" | "JsonTable":
                self.free({**body, "alias": None}, left, withs, "a function in FROM")
                columns = body.get("columns", ())
                if kind == "JsonTable":
                    names = json_table_names(columns)
                else:
                    names = [column["RangeTableFuncCol"].get("colname", "") for column in columns]
                item = _aliased(Item("json_table" if kind == "JsonTable" else "xmltable", [*map(TracedColumn, names)]), body)
            case "RangeTableSample":
                part, named = self.from_item(body["relation"], level, left, withs)
                self.free([body.get("args"), body.get("repeatable")], left, withs, "TABLESAMPLE")
                return part, named
            case _:
                raise Entangled(f"{kind} in FROM: {NOT_NAMED}")
        self.spend(len(item.columns))
        return item, [item]

    def _range_var(self, body: Node, withs: Withs | None) -> Item:
        name, schema = body.get("relname", ""), body.get("schemaname")
        if schema is None and withs is not None:
            each = withs.find(name)
            if each is not None:
                return _aliased(Item(name, self.of_with(each)), body)
        return self.relation_item(body)

    def relation_item(self, body: Node) -> Item:
        name, position = body.get("relname", ""), body.get("location", -1)
        relation = self.marks.locate(body.get("schemaname"), name)
        if relation is None:
            raise Entangled(
                f"relation {name} is not known here yet, so it cannot be told whether it shows masked columns; check its name, "
                "or retry in a few seconds if it was just created",
                position,
            )
        try:
            columns = self.columns(relation)
        except Entangled as entangled:
            raise Entangled(str(entangled), position) from None
        stored = relation.kind not in _SYSTEM_COLUMNLESS
        return _aliased(Item(name, columns, schema=None if "alias" in body else relation.schema, stored=stored), body)

    def _join(self, body: Node, level: NameLevel, left: NameLevel, withs: Withs | None) -> tuple[Item, list[Item]]:
        left_part, left_named = self.from_item(body["larg"], level, left, withs)
        right_part, right_named = self.from_item(body["rarg"], level, NameLevel(left, [left_part], left_named), withs)
        merged = words(body.get("usingClause"))
        if body.get("isNatural"):
            if (left_part.is_open and right_part.marked) or (right_part.is_open and left_part.marked):
                raise Entangled("it cannot be told which columns NATURAL JOIN compares; write JOIN … ON")
            right_names = {column.name for column in right_part.columns}
            merged = tuple(column.name for column in left_part.columns if not column.many and column.name in right_names)
        for side in (left_part, right_part):
            self.named(merged, side, "NATURAL JOIN" if body.get("isNatural") else "JOIN … USING")
        self.spend(len(left_part.columns) + len(right_part.columns))
        both = set(merged)
        rest = [column for side in (left_part, right_part) for column in side.columns if column.many or column.name not in both]
        part = _aliased(Item(None, [*map(TracedColumn, merged), *rest]), body)
        named = [*left_named, *right_named]
        if "join_using_alias" in body:
            named.append(Item(body["join_using_alias"]["aliasname"], [*map(TracedColumn, merged)]))
        self.free(body.get("quals"), NameLevel(level.outer, [left_part, right_part], named), withs, "JOIN … ON")
        return part, ([part] if part.name is not None else named)


def _aliased(item: Item, body: Node) -> Item:
    alias = body.get("alias")
    if alias is None:
        return item
    named = Item(alias["aliasname"], item.columns, stored=item.stored)
    return named.renamed(words(alias.get("colnames")))
