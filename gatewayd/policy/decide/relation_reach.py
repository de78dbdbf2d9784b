"""How far a relation reaches (decision 3.4): the level that its ancestors give it, and what reading or writing it touches.

Walks are loops over sets: a cycle of views, or a view a thousand levels deep, ends like any other.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from gatewayd.catalog import FIRST_USER_OID, Catalog, Relation, WriteEvent
from gatewayd.policy.decide.access import Resolved, resolve, strictest
from gatewayd.policy.file.model import TableAccess

SYSTEM_SCHEMAS: Final = ("pg_catalog", "information_schema")


class Reach:
    """One policy's levels over one catalog snapshot, each worked out once."""

    def __init__(self, access: TableAccess, catalog: Catalog) -> None:
        self._access = access
        self._catalog = catalog
        self._levels: dict[int, Resolved] = {}

    def level(self, relation: Relation) -> Resolved:
        """The level of a relation of the catalog: its own exact key, else the strictest among its own `schema.*` and the keys of
        its nearest ancestors that have one, else the default."""
        known = self._levels.get(relation.oid)
        if known is None:
            known = self._levels[relation.oid] = self._work_out(relation)
        return known

    def _work_out(self, relation: Relation) -> Resolved:
        own = resolve(self._access, relation.schema, relation.name)
        if own.source not in ("schema", "default") or not relation.parents:
            return own
        keyed = [own] if own.source == "schema" else []
        seen = {relation.oid}
        above = list(relation.parents)
        while above:
            oid = above.pop()
            parent = self._catalog.by_oid.get(oid)
            if parent is None or oid in seen:
                continue
            seen.add(oid)
            resolved = resolve(self._access, parent.schema, parent.name)
            if resolved.source != "default":
                keyed.append(resolved)
            if not resolved.is_exact:
                above.extend(parent.parents)
        return strictest(keyed) if keyed else own

    def read(self, relation: Relation, *, only: bool) -> list[Relation]:
        """The relation, what its query names, at any depth, and the children of each (not its own under ONLY)."""

        def touches(each: Relation) -> Iterable[int]:
            return each.reads if only and each is relation else (*each.reads, *each.children)

        return self._walk(relation, touches)

    def written(self, relation: Relation, *, only: bool, events: Collection[WriteEvent] | None) -> list[Relation]:
        """What a write to the relation may write."""
        return [each for each, _ in self._catalog.written(relation, only=only, events=events).values()]

    def descent(self, relation: Relation, *, only: bool) -> list[Relation]:
        """The relation and its descendants: what a change of its definition reaches."""
        return self._walk(relation, lambda each: () if only and each is relation else each.children)

    def _walk(self, relation: Relation, step: Callable[[Relation], Iterable[int]]) -> list[Relation]:
        found = {relation.oid: relation}
        ahead = [relation]
        while ahead:
            each = ahead.pop()
            for oid in () if is_initial(each) else step(each):
                touched = self._catalog.by_oid.get(oid)
                if touched is not None and oid not in found:
                    found[oid] = touched
                    ahead.append(touched)
        return list(found.values())


def is_initial(relation: Relation) -> bool:
    """Made by initdb: `sql/builtins/lookup.py` speaks for pg_catalog, information_schema is always open (decision 2)."""
    return relation.schema in SYSTEM_SCHEMAS and relation.oid < FIRST_USER_OID
