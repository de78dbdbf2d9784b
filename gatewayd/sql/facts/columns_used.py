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
    whole: set[int] = set()
    seen: set[int] = set()  # in a FROM, or written
    by_name: dict[str, set[int]] = {}  # name of an item -> the relations whose columns it shows
    pending = [part for query in walk.queries.values() for part in query.parts]
    while pending:
        item = pending.pop()
        below = _below(item)
        seen.update(below)
        if item.name is not None:
            by_name.setdefault(item.name, set()).update(below)
        if item.natural or item.aliases:
            whole.update(below)
        everywhere.update(item.merged)
        pending.extend(side for side in (item.left, item.right) if side is not None)
    parts = {id(query.scope): query.parts for query in walk.queries.values()}
    rows = set(walk.names)  # names of items that are read as a whole
    for fields, scope in walk.stars:
        if len(fields) > 1:
            rows.add(fields[-2]["String"].get("sval", ""))
        else:
            for part in parts.pop(id(scope), ()):
                whole.update(_below(part))
    for name in rows & by_name.keys():
        whole.update(by_name[name])
    selected: dict[str, set[str]] = {}  # name of an item -> what is selected from it
    for fields, _, _ in walk.fields:
        name = fields[-1]["String"].get("sval", "")
        of = fields[-2]["String"].get("sval", "") if len(fields) > 1 else None
        if of is not None and of in by_name:
            selected.setdefault(of, set()).add(name)
        else:
            everywhere.add(name)
    called: dict[int, list[str]] = {index: [] for index in asked}
    for name, indexes in by_name.items():
        for index in indexes & asked:
            called[index].append(name)
    sets: dict[tuple[str, ...], frozenset[str]] = {}  # shared: many items may have one name
    found: dict[int, frozenset[str]] = {}
    for index in asked & seen - whole:
        names = tuple(called[index])
        if names not in sets:
            sets[names] = frozenset(everywhere.union(*(selected.get(name, ()) for name in names)))
        found[index] = sets[names]
    return found


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
