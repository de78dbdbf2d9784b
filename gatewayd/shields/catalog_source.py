"""The query that stands for a relation of the catalog which is shown in part: its columns in their order. Pure."""

from typing import Final

from gatewayd.catalog import SYSTEM_COLUMNS, Relation
from gatewayd.masking.rewrite.source_rewrite import Source
from gatewayd.masking.rules.mentions import Mentions
from gatewayd.shields.conditions import Conditions
from gatewayd.sql.builtins.filtered_relations import Filtered
from gatewayd.sql.text.tokens import quoted

_ITEM: Final = "m"


def source(relation: Relation, form: Filtered, conditions: Conditions, named: Mentions) -> Source:
    """Columns that the statement cannot mean are left out; conditions cost, and so do they."""
    columns: list[str] = []
    for column in relation.columns:
        if not named.needs(column.name):
            continue
        reference = f"{_ITEM}.{quoted(column.name)}"
        condition = form.columns.get(column.name)
        if condition is None:
            columns.append(reference)
        elif condition == "":
            columns.append(f"CASE WHEN false THEN {reference} END AS {quoted(column.name)}")
        else:
            columns.append(f"CASE WHEN {conditions.sql(condition)} THEN {reference} END AS {quoted(column.name)}")
    if not named.everything and relation.kind != "view":
        columns += [f"{_ITEM}.{name}" for name in sorted(SYSTEM_COLUMNS) if name in named.names]
    rows = f" WHERE {conditions.sql(form.rows)}" if form.rows else ""
    fence = " OFFSET 0" if form.fenced else ""

    def query(only: bool, sample: str) -> str:
        name = f"{'ONLY ' if only else ''}{quoted(relation.schema)}.{quoted(relation.name)}"
        return f"SELECT {', '.join(columns)} FROM {name} AS {_ITEM}{' ' + sample if sample else ''}{rows}{fence}"

    return Source(relation.schema, relation.name, query)
