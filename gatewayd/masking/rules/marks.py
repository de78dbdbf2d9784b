"""A policy's masks as the marks that lineage follows, and what follows from a marked output column (decision 10). Pure."""

from collections.abc import Mapping
from typing import Final

from gatewayd.catalog import Relation
from gatewayd.masking.results.post_exec import Masked, PostExec
from gatewayd.masking.rules.families import Family, family
from gatewayd.masking.rules.mask_rules import NONE, MaskRules
from gatewayd.masking.transforms.in_python import Keyed, transform
from gatewayd.policy.file.model import Mask, NullOut
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.lineage.origins import ColumnSource, Entangled, Mark, MarkedColumns, Plain, TracedColumn
from gatewayd.sql.lineage.whole_statement import columns_of_relation

WITHHELD: Final = "withheld"
_VIEWS: Final = ("view", "materialized view")
_NEVER_ROWS: Final = frozenset(
    {
        "bit",
        "bit varying",
        "boolean",
        "bytea",
        "cidr",
        "inet",
        "interval",
        "macaddr",
        "macaddr8",
        "money",
        "time with time zone",
        "time without time zone",
        "tsvector",
        "xml",
    }
)


class _Rule(tuple[Mask, Family]):
    __slots__ = ()


def marks_of(rules: MaskRules) -> MarkedColumns:
    """The marks of these rules, kept with them."""
    if rules.marks is None:
        rules.marks = _made(rules)
    return rules.marks


def _made(rules: MaskRules) -> MarkedColumns:
    catalog = rules.catalog

    def of(relation: Relation) -> Mapping[str, Mark]:
        if relation.kind in _VIEWS:
            masks = rules.policy.column_masks.get((relation.schema, relation.name), NONE)
        else:
            masks = rules.masks(relation)
        types = {column.name: column.type for column in relation.columns} if masks else {}
        return {name: mark(mask, types[name]) for name, mask in masks.items() if name in types}

    def mark(mask: Mask, type_: str) -> Mark:
        kind = family(type_, catalog)
        return Mark(_Rule((mask, kind)), not isinstance(mask, NullOut) and _is_null_or_not(type_, kind))

    def both(one: Mark, other: Mark) -> Mark:
        return one if one == other else Mark(_Rule((NullOut(), "other")), keeps_null=False)

    return MarkedColumns(catalog, of, both)


def _is_null_or_not(type_: str, kind: Family) -> bool:
    """Whether IS NULL is true of NULL alone, and NULL is told from every value: not of rows, nor of JSON, whose own null is
    masked as NULL."""
    return kind != "json" and (kind != "other" or type_.removesuffix("[]") in _NEVER_ROWS or type_.endswith("[]"))


def kinds(rules: MaskRules, relation: Relation) -> Mapping[str, str]:
    """The masked columns of a table or view, with the kind of their mask; `withheld` for what can be masked by none."""
    try:
        columns = columns_of_relation(relation, marks_of(rules))
    except (Entangled, RecursionError):
        return {column.name: WITHHELD for column in relation.columns}
    return {column.name: _kind(column.source) for column in columns if column.source is not None}


def _kind(source: ColumnSource) -> str:
    if not isinstance(source, Plain):
        return WITHHELD
    return str(mask_of(source).__struct_config__.tag)


def mask_of(source: Plain) -> Mask:
    """The mask of a column that is returned unchanged."""
    rule = source.mark.rule
    assert isinstance(rule, _Rule)
    return rule[0]


def masking_of(statement: Statement, columns: tuple[TracedColumn, ...], marks: MarkedColumns, salt: bytes) -> PostExec:
    """The masks over the rows of a statement, by its result columns."""
    masked: list[Masked] = []
    sources: dict[str, None] = {}
    for place, column in enumerate(columns):
        if isinstance(column.source, Plain):
            rule = column.source.mark.rule
            assert isinstance(rule, _Rule)
            mask, kind = rule
            masked.append(Masked(place, column.name, mask, kind, transform(mask, salt) if isinstance(mask, Keyed) else None))
            sources.update(dict.fromkeys(column.source.columns))
    relations = (marks.locate(use.schema, use.name) for use in statement.relations)
    ordered = any(each is not None and marks.ordered(each) for each in relations)
    return PostExec(len(columns) if masked else 0, tuple(masked), tuple(sources), ordered)
