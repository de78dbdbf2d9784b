"""Handlers of SELECT: WITH, FROM, set operations, locking clauses, INTO. Each query level gets its Scope here (decision 3.3)."""

from collections.abc import Iterable, Mapping

from gatewayd.sql.facts.grammar import NODES
from gatewayd.sql.facts.outputs import Outputs
from gatewayd.sql.facts.scope import UNLIMITED, Cte, Ctes, QueryLevel, RangeItem, Scope
from gatewayd.sql.facts.walk import NodeHandler, Walk
from gatewayd.sql.text.parse import Node

_SAMPLE_METHODS = frozenset({"bernoulli", "system"})  # handlers of pg_catalog, which is searched first


def select(walk: Walk, body: Node, outside: Scope) -> None:
    """`outside` is what the query sees of the levels around it."""
    withs = open_with(walk, body["withClause"], outside) if "withClause" in body else None
    if withs is not None:
        outside = outside.with_ctes(withs)
    if "intoClause" in body:
        walk.site("block_dml", "SELECT INTO", body["intoClause"]["rel"].get("location", -1))
        into(walk, body["intoClause"])
        if id(body) != walk.creator:
            walk.refuse("INTO inside a statement", body["intoClause"]["rel"])
    scope = Scope(outside.ctes, outside)
    query = QueryLevel("SelectStmt", body, scope)
    query.withs = withs
    walk.query(query)
    if body.get("op", "SETOP_NONE") != "SETOP_NONE":
        query.arms = (body["larg"], body["rarg"])
        for arm in query.arms:
            walk.stack.append(("SelectStmt", arm, outside))
        if "lockingClause" in body:
            walk.refuse("a locking clause on a set operation", body)
    else:
        from_clause(walk, body.get("fromClause", ()), scope, query)
        query.targets = body.get("targetList", [])
        if id(body) == walk.top:
            values_of = (target["ResTarget"].get("val", {}) for target in query.targets)
            walk.plain.update(id(value["ColumnRef"]) for value in values_of if "ColumnRef" in value)
        values = body.get("valuesLists")
        if values is not None:
            query.values = values[0]["List"].get("items", [])
            walk.push_nodes(values, scope)
        walk.push_nodes(body.get("distinctClause"), scope)
        walk.push_node(body.get("whereClause"), scope)
        walk.push_nodes(body.get("groupClause"), scope)
        walk.push_node(body.get("havingClause"), scope)
        walk.push_nodes(body.get("windowClause"), scope)
        for clause in body.get("lockingClause", ()):
            lock(walk, clause["LockingClause"], query)
        unseen = id(body) in walk.unseen
        walk.push_nodes((target for target in query.targets if not (unseen and _is_star(target))), scope)
    walk.push_nodes(body.get("sortClause"), scope)
    walk.push_node(body.get("limitOffset"), scope)
    walk.push_node(body.get("limitCount"), scope)


def _is_star(target: Node) -> bool:
    """Whether a member of a select list is `*` or `x.*`."""
    fields = target.get("ResTarget", {}).get("val", {}).get("ColumnRef", {}).get("fields")
    return bool(fields) and "A_Star" in fields[-1]


def open_with(walk: Walk, body: Node, outside: Scope) -> Ctes:
    """Push the WITH queries and give what the main query sees of them.

    Plain WITH: a query sees those before it; RECURSIVE: all of them. Their bodies see the names of `outside`, but none of the
    FROM that follows."""
    walk.check("WithClause", body)
    by_name: dict[str, tuple[int, Cte]] = {}
    wrapped = body["ctes"]
    visible = Ctes(by_name, UNLIMITED, outside.ctes)
    for index, node in enumerate(wrapped):
        cte = node["CommonTableExpr"]
        walk.check("CommonTableExpr", cte)
        name = cte["ctename"]
        if name in by_name:
            walk.refuse(f"two WITH queries named {name}", cte)
        extra: list[str] = []
        search, cycle = cte.get("search_clause"), cte.get("cycle_clause")
        if search is not None:
            walk.check("CTESearchClause", search)
            extra.append(search.get("search_seq_column", ""))
        if cycle is not None:
            extra += [cycle.get("cycle_mark_column", ""), cycle.get("cycle_path_column", "")]
            walk.stack.append(("CTECycleClause", cycle, outside))
        [(kind, inner)] = cte["ctequery"].items()
        if kind != "SelectStmt":
            walk.modifies = True
        by_name[name] = (index, Cte(cte, inner, words(cte.get("aliascolnames")), tuple(extra), outside))
        ctes = visible if body.get("recursive") else Ctes(by_name, index, outside.ctes)
        walk.stack.append((kind, inner, outside.with_ctes(ctes)))
    return visible


def cycle_clause(walk: Walk, body: Node, scope: Scope) -> None:
    """CYCLE of a recursive CTE: its values and types."""
    walk.operator(None, "=", body.get("location", 0))  # compares the path's rows and the mark's type by name
    walk.push_children(NODES["CTECycleClause"], body, scope)


def into(walk: Walk, body: Node) -> None:
    """SELECT INTO: the relation that it creates."""
    walk.check("IntoClause", body)
    if body.get("onCommit", "ONCOMMIT_NOOP") != "ONCOMMIT_NOOP":
        walk.refuse("ON COMMIT", body["rel"])
    walk.defines = True
    walk.use(body["rel"], reads=False, writes=True, creates=True)


def from_clause(walk: Walk, nodes: Iterable[Node], scope: Scope, query: QueryLevel) -> None:
    """Add the items of one FROM (or USING) list to `scope`, each seeing those before it where it is LATERAL."""
    for node in nodes:
        part, visible = from_item(walk, node, scope, scope.so_far())
        query.parts.append(part)
        for item in visible:
            scope.add(item)


def from_item(walk: Walk, node: Node, level: Scope, left: Scope) -> tuple[RangeItem, list[RangeItem]]:
    """One item of a FROM tree: what `*` takes from it, and the items it makes visible.

    `left` is what LATERAL items (and functions always) see of their own level; others see what lies outside of `level`."""
    [(kind, body)] = node.items()
    walk.range_item()
    known = NODES.get(kind)
    if known is None or not body.keys() <= known.known:
        walk.refuse_node(kind, body)
        return RangeItem("unknown", None), []
    if kind == "RangeVar":
        item = range_var(walk, body, level)
    elif kind == "JoinExpr":
        return join(walk, body, level, left)
    elif kind == "RangeSubselect":
        item = aliased(RangeItem("query", None), body)
        [(inner_kind, inner)] = body["subquery"].items()
        item.body = inner
        outside = level.outer.with_ctes(level.ctes) if level.outer is not None else Scope(level.ctes, None)
        walk.stack.append((inner_kind, inner, left if body.get("lateral") else outside))
    elif kind == "RangeFunction":
        item = range_function(walk, body, left)
    elif kind == "RangeTableFunc":
        names = [column["RangeTableFuncCol"].get("colname", "") for column in body.get("columns", ())]
        item = known_columns("xmltable", names, body)
        item.written, item.scope = (kind, body), left
        for field in ("docexpr", "rowexpr"):
            walk.push_node(body.get(field), left)
        for field in ("namespaces", "columns"):
            walk.push_nodes(body.get(field), left)
    elif kind == "JsonTable":
        item = known_columns("json_table", json_table_names(body.get("columns", ())), body)
        item.written, item.scope = (kind, body), left
        walk.stack.append(("JsonValueExpr", body["context_item"], left))
        walk.stack.append(("JsonTablePathSpec", body["pathspec"], left))
        walk.push_nodes(body.get("passing"), left)
        walk.push_nodes(body.get("columns"), left)
        if "on_error" in body:
            walk.stack.append(("JsonBehavior", body["on_error"], left))
    elif kind == "RangeTableSample":
        part, visible = from_item(walk, body["relation"], level, left)
        part.written, part.scope = (kind, body), left
        method = [name["String"].get("sval", "") for name in body["method"]]
        if method[-1] not in _SAMPLE_METHODS or method[:-1] not in ([], ["pg_catalog"]):
            walk.call(body["method"], 1, body)
        walk.push_nodes(body.get("args"), left)
        walk.push_node(body.get("repeatable"), left)
        return part, visible
    else:
        walk.refuse_node(kind, body)
        return RangeItem("unknown", None), []
    return item, [item]


def range_var(walk: Walk, body: Node, level: Scope) -> RangeItem:
    """A relation or a CTE in FROM."""
    name = body.get("relname", "")
    if "schemaname" not in body:
        cte = level.find_cte(name)
        if cte is not None:
            item = aliased(RangeItem("query", name), body)
            item.body = cte.body
            item.cte = cte
            item.known = cte.extra
            if cte.aliases:
                item.aliases = (*item.aliases, *cte.aliases[len(item.aliases) :])
            return item
    item = aliased(RangeItem("relation", name), body)
    item.relation = walk.use(body, reads=True, writes=False)
    item.schema = body.get("schemaname") if "alias" not in body else None
    return item


def range_function(walk: Walk, body: Node, left: Scope) -> RangeItem:
    """Functions in FROM."""
    item = aliased(RangeItem("unknown", None), body)
    item.written, item.scope = ("RangeFunction", body), left
    functions = body["functions"]
    names: list[str] | None = []
    for node in functions:
        call, columns = node["List"]["items"]
        walk.push_node(call, left)
        walk.push_node(columns, left)
        written = [column["ColumnDef"]["colname"] for column in columns["List"]["items"]] if columns else None
        names = None if written is None or names is None else [*names, *written]
        if item.name is None:
            item.name = Outputs(walk).name(call)  # the first function's
    columns = body.get("coldeflist")
    if columns is not None:
        walk.push_nodes(columns, left)
        names = [column["ColumnDef"]["colname"] for column in columns]
    if names is not None:
        item.kind = "known"
        item.known = (*names, "ordinality") if body.get("ordinality") else tuple(names)
    return item


def json_table_names(columns: Iterable[Node]) -> list[str]:
    """The column names of JSON_TABLE, nested ones included, in order."""
    names: list[str] = []
    pending = list(columns)[::-1]
    while pending:
        column = pending.pop()["JsonTableColumn"]
        if column.get("coltype") == "JTC_NESTED":
            pending.extend(column.get("columns", ())[::-1])
        else:
            names.append(column.get("name", ""))
    return names


def join(walk: Walk, body: Node, level: Scope, left: Scope) -> tuple[RangeItem, list[RangeItem]]:
    """A join: the item that it makes, and the items that can be named inside it."""
    left_part, left_items = from_item(walk, body["larg"], level, left)
    right_sees = Scope(level.ctes, left)
    for item in left_items:
        right_sees.add(item)
    right_part, right_items = from_item(walk, body["rarg"], level, right_sees)
    part = aliased(RangeItem("join", None), body)
    part.written = ("JoinExpr", body)
    part.left, part.right = left_part, right_part
    part.merged = words(body.get("usingClause"))
    part.natural = bool(body.get("isNatural"))
    visible = [*left_items, *right_items]
    if part.merged or part.natural:
        walk.operator(None, "=", -1)
    if "join_using_alias" in body:
        using = RangeItem("known", body["join_using_alias"]["aliasname"])
        using.known = part.merged
        using.qualified_only = True
        visible.append(using)
    if "quals" in body:
        # ON sees its own join and what lies outside of this FROM, not the rest of the FROM.
        part.scope = on = Scope(level.ctes, level.outer)
        for item in visible:
            on.add(item)
        walk.push_node(body["quals"], on)
    return part, ([part] if part.name is not None else visible)


def lock(walk: Walk, body: Node, query: QueryLevel) -> None:
    """FOR UPDATE/SHARE: without OF it locks every relation of this FROM, also inside subqueries of it."""
    walk.check("LockingClause", body)
    walk.locks = True
    names = body.get("lockedRels")
    if not names:
        walk.locked.extend(query.parts)
        return
    for node in names:
        found = query.scope.called(node["RangeVar"].get("relname", ""))
        walk.locked.extend(found or query.parts)  # what is not there, PostgreSQL refuses


def mark_locked(walk: Walk) -> None:
    """After the walk: what is under a locking clause is written."""
    pending = list(walk.locked)
    seen: set[int] = set()
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            query = walk.queries.get(id(item))
            if query is not None:
                pending.extend(query.arms)
                pending.extend(query.parts)
        elif item.relation is not None:
            item.relation.writes = True
        elif item.kind == "join":
            pending.extend(side for side in (item.left, item.right) if side is not None)
        elif item.kind == "query" and item.body is not None:
            pending.append(item.body)  # a CTE as well, though PostgreSQL leaves those alone


def aliased(item: RangeItem, body: Node) -> RangeItem:
    """The item under its alias and column aliases, if it has any."""
    alias = body.get("alias")
    if alias is not None:
        item.name = alias["aliasname"]
        item.is_aliased = True
        item.aliases = words(alias.get("colnames"))
    return item


def known_columns(name: str, names: Iterable[str], body: Node) -> RangeItem:
    """An item of FROM with these columns, under its alias."""
    item = aliased(RangeItem("known", name), body)
    item.known = tuple(names)
    return item


def words(nodes: Iterable[Node] | None) -> tuple[str, ...]:
    """The strings of a list of nodes, such as column aliases."""
    return tuple(node["String"].get("sval", "") for node in nodes) if nodes else ()


HANDLERS: Mapping[str, NodeHandler] = {"SelectStmt": select, "CTECycleClause": cycle_clause}
