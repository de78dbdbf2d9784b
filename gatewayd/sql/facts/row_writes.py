"""Handlers of INSERT, UPDATE, DELETE and MERGE: targets, what else they see, and the guardrail sites (decisions 3.3, 3.6)."""

from collections.abc import Mapping
from typing import Final

from gatewayd.catalog import WriteEvent
from gatewayd.sql.facts.grammar import NODES
from gatewayd.sql.facts.scope import QueryLevel, RangeItem, Scope
from gatewayd.sql.facts.selects import aliased, from_clause, from_item, open_with
from gatewayd.sql.facts.walk import NodeHandler, Walk
from gatewayd.sql.text.parse import Node

CRASHES: Final = "(a, b) = (SELECT …) in more than one WHEN clause of a MERGE, of which PostgreSQL's server process dies,"
"""Seen on 16.14 and 18.4: the whole server restarts, and every session with it."""
_KINDS: Final = {"INSERT": "InsertStmt", "UPDATE": "UpdateStmt", "DELETE": "DeleteStmt", "MERGE": "MergeStmt"}


def insert(walk: Walk, body: Node, outside: Scope) -> None:
    """INSERT: its target, source, ON CONFLICT and RETURNING."""
    outside, scope, query = _open(walk, body, outside, "INSERT")
    conflict = body.get("onConflictClause")
    updates = conflict is not None and conflict.get("action") != "ONCONFLICT_NOTHING"
    events: tuple[WriteEvent, ...] = ("insert", "update") if updates else ("insert",)
    item = _target(walk, body["relation"], reads=conflict is not None or "returningClause" in body, events=events)
    scope.add(item)
    query.parts.append(item)
    walk.push_node(body.get("selectStmt"), outside)
    walk.push_nodes(body.get("cols"), scope)
    if conflict is not None:
        walk.check("OnConflictClause", conflict)
        if "infer" in conflict:
            walk.stack.append(("InferClause", conflict["infer"], scope))
        proposed = Scope(outside.ctes, outside)
        proposed.add(item)
        proposed.add(_named(item, "excluded"))
        query.proposed = proposed
        walk.push_nodes(conflict.get("targetList"), proposed)
        walk.push_node(conflict.get("whereClause"), proposed)
    _returning(walk, body, scope, query, item)


def infer(walk: Walk, body: Node, scope: Scope) -> None:
    """The target of ON CONFLICT."""
    walk.push_children(NODES["InferClause"], body, scope)


def update(walk: Walk, body: Node, outside: Scope) -> None:
    """UPDATE: its target, FROM, SET, WHERE and RETURNING."""
    outside, scope, query = _open(walk, body, outside, "UPDATE")
    item = _target(walk, body["relation"], reads=True, events=("update",))
    scope.add(item)
    query.parts.append(item)
    from_clause(walk, body.get("fromClause", ()), scope, query)
    if "whereClause" not in body:
        walk.site("block_unqualified_dml", "UPDATE without WHERE", body["relation"].get("location", -1))
    walk.push_nodes(body.get("targetList"), scope)
    walk.push_node(body.get("whereClause"), scope)
    _returning(walk, body, scope, query, item)


def delete(walk: Walk, body: Node, outside: Scope) -> None:
    """DELETE: its target, USING, WHERE and RETURNING."""
    outside, scope, query = _open(walk, body, outside, "DELETE")
    item = _target(walk, body["relation"], reads=True, events=("delete",))
    scope.add(item)
    query.parts.append(item)
    from_clause(walk, body.get("usingClause", ()), scope, query)
    if "whereClause" not in body:
        walk.site("block_unqualified_dml", "DELETE without WHERE", body["relation"].get("location", -1))
    walk.push_node(body.get("whereClause"), scope)
    _returning(walk, body, scope, query, item)


def merge(walk: Walk, body: Node, outside: Scope) -> None:
    """MERGE: its target, source, condition, WHEN clauses and RETURNING."""
    outside, scope, query = _open(walk, body, outside, "MERGE")
    item = _target(walk, body["relation"], reads=True)
    source, visible = from_item(walk, body["sourceRelation"], scope, scope.so_far())
    query.parts += [source, item]  # RETURNING * gives the source's columns first
    scope.add(item)
    for other in visible:
        scope.add(other)
    condition = body.get("joinCondition")
    walk.push_node(condition, scope)
    whens = [node["MergeWhenClause"] for node in body.get("mergeWhenClauses", ())]
    for when in whens:
        walk.stack.append(("MergeWhenClause", when, scope))
    if any(when.get("commandType") in ("CMD_UPDATE", "CMD_DELETE") for when in whens) and _is_constant(condition):
        walk.site(
            "block_unqualified_dml",
            "MERGE that updates or deletes under a constant join condition",
            body["relation"].get("location", -1),
        )
    if sum(map(_assigns_query, whens)) > 1:
        walk.refuse(CRASHES, body["relation"])
    _returning(walk, body, scope, query, item)


def _assigns_query(when: Node) -> bool:
    """Whether this WHEN clause has `(a, b) = (SELECT …)`."""
    values = (target["ResTarget"].get("val", {}) for target in when.get("targetList", ()))
    return any("SubLink" in value.get("MultiAssignRef", {}).get("source", {}) for value in values)


def merge_when(walk: Walk, body: Node, scope: Scope) -> None:
    """A WHEN clause of MERGE: its condition and action."""
    walk.push_children(NODES["MergeWhenClause"], body, scope)


def _open(walk: Walk, body: Node, outside: Scope, verb: str) -> tuple[Scope, Scope, QueryLevel]:
    walk.modifies = True
    walk.site("block_dml", verb, body["relation"].get("location", -1))
    withs = open_with(walk, body["withClause"], outside) if "withClause" in body else None
    if withs is not None:
        outside = outside.with_ctes(withs)
    scope = Scope(outside.ctes, outside)
    query = QueryLevel(_KINDS[verb], body, scope)
    query.withs = withs
    walk.query(query)
    return outside, scope, query


def _target(walk: Walk, relation: Node, *, reads: bool, events: tuple[WriteEvent, ...] | None = None) -> RangeItem:
    """A target is never a CTE (trap 1)."""
    item = aliased(RangeItem("relation", relation.get("relname", "")), relation)
    item.relation = walk.use(relation, reads=reads, writes=True)
    item.relation.events = events
    item.schema = relation.get("schemaname") if "alias" not in relation else None
    return item


def _named(item: RangeItem, name: str) -> RangeItem:
    """The target's columns under another name (excluded, old, new)."""
    other = RangeItem("relation", name)
    other.relation, other.aliases, other.schema = item.relation, item.aliases, item.schema
    other.is_aliased = other.qualified_only = True
    return other


def _returning(walk: Walk, body: Node, scope: Scope, query: QueryLevel, target: RangeItem) -> None:
    clause = body.get("returningClause")
    if clause is None:
        return
    walk.check("ReturningClause", clause)
    names = {"RETURNING_OPTION_OLD": "old", "RETURNING_OPTION_NEW": "new"}
    for node in clause.get("options", ()):
        option = node["ReturningOption"]
        walk.check("ReturningOption", option)
        if option.get("option") not in names:
            walk.refuse("a RETURNING option", option)
        names[option.get("option", "")] = option.get("value", "")
    # An alias or relation called old or new hides these, so they are looked up last: on a scope of their own, further out.
    versions = Scope(scope.ctes, scope.outer)
    for name in names.values():
        versions.add(_named(target, name))
    seen = Scope(scope.ctes, versions, scope.items)
    query.scope = seen
    query.targets = clause.get("exprs", [])
    walk.push_nodes(query.targets, seen)


def _is_constant(condition: Node | None) -> bool:
    """Whether a join condition names no column, those of its subqueries left aside."""
    pending: list[object] = [condition]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if "ColumnRef" in part:
                return False
            if "subselect" in part:
                part = part.get("testexpr", {})
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return True


HANDLERS: Mapping[str, NodeHandler] = {
    "InsertStmt": insert,
    "UpdateStmt": update,
    "DeleteStmt": delete,
    "MergeStmt": merge,
    "MergeWhenClause": merge_when,
    "InferClause": infer,
}
