"""Writes whose success would tell of masked values: keys and checks are answered from the raw ones (decision 10; trap 13). Pure.

`INSERT INTO users (email) VALUES ('a@b.c')` fails exactly when that address is there, as ON CONFLICT (email) would tell. So a
write does not run where a constraint that it sets off looks at a masked value which the statement itself does not supply.

A constraint over a generated column looks at the columns that it is made of; every INSERT computes it, and every UPDATE of those.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from gatewayd.catalog import Constraint, Relation
from gatewayd.masking.rules.mask_rules import NONE, MaskRules, Masks
from gatewayd.masking.rules.mentions import nodes
from gatewayd.sql.text.parse import Node, parse

_ROW_WRITES: Final = ("InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt")


class _Changes(msgspec.Struct, frozen=True):
    inserted: frozenset[str]  # columns that an INSERT supplies
    updated: frozenset[str]
    deletes: bool


def refusal(sql: str, targets: Mapping[int, Relation], rules: MaskRules) -> str | None:
    """Why the statement may not run; None when it may. `targets`: the relations that it writes, by position."""
    held_to = {position: found for position, target in targets.items() if (found := list(_about_masked(target, rules)))}
    if not held_to:
        return None
    for kind, body in nodes(parse(sql).node):
        position = body["relation"].get("location", 0) if kind in _ROW_WRITES else -1
        for held, constraint, elsewhere in held_to.get(position, ()):
            changes = _with_generated(_changes(kind, body, held, targets[position] is held), held)
            if _tells(constraint, changes, rules.masks(held), elsewhere):
                columns = ", ".join(constraint.columns)
                return f"a constraint on {held.qualified} ({columns}) would tell by its outcome of masked values"
    return None


def _about_masked(target: Relation, rules: MaskRules) -> Iterator[tuple[Relation, Constraint, Masks]]:
    """The constraints that a write sets off and that look at masked columns: with their table, and the masks of the other one."""
    for held in _reached(target, rules):
        masks = rules.masks(held)
        for constraint in held.constraints:
            other = rules.catalog.by_oid.get(constraint.other)
            elsewhere = rules.masks(other) if other is not None else NONE
            made_of = _made_of(held, constraint.columns)
            if not masks.keys().isdisjoint(made_of) or not elsewhere.keys().isdisjoint(constraint.other_columns):
                yield held, msgspec.structs.replace(constraint, columns=made_of), elsewhere


def _made_of(table: Relation, columns: tuple[str, ...]) -> tuple[str, ...]:
    """These columns, and for the generated ones among them those that they are made of."""
    sources = dict(table.generated)
    return tuple(dict.fromkeys(name for column in columns for name in (column, *sources.get(column, ()))))


def _reached(target: Relation, rules: MaskRules) -> Iterator[Relation]:
    """The tables whose constraints a write sets off: the target with its children, or what a view shows."""
    seen: set[int] = set()
    ahead = [target]
    while ahead:
        each = ahead.pop()
        if each.oid not in seen:
            seen.add(each.oid)
            yield each
            oids = (*each.children, *each.reads)
            ahead += [rules.catalog.by_oid[oid] for oid in oids if oid in rules.catalog.by_oid]


def _changes(kind: str, body: Node, table: Relation, named: bool) -> _Changes:
    """What a write does to the columns of a table. Not `named` in it (the table is behind a view): anything it can."""
    every = frozenset(column.name for column in table.columns)
    if not named:
        inserts, updates = kind in ("InsertStmt", "MergeStmt"), kind not in ("InsertStmt", "DeleteStmt")
        updates = updates or "onConflictClause" in body
        return _Changes(every if inserts else frozenset(), every if updates else frozenset(), kind in ("DeleteStmt", "MergeStmt"))
    if kind == "InsertStmt":
        supplied = _names(body["cols"]) if "cols" in body else every
        return _Changes(supplied, _names(body.get("onConflictClause", {}).get("targetList", [])), False)
    if kind == "UpdateStmt":
        return _Changes(frozenset(), _names(body["targetList"]), False)
    if kind == "DeleteStmt":
        return _Changes(frozenset(), frozenset(), True)
    inserted: set[str] = set()
    updated: set[str] = set()
    deletes = False
    for when in (each["MergeWhenClause"] for each in body.get("mergeWhenClauses", ())):
        command = when.get("commandType")
        if command == "CMD_INSERT":
            inserted |= _names(when["targetList"]) if "targetList" in when else every
        elif command == "CMD_UPDATE":
            updated |= _names(when["targetList"])
        deletes = deletes or command == "CMD_DELETE"
    return _Changes(frozenset(inserted), frozenset(updated), deletes)


def _with_generated(changes: _Changes, table: Relation) -> _Changes:
    if not table.generated:
        return changes
    computed = frozenset(name for name, sources in table.generated if not changes.updated.isdisjoint(sources))
    inserted = changes.inserted | {name for name, _ in table.generated} if changes.inserted else changes.inserted
    return _Changes(inserted, changes.updated | computed, changes.deletes)


def _tells(constraint: Constraint, changes: _Changes, masks: Masks, elsewhere: Masks) -> bool:
    """Whether the outcome depends on a masked value that the statement does not supply."""
    columns = frozenset(constraint.columns)
    masked = columns & masks.keys()
    other_masked = bool(elsewhere.keys() & set(constraint.other_columns))
    updates = bool(columns & changes.updated)
    completes = updates and not masked <= changes.updated  # the rest of the columns are the row's own
    match constraint.kind:
        case "unique":
            return bool(masked) and (updates or bool(masked & changes.inserted))
        case "check":
            return completes
        case "foreign":
            return completes or (other_masked and (updates or bool(columns & changes.inserted)))
        case "referenced":
            return (bool(masked) or other_masked) and (updates or changes.deletes)
        case "partition":
            return completes


def _names(targets: list[Node]) -> frozenset[str]:
    return frozenset(target["ResTarget"].get("name", "") for target in targets)
