"""SELECT for lineage: FROM, targets, and every clause that may not touch a marked column (contract 10).

By construction a marked column is caught wherever it is named: expressions are searched whole, node types do not matter, and the
few places that name columns without a reference (`*`, USING, NATURAL, whole rows, names and numbers of outputs) are written here.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from gatewayd.catalog import Relation
from gatewayd.sql.lineage import STATISTICS, Column, Entangled, Influenced, Marks, Plain, Source
from gatewayd.sql.lineage_names import Item, Level, described, resolve, starred
from gatewayd.sql.lineage_with import With, Withs, opened
from gatewayd.sql.outputs import MAX_COLUMNS, Outputs
from gatewayd.sql.parse import Node, NotParsed, parse
from gatewayd.sql.queries import json_table_names, words
from gatewayd.sql.walk import Walk

JOINED_COLUMNS: Final = 10_000
"""Of one join: their lists are built join by join."""

Columns = tuple[Column, ...]
Modify = Callable[[str, Node, "Level | None", "Withs | None"], Columns]

_ONE_COLUMN = frozenset({"generate_series", "generate_subscripts", "regexp_split_to_table", "string_to_table", "unnest"})
_NAMES = Outputs(Walk({}))  # of expressions; a subquery's name is found here, not there
_TEXTS = frozenset({"text", "character varying"})
_REMEDY = "under post-execution masking it can only be selected as a plain column: leave it out of {place}"
_GROUPED = ", and group by the primary key: then the other columns of its table may be selected as they are"
_NOT_NAMED = "a masked column may be among what is read here"


class Queries:
    """Works out the columns of queries over one set of marks. `modify` does so for INSERT, UPDATE, DELETE and MERGE."""

    def __init__(
        self,
        marks: Marks,
        modify: "Callable[[Queries, str, Node, Level | None, Withs | None], Columns]",
        views: frozenset[int] = frozenset(),
    ) -> None:
        self.marks = marks
        self._modify = modify
        self._views = views  # oids of the views around: what is looked at is the innermost one's query
        self._of_view = bool(views)

    # --- queries

    def query(self, kind: str, body: Node, outer: Level | None, withs: Withs | None) -> Columns:
        """The columns of a SELECT, or of the RETURNING of a change."""
        return self.select(body, outer, withs) if kind == "SelectStmt" else self._modify(self, kind, body, outer, withs)

    def select(self, body: Node, outer: Level | None, withs: Withs | None, recursive: With | None = None) -> Columns:
        if "withClause" in body:
            withs = self.open_with(body["withClause"], outer, withs)
        if body.get("op", "SETOP_NONE") != "SETOP_NONE":
            level = Level(outer)
            columns = self._set_operation(body, outer, withs, recursive)
            for node in body.get("sortClause", ()):
                self._by_output(node["SortBy"]["node"], columns, level, withs, "ORDER BY")
        elif "valuesLists" in body:
            level = Level(outer)
            self.free([body["valuesLists"], body.get("sortClause", [])], level, withs, "VALUES")
            count = len(body["valuesLists"][0]["List"].get("items", ()))
            columns = tuple(Column(f"column{number}") for number in range(1, count + 1))
        else:
            level = Level(outer)
            for node in body.get("fromClause", ()):
                level.add(*self.from_item(node, level, level.so_far(), withs))
            columns = self._of_level(body, level, withs)
        self.free([body.get("limitOffset"), body.get("limitCount")], level, withs, "LIMIT and OFFSET")
        return columns

    def _of_level(self, body: Node, level: Level, withs: Withs | None) -> Columns:
        self.free(body.get("whereClause"), level, withs, "WHERE")
        self.free(body.get("havingClause"), level, withs, "HAVING")
        self.free(body.get("windowClause"), level, withs, "WINDOW")
        columns = self.targets(body.get("targetList", ()), level, withs)
        for node in body.get("groupClause", ()):
            self._group(node, columns, level, withs)
        distinct = body.get("distinctClause")
        if distinct is not None:
            if distinct == [{}]:
                self.compared(columns, "SELECT DISTINCT")
            else:
                for node in distinct:
                    self._by_output(node, columns, level, withs, "DISTINCT ON")
        for node in body.get("sortClause", ()):
            self._by_output(node["SortBy"]["node"], columns, level, withs, "ORDER BY")
        return columns

    def open_with(self, clause: Node, outer: Level | None, outside: Withs | None) -> Withs:
        """Every WITH query is looked at, also one that nobody reads: a change in it runs all the same."""
        withs = opened(clause, outer, outside)
        for _, each in withs.by_name.values():
            self.of_with(each)
        return withs

    def of_with(self, each: With) -> Columns:
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

    def _with_columns(self, each: With, columns: Columns) -> Columns:
        """Under the alias list, with what SEARCH and CYCLE add, which compare the columns that they name."""
        renamed = Item(None, columns).renamed(each.names)
        extra: list[str] = []
        search, cycle = each.wrapped.get("search_clause"), each.wrapped.get("cycle_clause")
        if search is not None:
            self._named(words(search.get("search_col_list")), renamed, "SEARCH")
            extra.append(search.get("search_seq_column", ""))
        if cycle is not None:
            self._named(words(cycle.get("cycle_col_list")), renamed, "CYCLE")
            self.free([cycle.get("cycle_mark_value"), cycle.get("cycle_mark_default")], each.level, each.sees, "CYCLE")
            extra += [cycle.get("cycle_mark_column", ""), cycle.get("cycle_path_column", "")]
        return (*renamed.columns, *map(Column, extra))

    def _named(self, names: Iterable[str], item: Item, place: str) -> None:
        for name in names:
            self.compared(item.find(name), place)

    def _set_operation(self, body: Node, outer: Level | None, withs: Withs | None, recursive: With | None) -> Columns:
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
        return tuple(Column(one.name, _agreed(one, other)) for one, other in zip(left, right, strict=True))

    # --- FROM

    def from_item(self, node: Node, level: Level, left: Level, withs: Withs | None) -> tuple[Item, list[Item]]:
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
                item = _function(body)
            case "RangeTableFunc" | "JsonTable":
                self.free({**body, "alias": None}, left, withs, "a function in FROM")
                columns = body.get("columns", ())
                if kind == "JsonTable":
                    names = json_table_names(columns)
                else:
                    names = [column["RangeTableFuncCol"].get("colname", "") for column in columns]
                item = _aliased(Item("json_table" if kind == "JsonTable" else "xmltable", [*map(Column, names)]), body)
            case "RangeTableSample":
                part, named = self.from_item(body["relation"], level, left, withs)
                self.free([body.get("args"), body.get("repeatable")], left, withs, "TABLESAMPLE")
                return part, named
            case _:
                raise Entangled(f"{kind} in FROM: {_NOT_NAMED}")
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
        return _aliased(Item(name, columns, schema=None if "alias" in body else relation.schema), body)

    def columns(self, relation: Relation) -> Columns:
        """A relation's columns. Raises Entangled for a view whose query uses marked columns other than plainly."""
        known = self.marks.columns.get(relation.oid)
        if known is None:
            try:
                known = self._work_out(relation)
            except Entangled as entangled:
                known = entangled
            self.marks.columns[relation.oid] = known
        if isinstance(known, Entangled):
            raise known
        return known

    def _work_out(self, relation: Relation) -> Columns:
        if not self.marks.reach(relation):
            return tuple(Column(column.name) for column in relation.columns)
        if relation.schema == "pg_catalog" and relation.name in STATISTICS:
            raise Entangled(f"pg_catalog.{relation.name} shows values of other tables' columns, masked ones among them")
        own = self.marks.of(relation)
        below: Sequence[Source] = [None] * len(relation.columns)
        if relation.kind in ("view", "materialized view"):
            below = self._definition(relation)
        found = []
        for column, source in zip(relation.columns, below, strict=True):
            mark = own.get(column.name)
            if mark is not None:
                names: tuple[str, ...] = (f"{relation.qualified}.{column.name}",)
                if isinstance(source, Plain):
                    mark, names = self.marks.both(source.mark, mark), (*source.columns, *names)
                source = Plain(names, column.type, mark)
            found.append(Column(column.name, source))
        return tuple(found)

    def _definition(self, relation: Relation) -> list[Source]:
        """What the query of a view gives. Its columns that are made of marked ones stay as such: others may be asked for."""
        if relation.oid in self._views:  # cannot be made; should the catalog show one, it is refused
            raise Entangled(f"{relation.kind} {relation.qualified} reads itself")
        try:
            tree = parse(relation.definition)
        except NotParsed:
            raise Entangled(f"the query of view {relation.qualified} cannot be read, and it reaches masked columns") from None
        [(kind, body)] = tree.node.items()
        inside = Queries(self.marks, self._modify, self._views | {relation.oid})
        try:
            columns = inside.query(kind, body, None, None)
        except Entangled:  # what it says may be of tables that the agent must not know of
            raise Entangled(f"{relation.kind} {relation.qualified} uses masked columns in ways that cannot be masked") from None
        if len(columns) != len(relation.columns) or any(column.many for column in columns):
            raise Entangled(f"it cannot be told what the columns of view {relation.qualified} show")
        return [column.source for column in columns]

    def _join(self, body: Node, level: Level, left: Level, withs: Withs | None) -> tuple[Item, list[Item]]:
        left_part, left_named = self.from_item(body["larg"], level, left, withs)
        right_part, right_named = self.from_item(body["rarg"], level, Level(left, [left_part], left_named), withs)
        merged = words(body.get("usingClause"))
        if body.get("isNatural"):
            if (left_part.is_open and right_part.marked) or (right_part.is_open and left_part.marked):
                raise Entangled("it cannot be told which columns NATURAL JOIN compares; write JOIN … ON")
            right_names = {column.name for column in right_part.columns}
            merged = tuple(column.name for column in left_part.columns if not column.many and column.name in right_names)
        for side in (left_part, right_part):
            self._named(merged, side, "NATURAL JOIN" if body.get("isNatural") else "JOIN … USING")
        if len(left_part.columns) + len(right_part.columns) > JOINED_COLUMNS:
            raise Entangled("too many columns are joined here to tell where each comes from; select the columns you need first")
        both = set(merged)
        rest = [column for side in (left_part, right_part) for column in side.columns if column.many or column.name not in both]
        part = _aliased(Item(None, [*map(Column, merged), *rest]), body)
        named = [*left_named, *right_named]
        if "join_using_alias" in body:
            named.append(Item(body["join_using_alias"]["aliasname"], [*map(Column, merged)]))
        self.free(body.get("quals"), Level(level.outer, [left_part, right_part], named), withs, "JOIN … ON")
        return part, ([part] if part.name is not None else named)

    # --- targets

    def targets(self, nodes: Iterable[Node], level: Level, withs: Withs | None) -> Columns:
        """The columns of a select list or RETURNING list."""
        found: list[Column] = []
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
                if not self._of_view:
                    raise
                column = Column("", Influenced("is made of masked columns"))
            found.append(Column(target["name"], column.source) if "name" in target else column)
            if len(found) > MAX_COLUMNS:
                break
        if len(found) > MAX_COLUMNS:
            raise Entangled(f"a query here has more than {MAX_COLUMNS} columns")
        return tuple(found)

    def _target(self, value: Node, level: Level, withs: Withs | None) -> Column:
        [(kind, body)] = value.items()
        if kind == "ColumnRef":
            return resolve(body["fields"], level, body.get("location", -1))
        if kind == "SubLink" and body.get("subLinkType") == "EXPR_SUBLINK":
            [(inner_kind, inner)] = body["subselect"].items()
            columns = self.query(inner_kind, inner, level, withs)
            if len(columns) == 1:
                return columns[0]
            self.compared(columns, "a subquery")
            return Column("")
        if kind == "TypeCast" and "ColumnRef" in body["arg"] and _is_text(body["typeName"]):
            column = self._target(body["arg"], level, withs)
            if not isinstance(column.source, Plain) or column.source.type in _TEXTS:
                return column  # the value stays as it is
        elif kind == "A_Indirection" and "A_Star" in body["indirection"][-1]:
            self.free(value, level, withs, "an expression")
            return Column("", many=True)
        self.free(value, level, withs, "an expression of the select list")
        return Column(_NAMES.name(value) or "")

    # --- places where marked columns may not stand

    def free(self, value: object, level: Level | None, withs: Withs | None, place: str) -> None:
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
                        self._reference(body, level, place)
                    case "SubLink":
                        pending.append(body.get("testexpr"))
                        [(inner_kind, inner)] = body["subselect"].items()
                        columns = self.query(inner_kind, inner, level, withs)
                        if body.get("subLinkType") != "EXISTS_SUBLINK":
                            self.compared(columns, place)
                    case "SelectStmt" | "InsertStmt" | "UpdateStmt" | "DeleteStmt" | "MergeStmt":
                        self.compared(self.query(kind, body, level, withs), place)
                    case "RangeVar":
                        raise Entangled(f"a relation in {place}: {_NOT_NAMED}", body.get("location", -1))
                    case "FuncCall" if self._counts(body, level):
                        pending.append([body.get("agg_filter"), body.get("over")])
                    case "NullTest" if self._keeps_null(body["arg"], level):
                        pass
                    case "MultiAssignRef" if body.get("colno", 1) != 1:
                        pass  # the parser repeats the source for each column
                    case _:
                        pending.append(body)

    def _reference(self, body: Node, level: Level | None, place: str) -> None:
        fields, position = body["fields"], body.get("location", -1)
        if "A_Star" in fields[-1]:
            qualifier = [word["String"].get("sval", "") for word in fields[:-1]]
            columns: Sequence[Column] = starred(qualifier, level or Level(None), position)
        else:
            columns = (resolve(fields, level, position),)
        self.compared(columns, place, position)

    def compared(self, columns: Iterable[Column], place: str, position: int = -1) -> None:
        """Columns that are compared, computed with, or copied: none of them may be marked."""
        for column in columns:
            if column.source is not None:
                also = _GROUPED if place == "GROUP BY" else ""
                raise Entangled(f"{described(column)} is used in {place}; {_REMEDY.format(place=place)}{also}", position)

    def _counts(self, body: Node, level: Level | None) -> bool:
        """count(column) of a marked column whose NULLs are shown anyway."""
        names = [name["String"].get("sval", "") for name in body["funcname"]]
        if names not in (["count"], ["pg_catalog", "count"]) or self.marks.catalog.functions_by_name.get("count"):
            return False
        arguments = body.get("args", ())
        plain = not body.get("agg_distinct") and "agg_order" not in body and not body.get("func_variadic")
        return len(arguments) == 1 and plain and self._keeps_null(arguments[0], level)

    def _keeps_null(self, node: Node, level: Level | None) -> bool:
        body = node.get("ColumnRef")
        if body is None or "A_Star" in body["fields"][-1]:
            return False
        source = resolve(body["fields"], level, body.get("location", -1)).source
        return isinstance(source, Plain) and source.mark.keeps_null

    def _group(self, node: Node, columns: Columns, level: Level, withs: Withs | None) -> None:
        """GROUP BY takes a bare name for an input column first, then for an output."""
        if "GroupingSet" in node:
            for inner in node["GroupingSet"].get("content", ()):
                self._group(inner, columns, level, withs)
            return
        fields = node.get("ColumnRef", {}).get("fields", ())
        if len(fields) == 1 and "String" in fields[0]:
            name = fields[0]["String"].get("sval", "")
            if any(part.find(name) for part in level.parts):
                self.free(node, level, withs, "GROUP BY")
                return
        self._by_output(node, columns, level, withs, "GROUP BY")

    def _by_output(self, node: Node, columns: Columns, level: Level, withs: Withs | None, place: str) -> None:
        """ORDER BY and the like take a bare name for an output column first, and a number for its place."""
        [(kind, body)] = node.items()
        if kind == "A_Const" and "ival" in body:
            number = body["ival"].get("ival", 0)
            if any(column.many for column in columns[:number]):
                self.compared(columns, place)
            self.compared(columns[number - 1 : number] if number > 0 else (), place, body.get("location", -1))
            return
        fields: Sequence[Node] = body["fields"] if kind == "ColumnRef" else ()
        if len(fields) == 1 and "String" in fields[0]:
            name = fields[0]["String"].get("sval", "")
            hits = [column for column in columns if column.name == name and not column.many]
            if hits:
                self.compared(hits, place, body.get("location", -1))
                return
        self.free(node, level, withs, place)


def _agreed(one: Column, other: Column) -> Source:
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


def _aliased(item: Item, body: Node) -> Item:
    alias = body.get("alias")
    if alias is None:
        return item
    named = Item(alias["aliasname"], item.columns)
    return named.renamed(words(alias.get("colnames")))


def _function(body: Node) -> Item:
    """The item of a function in FROM, all of whose arguments are free."""
    alias = body.get("alias", {})
    given = words(alias.get("colnames"))
    calls: list[tuple[Node, ...]] = [tuple(node["List"]["items"]) for node in body["functions"]]
    call: Node = calls[0][0].get("FuncCall", {})
    first = call["funcname"][-1]["String"].get("sval") if call else None
    name = alias.get("aliasname") or first
    lists = [body["coldeflist"]] if "coldeflist" in body else [items[1].get("List", {}).get("items") for items in calls]
    columns: list[Column]
    if all(lists):
        columns = [Column(column["ColumnDef"]["colname"]) for each in lists for column in each]
    elif len(calls) == 1 and first in _ONE_COLUMN and (first != "unnest" or len(call.get("args", ())) == 1):
        columns = [Column(name or "")]
    else:
        columns = [Column("", many=True)]
    if body.get("ordinality") and not any(column.many for column in columns):
        columns.append(Column("ordinality"))
    return Item(name, columns).renamed(given)


def _is_text(type_name: Node) -> bool:
    names = [name["String"].get("sval", "") for name in type_name.get("names", ())]
    return names in (["text"], ["pg_catalog", "text"]) and "arrayBounds" not in type_name and not type_name.get("setof")
