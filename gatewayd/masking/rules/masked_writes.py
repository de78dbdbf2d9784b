"""What a row-writing statement may do to a masked table (decision 10; traps 13 and 14). Pure.

A masked column may be given a value, and nothing may be read from it: not by WHERE, SET, ON CONFLICT, MERGE or RETURNING. The
target of a write cannot stand behind a subquery, so its columns are held to by name here. Names are looked up outwards, so a
subquery's unqualified name of a masked column counts as the target's.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gatewayd.catalog import PLACE, SYSTEM_COLUMNS
from gatewayd.masking.rules.mask_rules import Masks
from gatewayd.masking.rules.mentions import nodes, words
from gatewayd.sql.text.parse import Node

_SEEING: Final[Mapping[str, tuple[str, ...]]] = {
    "InsertStmt": ("onConflictClause", "returningClause"),
    "UpdateStmt": ("targetList", "whereClause", "fromClause", "returningClause"),
    "DeleteStmt": ("whereClause", "usingClause", "returningClause"),
    "MergeStmt": ("joinCondition", "mergeWhenClauses", "sourceRelation", "returningClause"),
}
"""The parts of each statement from which its target's columns can be seen."""


def refusal(tree: Node, targets: Mapping[int, tuple[Masks, frozenset[str]]]) -> str | None:
    """Why the statement may not run; None when nothing is read from a masked column of a target. `targets`: the masked ones, by
    position of the relation: their masks, and the names of all their columns."""
    for kind, body in _writes(tree):
        target = targets.get(body["relation"].get("location", 0))
        if target is None:
            continue
        masks, columns = target
        found = _reads(kind, body, masks, columns)
        if found is not None:
            return found
    return None


def _writes(tree: Node) -> Iterator[tuple[str, Node]]:
    return ((kind, body) for kind, body in nodes(tree) if kind in _SEEING)


def _reads(kind: str, body: Node, masks: Masks, columns: frozenset[str]) -> str | None:
    relation = body["relation"]
    visible = {relation.get("alias", {}).get("aliasname", relation.get("relname", "")), "old", "new"}
    seen: list[Any] = [body[part] for part in _SEEING[kind] if part in body]
    for _, option in _of_kind("ReturningOption", seen):
        visible.add(option.get("value", ""))
    conflict = body.get("onConflictClause")
    if conflict is not None:
        refused = _conflict(conflict, masks)
        if refused is not None:
            return refused
    for _, reference in _of_kind("ColumnRef", seen):
        *qualifier, name = words(reference)
        if qualifier and qualifier[-1] not in visible:
            continue  # another item, `excluded` among them: that is what the statement itself proposes
        if name is None:
            if qualifier or _returns_star(body, reference):
                return "it returns every column of a masked table; name the columns that are not masked"
            continue
        if qualifier and name not in columns and name not in SYSTEM_COLUMNS:
            return f"{name} is not known to be a column of the masked table"
        if not qualifier and name in visible:
            return f"it reads whole rows of masked table {name}"
        if name == PLACE and PLACE not in columns:
            return f"{PLACE} tells how long the masked values are; name rows by their key"
        if name in masks:
            return f"it reads masked column {name} of the table it writes"
    return None


def _conflict(conflict: Node, masks: Masks) -> str | None:
    """What decides whether there is a conflict must not be a masked column."""
    infer = conflict.get("infer")
    if infer is None or "conname" in infer:
        return "ON CONFLICT without columns may be decided by a masked one; name columns that are not masked"
    for element in infer.get("indexElems", ()):
        name = element["IndexElem"].get("name")
        if name in masks:
            return f"ON CONFLICT on masked column {name} would tell whether a value exists"
    return None


def _returns_star(body: Node, reference: Node) -> bool:
    """Whether a bare `*` stands in the RETURNING list itself: in a subquery it means the subquery's own FROM."""
    exprs = body.get("returningClause", {}).get("exprs", ())
    return any(target["ResTarget"]["val"].get("ColumnRef") is reference for target in exprs)


def _of_kind(wanted: str, trees: Iterable[Any]) -> Iterator[tuple[str, Node]]:
    return ((kind, body) for kind, body in nodes(list(trees)) if kind == wanted)
