"""Where the output columns of a statement come from, as far as marked columns go (decision 10). Pure; knows no masks, only marks.

Each output column is free of marked columns, or plainly one of them. A marked column in any other place (a predicate, an order, a
group, a comparison, an expression, a write) raises Entangled, and so does whatever cannot be told. Names are resolved as
PostgreSQL does it, by `names.py`; queries and changes are walked by `through_selects.py` and `through_writes.py`.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Final

import msgspec

from gatewayd.catalog import FIRST_USER_OID, Catalog, Relation

STATISTICS: Final = frozenset(
    {"pg_statistic", "pg_statistic_ext_data", "pg_stats", "pg_stats_ext", "pg_stats_ext_exprs", "pg_largeobject"}
)
"""Relations of pg_catalog that show values of other relations, whatever opens them."""


class Mark(msgspec.Struct, frozen=True):
    """What a column is marked with. Two columns are alike when `rule` and their types are equal."""

    rule: Hashable
    keeps_null: bool  # whether the rule leaves NULL and nothing else as NULL: counting and IS NULL tell then what is shown anyway


class Plain(msgspec.Struct, frozen=True):
    """The very value of a marked column, or of one of several alike (the arms of UNION ALL)."""

    columns: tuple[str, ...]  # schema.table.column
    type: str
    mark: Mark


class Influenced(msgspec.Struct, frozen=True):
    """A column of a view that is made of marked columns: it may stand in no answer."""

    why: str


ColumnSource = Plain | Influenced | None


class TracedColumn(msgspec.Struct, frozen=True):
    """One column of a query or range item. `source` None: free of marked columns."""

    name: str
    source: ColumnSource = None
    many: bool = False  # any number of free columns, whose names only the server knows
    type: str = ""  # as `catalog.Column.type`; "" where the text does not tell it


class Entangled(Exception):
    """A marked column is used other than plainly, or that cannot be ruled out. `str()` is the reason, fit for an agent, without
    the columns' values; `position` the byte offset in the statement's text, -1 where there is none."""

    def __init__(self, reason: str, position: int = -1) -> None:
        super().__init__(reason)
        self.position = position


class MarkedColumns:
    """The marks over one catalog snapshot, with what was found out about its views."""

    def __init__(
        self, catalog: Catalog, of: Callable[[Relation], Mapping[str, Mark]], both: Callable[[Mark, Mark], Mark]
    ) -> None:
        self.catalog = catalog
        self.of = of
        """The marks of one relation's own columns."""
        self.both = both
        """The mark of a column of a view that has one of its own and one from below."""
        self.columns: dict[int, tuple[TracedColumn, ...] | Entangled] = {}  # lineage_relations' memory
        self._reaching: dict[int, bool] = {}
        self._ordered: dict[int, bool] = {}

    def locate(self, schema: str | None, name: str) -> Relation | None:
        """The relation that PostgreSQL finds: pg_catalog first, then public (decision 2)."""
        if schema is not None:
            return self.catalog.relation(schema, name)
        return self.catalog.relation("pg_catalog", name) or self.catalog.relation("public", name)

    def below(self, relation: Relation) -> Iterator[Relation]:
        """The relation and all that reading it reads."""
        seen = {relation.oid}
        ahead = [relation]
        while ahead:
            each = ahead.pop()
            yield each
            for oid in (*each.reads, *each.children) if each.oid >= FIRST_USER_OID else ():
                found = self.catalog.by_oid.get(oid)
                if found is not None and oid not in seen:
                    seen.add(oid)
                    ahead.append(found)

    def reach(self, relation: Relation) -> bool:
        """Whether reading the relation may show anything of a marked column."""
        if relation.schema == "pg_catalog":
            return relation.name in STATISTICS
        known = self._reaching.get(relation.oid)
        if known is None:
            known = self._reaching[relation.oid] = any(self.of(each) for each in self.below(relation))
        return known

    def ordered(self, relation: Relation) -> bool:
        """Whether an index below the relation holds a marked column, so that rows may come in an order that tells of it."""
        known = self._ordered.get(relation.oid)
        if known is None:
            known = self._ordered[relation.oid] = any(self._is_indexed(each) for each in self.below(relation))
        return known

    def _is_indexed(self, relation: Relation) -> bool:
        held = {name for index in self.catalog.indexes_by_table.get(relation.oid, ()) for name in index.keys}
        if relation.kind == "materialized view":
            return bool(held) and self.reach(relation)  # which of its columns are marked is not asked
        return not held.isdisjoint(self.of(relation))
