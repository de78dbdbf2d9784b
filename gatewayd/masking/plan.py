"""What masks make of one allowed statement (decision 10). Pure; the pipeline acts on the answer, and keeps it."""

from typing import Final, Literal

import msgspec

from gatewayd.catalog import Catalog, Relation
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.masking.rewrite import masked_explain as explain
from gatewayd.masking.rewrite.masked_source import source
from gatewayd.masking.rewrite.source_rewrite import NotRewritten, Source, TooLarge, rewrite
from gatewayd.masking.rules import constraints
from gatewayd.masking.rules import masked_writes as writes
from gatewayd.masking.rules.marks import marks_of, masking_of
from gatewayd.masking.rules.mask_rules import MaskRules, Masks
from gatewayd.masking.rules.masked_views import covering
from gatewayd.masking.rules.mentions import Mentions, mentions_among, nodes
from gatewayd.masking.transforms.in_sql import Parameter, Parameters
from gatewayd.policy.file.model import Policy
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.facts.statement import RelationUse, Statement
from gatewayd.sql.lineage.origins import Entangled
from gatewayd.sql.lineage.whole_statement import columns_of, touches
from gatewayd.sql.text.parse import NotParsed, parse, place

Stage = Literal["gate", "salt", "shadow", "rewrite"]


class Unmasked(msgspec.Struct, frozen=True, gc=False):
    """No masked relation is touched: the statement runs as it is."""


class Rewritten(msgspec.Struct, frozen=True):
    """source_rewrite: `statement` runs instead. Its text differs in the places of `edits` only."""

    statement: Statement
    parameters: tuple[Parameter, ...]  # $1, $2, …
    columns: tuple[str, ...]  # schema.table.column of every mask applied
    edits: tuple[tuple[int, int, int], ...] = ()  # (start and end in the text before, length in the new one), in characters
    earlier_edits: tuple[tuple[int, int, int], ...] = ()  # those that made the text before of the agent's
    keeps_heap_order: bool = False
    """An index holds a masked column: rows must not come in its order."""
    composed: dict[object, object] = msgspec.field(default_factory=dict)
    """Room for what the shell makes of this statement: a masked text is long, and to compose and prove it takes its time."""

    def __repr__(self) -> str:
        """Without the parameters, which hold the salt."""
        return f"Rewritten(columns={self.columns!r}, edits={self.edits!r})"


class Withheld(msgspec.Struct, frozen=True, gc=False):
    """What the policy hides cannot be kept hidden safely: nothing runs. The agent sees `reason_agent`, the audit row stage and
    `reason_audit`. `rule` is whose work failed: that of masks, or that of a table's level."""

    stage: Stage
    reason_agent: str
    reason_audit: str
    rule: Literal["column_masking", "table_access"] = "column_masking"


Plan = Unmasked | Rewritten | PostExec | Withheld

UNMASKED: Final = Unmasked()
_LEAVES_NAMES: Final = ("TRUNCATE", "DROP", "COMMENT", "GRANT", "REVOKE")
_COPIES: Final = ("CREATE TABLE AS", "SELECT INTO")
_ANALYZE: Final = "EXPLAIN ANALYZE over masked relations tells how many rows hold a value"
_SYSTEM: Final = ("pg_catalog", "information_schema")


class _Touched(msgspec.Struct, frozen=True):
    use: RelationUse
    relation: Relation
    masks: Masks


def plan(statement: Statement, policy: Policy, catalog: Catalog, *, salt: bytes | None, rewriting: bool) -> Plan:
    """`statement` is allowed by `policy`. Where the policy masks nothing that it touches this only looks at its relations."""
    if not policy.column_masks or not statement.relations:
        return UNMASKED
    if not catalog.is_read:
        return _withheld("shadow", "the catalog has not been read yet")
    rules = catalog.worked_out(MaskRules, policy)
    if statement.category == "row write" and statement.explains == "no":
        located = {use.position: rules.located(use) for use in statement.relations if use.writes}
        targets = {position: relation for position, relation in located.items() if relation is not None}
        told = constraints.refusal(statement.sql, targets, rules)
        if told is not None:
            return _withheld("gate", told)
    if not rewriting:
        return _after_execution(statement, rules, salt)
    touched: list[_Touched] = []
    for use in statement.relations:
        relation = rules.located(use)
        if relation is None or use.creates:
            if use.creates or use.schema in _SYSTEM or (use.schema is None and builtins.relation(use.name) is not None):
                continue
            return _withheld("shadow", f"{use.name} is not in the catalog")
        if rules.problems and relation.schema not in _SYSTEM:
            return _withheld("shadow", rules.problems[0])
        masks = covering(rules, relation)
        if masks is None:
            return _withheld("gate", f"{relation.qualified} shows or uses masked columns in a way that cannot be masked")
        for target in _set_off(use, relation, catalog):
            if covering(rules, target) != {}:
                return _withheld("gate", f"a rule of {relation.qualified} touches masked {target.qualified}")
        if masks:
            touched.append(_Touched(use, relation, masks))
    if not touched:
        return UNMASKED
    if salt is None:
        return _withheld("salt", "GATEWAY_MASK_SALT is not set")
    refused = _gate(statement, touched, rules)
    if refused is not None:
        return _withheld("gate", refused)
    try:
        return _rewritten(statement, touched, rules, salt)
    except NotRewritten as failure:
        return _not_rewritten(failure)


def _set_off(use: RelationUse, relation: Relation, catalog: Catalog) -> list[Relation]:
    """What the rules touch that a write sets off, also those of the tables behind a view."""
    if not use.writes or use.creates:
        return []
    written = catalog.written(relation, only=use.only, events=use.events).values()
    return [each for each, by_rule in written if by_rule]


def _after_execution(statement: Statement, rules: MaskRules, salt: bytes | None) -> Plan:
    """What post_exec makes of it: every output column proved to be free of masks or plainly masked, or nothing runs."""
    catalog = rules.catalog
    marks = marks_of(rules)
    located = [rules.located(use) for use in statement.relations]
    if rules.problems and any(each is None or each.schema not in _SYSTEM for each in located):
        return _withheld("shadow", rules.problems[0])
    touched = [(use, each) for use, each in zip(statement.relations, located, strict=True) if each is not None]
    if any(marks.reach(target) for use, each in touched for target in _set_off(use, each, catalog)):
        return _withheld("gate", "a rule of the table written touches a masked one")
    if not touches(statement, marks):
        return UNMASKED
    if salt is None:
        return _withheld("salt", "GATEWAY_MASK_SALT is not set")
    if statement.explains == "analyze":
        return Withheld("gate", f"{_ANALYZE}; leave ANALYZE out to see the plan", _ANALYZE)
    try:
        columns = columns_of(statement, marks)
        if statement.explains == "plan":
            explained, edits = explain.without_costs(statement)
            return Rewritten(explained, (), (), edits)
    except Entangled as entangled:
        reason = str(entangled)
        if entangled.position >= 0:
            reason = f"{reason} ({place(statement.sql.encode(), entangled.position)})"
        return Withheld("gate", reason, reason)
    except NotRewritten as failure:
        return _not_rewritten(failure)
    return masking_of(statement, columns, marks, salt)


def _gate(statement: Statement, touched: list[_Touched], rules: MaskRules) -> str | None:
    """What neither way of masking can answer."""
    if statement.explains == "analyze":
        return _ANALYZE
    if statement.explains == "plan":
        named = explain.refusal(statement, frozenset(name for each in touched for name in each.masks))
        return named or _entangled(statement, rules)
    written = [each for each in touched if each.use.writes]
    if statement.category == "relation write":
        if statement.kind.startswith(_LEAVES_NAMES):
            return None
        if written or statement.kind not in _COPIES:
            return f"{statement.kind} over {touched[0].relation.qualified} could take its columns out of their masks"
        return None
    if written and statement.category == "read":
        return "FOR UPDATE and FOR SHARE cannot lock the rows of a masked relation"
    targets = {each.use.position: (each.masks, frozenset(column.name for column in each.relation.columns)) for each in written}
    return writes.refusal(parse(statement.sql).node, targets) if targets else None


def _entangled(statement: Statement, rules: MaskRules) -> str | None:
    """What is explained is the statement as it was written: where it uses a masked column for more than showing it, under
    whatever name it has there, the plan follows the statistics of its values."""
    try:
        columns_of(statement, marks_of(rules))
    except Entangled as entangled:
        return str(entangled)
    return None


def _rewritten(statement: Statement, touched: list[_Touched], rules: MaskRules, salt: bytes) -> Plan:
    if statement.explains == "plan":
        explained, edits = explain.without_costs(statement)
        return Rewritten(explained, (), (), edits)
    read = [each for each in touched if not each.use.writes]
    if not read or statement.kind.startswith(_LEAVES_NAMES):
        return Rewritten(statement, (), ())
    try:
        tree = parse(statement.sql, whole=True)
    except NotParsed:
        raise TooLarge from None
    found = list(nodes(tree.node))
    named = mentions_among(found)
    parameters = Parameters(salt)
    by_relation: dict[int, Source] = {}
    for each in read:
        if each.relation.oid not in by_relation:
            by_relation[each.relation.oid] = source(each.relation, each.masks, rules.catalog, parameters, named)
    sources = {each.use.position: by_relation[each.relation.oid] for each in read}
    changed, edits = rewrite(statement, tree, found, sources)
    ordered = any(marks_of(rules).ordered(each.relation) for each in read)
    return Rewritten(changed, tuple(parameters.values), _columns(read, named), edits, keeps_heap_order=ordered)


def _columns(read: list[_Touched], named: Mentions) -> tuple[str, ...]:
    """The masked columns that the statement may use; names alone tell, so there may be more than the truth."""
    found: dict[str, None] = {}
    for each in read:
        for name in each.masks:
            if named.any_of((name,)):
                found[f"{each.relation.qualified}.{name}"] = None
    return tuple(found)


_REASONS: Final[dict[Stage, str]] = {
    "gate": (
        "this statement uses masked columns in a way that cannot be masked safely, so it did not run; leave them out, or read "
        "them with a plain SELECT"
    ),
    "salt": "the gateway is not set up to mask these columns, so the statement did not run",
    "shadow": "the masks of this database cannot be matched with its tables at the moment, so the statement did not run",
    "rewrite": "the gateway could not mask this statement, so it did not run; write it in a simpler form",
}


def _not_rewritten(failure: NotRewritten) -> Withheld:
    if isinstance(failure, TooLarge):
        return Withheld("gate", str(failure), str(failure))
    return _withheld("gate" if failure.shape else "rewrite", str(failure))


def _withheld(stage: Stage, reason: str) -> Withheld:
    return Withheld(stage, _REASONS[stage], reason)
