"""Which columns of a view are masked because its query shows masked columns (contract 10; trap 15). Pure.

A view is read under its owner's rights, so its query is not rewritten: the masks are put over its columns. That is safe only
where each masked column is shown as it is and used for nothing else; a view that filters, joins, groups or computes with one
tells of it in ways no mask over its columns can undo, and is not answered.
"""

from typing import Final

from gatewayd.catalog import Catalog, Relation
from gatewayd.masking.mentions import mentions, nodes, words
from gatewayd.masking.rules import NONE, MaskRules, Masks
from gatewayd.policy.model import Mask, NullOut
from gatewayd.sql.analyze import analyze
from gatewayd.sql.parse import Node, parse
from gatewayd.sql.statement import Statement

VIEWS: Final = ("view", "materialized view")
STATISTICS: Final = frozenset({"pg_statistic", "pg_stats", "pg_statistic_ext_data", "pg_stats_ext", "pg_stats_ext_exprs"})
"""Relations of pg_catalog with values out of the tables."""
FIRST_USER_OID: Final = 16384

_DEPTH: Final = 64


def covering(rules: MaskRules, relation: Relation, depth: int = 0) -> Masks | None:
    """The masks for reading any relation; None for a view that cannot be masked."""
    if relation.kind not in VIEWS:
        if relation.schema == "pg_catalog" and relation.name in STATISTICS:
            return None
        return rules.masks(relation)
    if relation.oid < FIRST_USER_OID and relation.schema in ("pg_catalog", "information_schema"):
        return None if relation.name in STATISTICS else NONE
    if relation.oid not in rules.views:
        rules.views[relation.oid] = _work_out(rules, relation, depth) if depth < _DEPTH else None
    return rules.views[relation.oid]


def _work_out(rules: MaskRules, view: Relation, depth: int) -> Masks | None:
    own = rules.policy.column_masks.get((view.schema, view.name), NONE)
    sensitive: dict[tuple[str, str], Masks] = {}
    for oid in view.reads:
        read = rules.catalog.by_oid.get(oid)
        if read is None:
            return None
        masks = covering(rules, read, depth + 1)
        if masks is None:
            return None
        if masks:
            sensitive[read.schema, read.name] = masks
    if not sensitive:
        return own
    shown = _shown(view, sensitive, rules.catalog)
    if shown is None:
        return None
    found: dict[str, Mask] = dict(own)
    for name, mask in shown.items():
        found[name] = mask if found.get(name, mask) == mask else NullOut()
    return found


def _shown(view: Relation, sensitive: dict[tuple[str, str], Masks], catalog: Catalog) -> Masks | None:
    """The view's columns that are masked columns of `sensitive`; None where those do more than to be shown."""
    facts = analyze(view.definition)
    if not isinstance(facts, Statement) or facts.form != "query" or not facts.relations:
        return None
    body = parse(view.definition).node.get("SelectStmt", {})
    secret = {name for masks in sensitive.values() for name in masks}
    named = mentions(body)
    if named.everything or _renames(body, sensitive):
        return None
    uses = sum(count for name, count in named.names.items() if name in secret)
    if not uses:
        return NONE
    if body.get("op", "SETOP_NONE") != "SETOP_NONE" or "distinctClause" in body or "withClause" in body:
        return None
    targets = body.get("targetList", [])
    if len(targets) != len(view.columns):
        return None
    aliases = _aliases(body)
    found: dict[str, Mask] = {}
    for target, column in zip(targets, view.columns, strict=True):
        value = target["ResTarget"]["val"]
        if "ColumnRef" not in value:
            continue
        *qualifier, name = words(value["ColumnRef"])
        if name not in secret or name is None:
            continue
        masks = _of_item(qualifier, aliases, sensitive)
        if masks is None:
            return None
        uses -= 1
        if name in masks:
            found[column.name] = masks[name]
    return found if not uses else None


def _renames(body: Node, sensitive: dict[tuple[str, str], Masks]) -> bool:
    """Whether a sensitive relation gets other column names: `users u(a, b)`."""
    return any(
        kind == "RangeVar" and (each.get("schemaname"), each.get("relname")) in sensitive and "colnames" in each.get("alias", {})
        for kind, each in nodes(body)
    )


def _aliases(body: Node) -> dict[str, tuple[str, str] | None]:
    """The items of the outermost FROM: the relation behind each name, None for what is no relation or has its name twice."""
    found: dict[str, tuple[str, str] | None] = {}
    pending = list(body.get("fromClause", ()))
    while pending:
        [(kind, item)] = pending.pop().items()
        if kind == "JoinExpr" and "alias" not in item:
            pending += [item["larg"], item["rarg"]]
            continue
        name = item.get("alias", {}).get("aliasname", item.get("relname", ""))
        known = (item.get("schemaname", "public"), item["relname"]) if kind == "RangeVar" else None
        found[name] = known if name not in found else None
    return found


def _of_item(
    qualifier: list[str | None], aliases: dict[str, tuple[str, str] | None], sensitive: dict[tuple[str, str], Masks]
) -> Masks | None:
    """The masks of the relation that a column reference means; None where that is not certain."""
    if not qualifier:
        if len(aliases) != 1:
            return None
        [relation] = aliases.values()
    else:
        relation = aliases.get(qualifier[-1] or "")
    return None if relation is None else sensitive.get(relation, NONE)
