"""INSERT, UPDATE, DELETE and MERGE for lineage: nothing is read from a marked column, RETURNING shows it plainly (decision 10).

A marked column may be assigned; where it is assigned to is no reading.
"""

from collections.abc import Iterable

from gatewayd.sql.facts.scope import QueryLevel
from gatewayd.sql.lineage.names import Columns, described
from gatewayd.sql.lineage.origins import Entangled, TracedColumn
from gatewayd.sql.lineage.places import TracedColumns
from gatewayd.sql.lineage.through_selects import Queries
from gatewayd.sql.text.parse import Node


def change(queries: Queries, query: QueryLevel) -> TracedColumns:
    """The columns of its RETURNING; none without one. Raises Entangled."""
    match query.kind:
        case "InsertStmt":
            _insert(queries, query)
        case "UpdateStmt" | "DeleteStmt":
            _update_or_delete(queries, query)
        case "MergeStmt":
            _merge(queries, query)
        case kind:
            raise Entangled(f"{kind}: a masked column may be among what is read here")
    return queries.targets(query.targets, query)


def _insert(queries: Queries, query: QueryLevel) -> None:
    body = query.body
    [target] = map(queries.item, query.parts)
    if "selectStmt" in body:
        [source] = body["selectStmt"].values()
        queries.compared(queries.query(source), "INSERT … SELECT")
    queries.free(body.get("cols"), query.scope, "an assignment")
    conflict = body.get("onConflictClause")
    if conflict is not None:
        _conflict(queries, conflict, target, query)


def _conflict(queries: Queries, conflict: Node, target: Columns, query: QueryLevel) -> None:
    """What is found to be there already tells its value. Without named columns any unique index counts."""
    infer = conflict.get("infer", {})
    elements = [node["IndexElem"] for node in infer.get("indexElems", ())]
    marked = target.marked
    if not elements and marked is not None:
        raise Entangled(f"ON CONFLICT without columns may compare {described(marked)}; name the columns: ON CONFLICT (id)")
    for element in elements:
        if "name" in element:
            queries.compared(target.find(element["name"]), "ON CONFLICT")
    queries.free(infer, query.scope, "ON CONFLICT")
    queries.free(
        [conflict.get("targetList"), conflict.get("whereClause")], query.proposed or query.scope, "ON CONFLICT DO UPDATE"
    )


def _update_or_delete(queries: Queries, query: QueryLevel) -> None:
    for item in query.parts:
        queries.item(item)
    queries.free(query.body.get("targetList"), query.scope, "SET")
    queries.free(query.body.get("whereClause"), query.scope, "WHERE")


def _merge(queries: Queries, query: QueryLevel) -> None:
    for item in query.parts:
        queries.item(item)
    queries.free(query.body.get("joinCondition"), query.scope, "MERGE … ON")
    queries.free(query.body.get("mergeWhenClauses"), query.scope, "MERGE … WHEN")


def unmarked(columns: Iterable[TracedColumn], where: str) -> None:
    """For what would keep the values: raises Entangled when one of the columns is marked."""
    for column in columns:
        if column.source is not None:
            raise Entangled(f"{described(column)} would be copied by {where}, out of the reach of its mask; leave the column out")
