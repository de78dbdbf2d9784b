"""Which columns of which relation are masked, and how (decision 10): a policy's `column_masks` held against one catalog. Pure.

One rule where masks meet: a column that two different masks would cover (its table's own and its parent's, or those of two
children read through their parent) is nulled out, as is a generated column made of a masked one. Views are `masked_views.py`'s.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gatewayd.catalog import Catalog, Relation
from gatewayd.masking.rules.families import family, misfit
from gatewayd.policy.file.model import Mask, NullOut, Policy
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.facts.statement import RelationUse
from gatewayd.sql.lineage.origins import MarkedColumns

Masks = Mapping[str, Mask]
"""Masks by column name."""

NONE: Final[Masks] = {}


class MaskRules:
    """The masks of one policy over one read snapshot, worked out relation by relation as statements ask."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self.policy = policy
        self.catalog = catalog
        self.problems = tuple(problems(policy, catalog))
        self._masks: dict[int, Masks] = {}
        self._above: dict[int, tuple[Masks, ...]] = {}
        self.views: dict[int, Masks | None] = {}  # views.py's memory
        self.marks: MarkedColumns | None = None  # marks.py's

    def located(self, use: RelationUse) -> Relation | None:
        """The relation that PostgreSQL would find: pg_catalog first, then public. None: not in the catalog."""
        if use.schema is not None:
            return self.catalog.relation(use.schema, use.name)
        system = self.catalog.relation("pg_catalog", use.name)
        here = self.catalog.relation("public", use.name)
        if system is not None:
            return system
        return here if here is not None or builtins.relation(use.name) is None else None

    def masks(self, relation: Relation) -> Masks:
        """The masks for reading a table (not a view) with all its children; ONLY makes no difference."""
        known = self._masks.get(relation.oid)
        if known is None:
            known = self._masks[relation.oid] = self._work_out(relation)
        return known

    def _work_out(self, relation: Relation) -> Masks:
        names = {column.name for column in relation.columns}
        found: dict[str, Mask] = {}
        members = list(self.family(relation))
        for each in members:
            for masks in self._upward(each):
                for name, mask in masks.items():
                    if name in names:
                        found[name] = mask if found.get(name, mask) == mask else NullOut()
        for each in members:
            for name, sources in each.generated:
                if name in names and name not in found and any(source in found for source in sources):
                    found[name] = NullOut()
        return found

    def family(self, relation: Relation) -> Iterable[Relation]:
        """The relation and all its descendants."""
        return self.catalog.closure(relation, lambda each: each.children)

    def _upward(self, relation: Relation) -> tuple[Masks, ...]:
        """The masks of the relation itself and of each of its ancestors."""
        known = self._above.get(relation.oid)
        if known is None:
            masks = self.policy.column_masks
            each_own = (masks.get((each.schema, each.name)) for each in self.catalog.closure(relation, lambda each: each.parents))
            known = self._above[relation.oid] = tuple(own for own in each_own if own)
        return known


def problems(policy: Policy, catalog: Catalog) -> Iterable[str]:
    """What of `column_masks` does not fit the database, each naming its mask. A mask that no longer fits hides nothing. So at
    start and in a reload it refuses the policy, and later every statement: a table that was renamed would be open."""
    for (schema, name), masks in policy.column_masks.items():
        relation = catalog.relation(schema, name)
        where = f'column_masks."{schema}.{name}"'
        if relation is None:
            yield f"{where}: found a table this database does not have; expected one that exists"
            continue
        if relation.kind in ("sequence", "index", "composite type"):
            yield f"{where}: found an object of kind {relation.kind}; expected a table or view"
            continue
        types = {column.name: column.type for column in relation.columns}
        for column, mask in masks.items():
            if column not in types:
                yield f"{where}.{column}: found a column this table does not have; expected one that exists"
            elif any(each.kind == "partition" and column in each.columns for each in relation.constraints):
                why = "the partition of a row tells its value"
                yield f"{where}.{column}: found a column that the table is partitioned by; expected another one ({why})"
            elif (expected := misfit(mask, family(types[column], catalog))) is not None:
                yield f"{where}.{column}: found a column of type {types[column]}; expected {expected}"
