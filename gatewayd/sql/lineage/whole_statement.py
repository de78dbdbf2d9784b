"""Lineage of a whole statement: what its result shows of marked columns, or why it may not run (decision 10)."""

from typing import Final

from gatewayd.catalog import Relation
from gatewayd.sql.facts.analyze import walked
from gatewayd.sql.facts.kinds import leftmost
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.facts.walk import Walk
from gatewayd.sql.lineage.origins import Entangled, Influenced, MarkedColumns, TracedColumn
from gatewayd.sql.lineage.through_selects import Queries
from gatewayd.sql.lineage.through_writes import change, unmarked
from gatewayd.sql.text.parse import TOO_DEEP, Node, NotParsed, parse

_HARMLESS: Final = ("COMMENT", "DROP ", "GRANT", "REFRESH MATERIALIZED VIEW", "REVOKE", "TRUNCATE TABLE")
"""Definitions that neither read a marked column, nor move it out of its mask's reach, nor make the server compute with it."""


def touches(statement: Statement, marks: MarkedColumns) -> bool:
    """Whether the statement names anything that may show a marked column; what the catalog does not know may."""
    for use in statement.relations:
        relation = marks.locate(use.schema, use.name)
        if relation is None:
            if not use.creates:
                return True
        elif marks.reach(relation):
            return True
    return False


def columns_of(statement: Statement, marks: MarkedColumns) -> tuple[TracedColumn, ...]:
    """The result columns, each free or plainly marked. Raises Entangled for everything else. Only for what `touches`."""
    try:
        tree = parse(statement.sql)
        [(kind, body)] = tree.node.items()
        columns = _columns(kind, body, statement, Queries(marks, walked(tree), change))
    except NotParsed as refusal:
        raise Entangled(str(refusal)) from None
    except RecursionError:
        raise Entangled(TOO_DEEP) from None
    marked = any(column.source is not None for column in columns)
    if marked and any(column.many for column in columns):
        raise Entangled("a `*` over a function stands beside masked columns; name the columns you need")
    for column in columns:
        if isinstance(column.source, Influenced):
            raise Entangled(f"column {column.name} {column.source.why} and cannot be shown; leave it out")
    return columns


def columns_of_relation(relation: Relation, marks: MarkedColumns) -> tuple[TracedColumn, ...]:
    """The columns that reading a table or view gives. Raises Entangled for a view whose query uses marked columns other than
    plainly."""
    return Queries(marks, Walk({}), change).columns(relation)


def _columns(kind: str, body: Node, statement: Statement, queries: Queries) -> tuple[TracedColumn, ...]:
    match kind:
        case "SelectStmt":
            columns = queries.query(body)
            if "intoClause" in leftmost(body):
                unmarked(columns, "SELECT INTO")
            return columns
        case "InsertStmt" | "UpdateStmt" | "DeleteStmt" | "MergeStmt":
            return queries.query(body)
        case "ExplainStmt":
            [(inner_kind, inner)] = body["query"].items()
            _columns(inner_kind, inner, statement, queries)
            return ()
        case "CreateTableAsStmt":
            [inner] = body["query"].values()
            unmarked(queries.query(inner), statement.kind)
            return ()
        case "VariableShowStmt":
            return ()
    if not statement.kind.startswith(_HARMLESS):
        raise Entangled(f"{statement.kind} on a table with masked columns could move them out of the reach of their masks")
    return ()
