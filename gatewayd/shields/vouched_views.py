"""A view whose own key opens what its tables hide is read behind a fence, where it has none of its own. Pure.

PostgreSQL pulls a view's query up into the statement and evaluates conditions in the order of their costs. A condition of the
agent can then see rows that the view does not show, and tell them by an error, a division by zero or by time. Into a subquery
with OFFSET nothing is pushed. A `security_barrier` view has PostgreSQL's own fence, which lets harmless operators through and so
keeps its indexes of use: the better way, where the owner takes it.
"""

from typing import Final

from gatewayd.catalog import Relation
from gatewayd.masking.rewrite.source_rewrite import Source
from gatewayd.masking.rules.mentions import Mentions
from gatewayd.sql.text.tokens import quoted

_ITEM: Final = "gatewayd_v"


def fence(view: Relation, named: Mentions) -> Source:
    """`named` is what the statement mentions: columns that it cannot mean are left out, for the role may have been granted some
    only."""
    columns = ", ".join(f"{_ITEM}.{quoted(column.name)}" for column in view.columns if named.needs(column.name))

    def query(only: bool, sample: str) -> str:
        name = f"{'ONLY ' if only else ''}{quoted(view.schema)}.{quoted(view.name)}"
        return f"SELECT {columns} FROM {name} AS {_ITEM}{' ' + sample if sample else ''} OFFSET 0"

    return Source(view.schema, view.name, query)
