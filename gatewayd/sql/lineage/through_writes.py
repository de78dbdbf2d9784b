"""INSERT, UPDATE, DELETE and MERGE for lineage: nothing is read from a marked column, RETURNING shows it plainly (decision 10).

A marked column may be assigned; where it is assigned to is no reading.
"""

from collections.abc import Iterable

from gatewayd.sql.lineage.names import Item, NameLevel, described
from gatewayd.sql.lineage.origins import Entangled, TracedColumn
from gatewayd.sql.lineage.places import TracedColumns
from gatewayd.sql.lineage.through_selects import Queries
from gatewayd.sql.lineage.with_queries import Withs
from gatewayd.sql.text.parse import Node

_VERSIONS = {"RETURNING_OPTION_OLD": "old", "RETURNING_OPTION_NEW": "new"}


def change(queries: Queries, kind: str, body: Node, outer: NameLevel | None, withs: Withs | None) -> TracedColumns:
    """The columns of its RETURNING; none without one. Raises Entangled."""
    if "withClause" in body:
        withs = queries.open_with(body["withClause"], outer, withs)
    match kind:
        case "InsertStmt":
            return _insert(queries, body, outer, withs)
        case "UpdateStmt" | "DeleteStmt":
            return _update_or_delete(queries, body, outer, withs)
        case "MergeStmt":
            return _merge(queries, body, outer, withs)
        case _:
            raise Entangled(f"{kind}: a masked column may be among what is read here")


def _insert(queries: Queries, body: Node, outer: NameLevel | None, withs: Withs | None) -> TracedColumns:
    target = queries.relation_item(body["relation"])
    if "selectStmt" in body:
        [(kind, source)] = body["selectStmt"].items()
        queries.compared(queries.query(kind, source, outer, withs), "INSERT … SELECT")
    level = NameLevel(outer, [target], [target])
    queries.free(body.get("cols"), level, withs, "an assignment")
    conflict = body.get("onConflictClause")
    if conflict is not None:
        _conflict(queries, conflict, target, level, outer, withs)
    return _returning(queries, body, [target], level, target, withs)


def _conflict(
    queries: Queries, conflict: Node, target: Item, level: NameLevel, outer: NameLevel | None, withs: Withs | None
) -> None:
    """What is found to be there already tells its value. Without named columns any unique index counts."""
    infer = conflict.get("infer", {})
    elements = [node["IndexElem"] for node in infer.get("indexElems", ())]
    marked = target.marked
    if not elements and marked is not None:
        raise Entangled(f"ON CONFLICT without columns may compare {described(marked)}; name the columns: ON CONFLICT (id)")
    for element in elements:
        if "name" in element:
            queries.compared(target.find(element["name"]), "ON CONFLICT")
    queries.free(infer, level, withs, "ON CONFLICT")
    proposed = Item("excluded", target.columns)
    inside = NameLevel(outer, [target], [target, proposed])
    queries.free([conflict.get("targetList"), conflict.get("whereClause")], inside, withs, "ON CONFLICT DO UPDATE")


def _update_or_delete(queries: Queries, body: Node, outer: NameLevel | None, withs: Withs | None) -> TracedColumns:
    target = queries.relation_item(body["relation"])
    level = NameLevel(outer, [target], [target])
    for node in (*body.get("fromClause", ()), *body.get("usingClause", ())):
        level.add(*queries.from_item(node, level, level.so_far(), withs))
    queries.free(body.get("targetList"), level, withs, "SET")
    queries.free(body.get("whereClause"), level, withs, "WHERE")
    return _returning(queries, body, level.parts, level, target, withs)


def _merge(queries: Queries, body: Node, outer: NameLevel | None, withs: Withs | None) -> TracedColumns:
    target = queries.relation_item(body["relation"])
    level = NameLevel(outer, [target], [target])
    source, named = queries.from_item(body["sourceRelation"], level, level.so_far(), withs)
    level.add(source, named)
    queries.free(body.get("joinCondition"), level, withs, "MERGE … ON")
    queries.free(body.get("mergeWhenClauses"), level, withs, "MERGE … WHEN")
    return _returning(queries, body, [source, target], level, target, withs)


def _returning(
    queries: Queries, body: Node, parts: Iterable[Item], level: NameLevel, target: Item, withs: Withs | None
) -> TracedColumns:
    clause = body.get("returningClause")
    if clause is None:
        return ()
    names = dict(_VERSIONS)
    for node in clause.get("options", ()):
        option = node["ReturningOption"]
        names[option.get("option", "")] = option.get("value", "")
    # An item called old or new hides these, so they are looked up last.
    versions = NameLevel(level.outer, [], [Item(name, target.columns, stored=target.stored) for name in names.values()])
    seen = NameLevel(versions, parts, level.named)
    return queries.targets(clause.get("exprs", ()), seen, withs)


def unmarked(columns: Iterable[TracedColumn], where: str) -> None:
    """For what would keep the values: raises Entangled when one of the columns is marked."""
    for column in columns:
        if column.source is not None:
            raise Entangled(f"{described(column)} would be copied by {where}, out of the reach of its mask; leave the column out")
