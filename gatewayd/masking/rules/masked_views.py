"""Which columns of a view are masked because its query shows masked columns (decision 10; trap 15). Pure.

A view is read under its owner's rights, so its query is not rewritten: the masks are put over its columns. That is safe only
where each masked column is shown as it is and used for nothing else, which lineage tells; a view that filters, joins, groups or
computes with one tells of it in ways no mask over its columns can undo, and is not answered.
"""

from typing import Final

from gatewayd.catalog import FIRST_USER_OID, Relation
from gatewayd.masking.rules.marks import marks_of, mask_of
from gatewayd.masking.rules.mask_rules import NONE, MaskRules, Masks
from gatewayd.policy.file.model import Mask
from gatewayd.sql.lineage.origins import STATISTICS, Entangled, Plain
from gatewayd.sql.lineage.whole_statement import columns_of_relation

_VIEWS: Final = ("view", "materialized view")
_SYSTEM: Final = ("pg_catalog", "information_schema")


def covering(rules: MaskRules, relation: Relation) -> Masks | None:
    """The masks for reading any relation; None for one that cannot be masked."""
    if relation.schema == "pg_catalog" and relation.name in STATISTICS:
        return None
    if relation.kind not in _VIEWS:
        return rules.masks(relation)
    if relation.oid < FIRST_USER_OID and relation.schema in _SYSTEM:
        return NONE
    if relation.oid not in rules.views:
        rules.views[relation.oid] = _work_out(rules, relation)
    return rules.views[relation.oid]


def _work_out(rules: MaskRules, view: Relation) -> Masks | None:
    try:
        columns = columns_of_relation(view, marks_of(rules))
    except (Entangled, RecursionError):
        return None
    found: dict[str, Mask] = {}
    for column in columns:
        if isinstance(column.source, Plain):
            found[column.name] = mask_of(column.source)
        elif column.source is not None:
            return None
    return found
