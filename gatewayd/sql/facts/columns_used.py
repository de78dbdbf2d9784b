"""Which columns a statement can read from relations of pg_catalog (`RelationUse.columns`): some show secrets beside the rest.
And which names it uses other than as a result column (`Statement.used_columns`): those PostgreSQL may convert.

An unqualified name counts for every range item, so the sets are larger than the truth, never smaller.
"""

from gatewayd.sql.facts.scope import RangeItem
from gatewayd.sql.facts.walk import Use, Walk


def of_catalog_relations(walk: Walk) -> dict[int, frozenset[str]]:
    """Index of a relation -> the names read from it. A relation that is not here may be read in full."""
    asked = {index for index, use in enumerate(walk.relations) if _is_asked(use)}
    if not asked:
        return {}
    everywhere = set(walk.names)  # includes names that turn out to be something else
    names: dict[int, set[str]] = {}
    whole: set[int] = set()
    by_name: dict[str, list[RangeItem]] = {}
    pending = [part for query in walk.queries.values() for part in query.parts]
    while pending:
        item = pending.pop()
        if item.name is not None:
            by_name.setdefault(item.name, []).append(item)
        if item.relation is not None:
            names.setdefault(item.relation.index, set())
        if item.natural or item.aliases:
            whole.update(_below(item))
        everywhere.update(item.merged)
        pending.extend(side for side in (item.left, item.right) if side is not None)
    for name in walk.names:  # a whole row
        for item in by_name.get(name, ()):
            whole.update(_below(item))
    for fields, scope in walk.stars:
        if len(fields) > 1:
            for item in by_name.get(fields[-2]["String"].get("sval", ""), ()):
                whole.update(_below(item))
        else:
            for query in walk.queries.values():
                if query.scope is scope:
                    for part in query.parts:
                        whole.update(_below(part))
    for fields, _, _ in walk.fields:
        name = fields[-1]["String"].get("sval", "")
        items = by_name.get(fields[-2]["String"].get("sval", ""), ()) if len(fields) > 1 else ()
        for item in items:
            for index in _below(item):
                names.setdefault(index, set()).add(name)
        if not items:
            everywhere.add(name)
    return {index: frozenset(found | everywhere) for index, found in names.items() if index in asked and index not in whole}


def used(walk: Walk) -> frozenset[str] | None:
    """Names of all columns of which more is made than a result column; None: any column may be meant."""
    found = set(walk.used)
    pending = [part for query in walk.queries.values() for part in query.parts]
    while pending:
        item = pending.pop()
        renamed = bool(item.aliases) and item.kind in ("relation", "join")
        if item.natural or renamed or item.name in walk.used:  # a name of a range item is a whole row
            return None
        found.update(item.merged)
        pending.extend(side for side in (item.left, item.right) if side is not None)
    return None if "*" in found else frozenset(found)


def _is_asked(use: Use) -> bool:
    return use.name.startswith("pg_") and use.schema in (None, "pg_catalog") and use.reads and not use.writes


def _below(item: RangeItem) -> list[int]:
    """The relations whose columns an item shows directly; a subquery's own select list speaks for those inside it."""
    found: list[int] = []
    pending = [item]
    while pending:
        part = pending.pop()
        if part.relation is not None:
            found.append(part.relation.index)
        pending.extend(side for side in (part.left, part.right) if side is not None)
    return found
