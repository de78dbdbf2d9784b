"""The query that stands for a masked relation: its columns in their order, the masked ones behind their expressions. Pure.

Columns that the statement cannot mean are left out: the role may have been granted some columns only.

What the planner knows of the raw values must not show either. An unused WITH query keeps it from merging the subquery into the
statement where its estimates would then reach the statistics of a redacted column; conditions are still pushed down into it, so
an index on another column is used as before. That no row comes in the order of a masked column is `Rewritten.keeps_heap_order`.
"""

from typing import Final

from gatewayd.catalog import Catalog, Relation
from gatewayd.masking.rewrite.source_rewrite import Source
from gatewayd.masking.rules.families import family
from gatewayd.masking.rules.mask_rules import Masks
from gatewayd.masking.rules.mentions import Mentions
from gatewayd.masking.transforms.in_sql import Parameters, masked
from gatewayd.policy.file.model import FullRedact
from gatewayd.sql.text.tokens import quoted

_ITEM: Final = "gatewayd_m"
_FENCE: Final = "WITH gatewayd_fence AS (SELECT) "
_STORED: Final = ("table", "partitioned table", "materialized view")


def source(relation: Relation, masks: Masks, catalog: Catalog, parameters: Parameters, named: Mentions) -> Source:
    """`masks` are those of the relation's columns; `named` is what the statement mentions."""
    columns: list[str] = []
    fence = ""
    for column in relation.columns:
        if not named.needs(column.name):
            continue
        reference = f"{_ITEM}.{quoted(column.name)}"
        mask = masks.get(column.name)
        if mask is None:
            columns.append(reference)
            continue
        nullable = column.nullable or relation.kind not in _STORED
        expression = masked(mask, reference, family(column.type, catalog), parameters, nullable=nullable)
        columns.append(f"{expression} AS {quoted(column.name)}")
        if isinstance(mask, FullRedact) and nullable and named.any_of((column.name,)):
            fence = _FENCE

    def query(only: bool, sample: str) -> str:
        name = f"{'ONLY ' if only else ''}{quoted(relation.schema)}.{quoted(relation.name)}"
        return f"{fence}SELECT {', '.join(columns)} FROM {name} AS {_ITEM}{' ' + sample if sample else ''}"

    return Source(relation.schema, relation.name, query)
