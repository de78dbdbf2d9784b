"""Text -> Statement: parse, walk, and put the facts together (decisions 3.1, 3.2, 3.3, 3.5, 3.6, 3.7, 3.9).

Pure, never raises for any text, keeps nothing between calls.
"""

from typing import Literal

from gatewayd.sql.facts import alterations, definitions, expressions
from gatewayd.sql.facts import columns_used as columns
from gatewayd.sql.facts import row_writes as changes
from gatewayd.sql.facts import selects as queries
from gatewayd.sql.facts.kinds import ALLOWED, kind_of, leftmost
from gatewayd.sql.facts.outputs import OutputNames, Outputs
from gatewayd.sql.facts.scope import Scope
from gatewayd.sql.facts.statement import Category, RelationUse, Statement, Unparsed
from gatewayd.sql.facts.walk import Walk, steps
from gatewayd.sql.text import fingerprint, splice
from gatewayd.sql.text.parse import TOO_DEEP, Node, NotParsed, Tree, parse

_ROW_WRITES = frozenset({"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"})
STEPS = steps(
    {
        **expressions.HANDLERS,
        **queries.HANDLERS,
        **changes.HANDLERS,
        **definitions.HANDLERS,
        **alterations.HANDLERS,
    }
)


def analyze(sql: str) -> Statement | Unparsed:
    """What the text of one statement says it will do."""
    try:
        return _facts(sql, parse(sql))
    except NotParsed as refusal:
        return Unparsed(sql, "multi_statement" if refusal.multiple else "parse_error", str(refusal), fingerprint.of_text(sql))
    except RecursionError:
        return Unparsed(sql, "parse_error", TOO_DEEP, fingerprint.of_text(sql))


def watched(sql: str) -> Walk | None:
    """The walk over a statement that `analyze` has read, with what the binder asks for; None where it cannot be had."""
    try:
        return walked(parse(sql), watching=True)
    except (NotParsed, RecursionError):
        return None


def walked(tree: Tree, *, watching: bool = False) -> Walk:
    """The walk over one statement: its scopes, and the facts as they are found. `watching`: with what the binder asks for.
    Raises NotParsed for a statement over its bounds."""
    walk = Walk(STEPS)
    if watching:
        walk.watched = []
    [(node, body)] = tree.node.items()
    if node == "SelectStmt":
        walk.creator = id(leftmost(body))
        walk.top = id(body)
    if node in ALLOWED:
        walk.stack.append((node, body, Scope(None, None)))
        walk.run()
        queries.mark_locked(walk)
        walk.number_relations()
        if node == "SelectStmt" and walk.modifies and "withClause" not in body:
            walk.refuse("a data-modifying WITH below the top level", {"location": -1})
    else:
        walk.refuse_node(node, body)
    return walk


def _facts(sql: str, tree: Tree) -> Statement:
    [(node, body)] = tree.node.items()
    walk = walked(tree)
    outputs = Outputs(walk)
    form = _form(node, walk)
    returns = _returns(node, body, walk, outputs)
    named = columns.of_catalog_relations(walk)
    return Statement(
        sql=sql,
        kind=kind_of(node, body),
        category=_category(node, walk),
        fingerprint=fingerprint.of_tree(tree.json),
        used_columns=columns.used(walk),
        relations=tuple(
            RelationUse(
                use.database,
                use.schema,
                use.name,
                use.reads,
                use.writes,
                use.position,
                use.only,
                use.creates,
                use.events,
                named.get(index),
            )
            for index, use in enumerate(walk.relations)
        ),
        functions=outputs.functions(),
        fields=outputs.fields(),
        operators=tuple(walk.operators.values()),
        types=tuple(walk.types.values()),
        sites=tuple(walk.sites),
        setting=walk.setting,
        outputs=returns or (),
        returns_rows=returns is not None,
        form=form,
        locks=walk.locks,
        explains=walk.explains,
        text_start=tree.start,
        text_end=tree.end,
        splice=_splice(node, form, tree, body),
    )


def _category(node: str, walk: Walk) -> Category:
    if node not in ALLOWED:
        return "unsupported"
    if walk.defines:
        return "relation write"
    return "row write" if walk.modifies else "read"


def _form(node: str, walk: Walk) -> Literal["query", "utility", "dml"]:
    if node in _ROW_WRITES:
        return "dml"
    if node != "SelectStmt" or walk.defines:
        return "utility"
    return "dml" if walk.modifies else "query"


def _returns(node: str, body: Node, walk: Walk, outputs: Outputs) -> OutputNames | None:
    """The result columns; None for a statement without a result."""
    if node == "SelectStmt":
        return None if walk.defines else outputs.of_statement(body)
    if node in _ROW_WRITES:
        return outputs.of_statement(body) if "returningClause" in body else None
    if node == "ExplainStmt":
        return ("QUERY PLAN",)
    return () if node == "VariableShowStmt" else None


def _splice(node: str, form: str, tree: Tree, body: Node) -> tuple[int, int] | None:
    if form != "dml":
        return None
    return splice.of_returning(tree, body) if node in _ROW_WRITES else splice.of_main_query(tree, body)
