"""The types of operands, as far as constants, casts and columns of tables tell them. Pure.

None: not known here. Everything else that an expression may be (a call, an operator, a subquery's column) is not known.
"""

from collections.abc import Callable
from typing import Final

from gatewayd.catalog import Catalog, Relation
from gatewayd.sql.bind.coercion import UNKNOWN
from gatewayd.sql.facts.scope import UNLIMITED, RangeItem, Scope
from gatewayd.sql.text.parse import Node

_BOOLEAN: Final = 16
_BOOLEANS: Final = ("BoolExpr", "BooleanTest", "NullTest")
_INT4, _INT8, _NUMERIC, _BIT = 23, 20, 1700, 1560
_VALUES: Final = {
    "SVFOP_CURRENT_DATE": 1082,
    "SVFOP_CURRENT_TIMESTAMP": 1184,
    "SVFOP_LOCALTIMESTAMP": 1114,
    "SVFOP_CURRENT_USER": 19,
    "SVFOP_SESSION_USER": 19,
    "SVFOP_USER": 19,
}
_DIGITS: Final = frozenset("0123456789.eE+-")
SEARCHED: Final = ("pg_catalog", "public")


class OperandTypes:
    """Answers for one statement over one catalog."""

    def __init__(self, catalog: Catalog, relation: Callable[[int], Relation | None]) -> None:
        """`relation`: what the statement's relation of this number is."""
        self._overloads = catalog.overloads
        self._catalog = catalog
        self._relation_of = relation

    def of(self, node: Node, scope: Scope) -> int | None:
        """The oid of an expression's type, UNKNOWN for an untyped constant."""
        [(kind, body)] = node.items()
        match kind:
            case "A_Const":
                return _of_constant(body)
            case "TypeCast":
                return self.named(body["typeName"])
            case "ColumnRef":
                return self._of_column(body["fields"], scope)
            case "CollateClause":
                return self.of(body["arg"], scope)
            case "SQLValueFunction":
                return _VALUES.get(body.get("op", ""))
            case _ if kind in _BOOLEANS:
                return _BOOLEAN
        return None

    def named(self, type_name: Node) -> int | None:
        """The type that a TypeName means."""
        names = [name["String"].get("sval", "") for name in type_name.get("names", ())]
        if len(names) not in (1, 2) or type_name.get("setof") or type_name.get("pct_type"):
            return None
        name = f"_{names[-1]}" if "arrayBounds" in type_name else names[-1]
        schemas = (names[0],) if len(names) == 2 else SEARCHED
        found = (self._overloads.named.get((schema, name)) for schema in schemas)
        return next((oid for oid in found if oid is not None), None)

    def _of_column(self, fields: list[Node], scope: Scope) -> int | None:
        words = [field["String"].get("sval", "") if "String" in field else "" for field in fields]
        if not all(words) or scope.limit != UNLIMITED:
            return None
        if len(words) == 2:
            item = scope.find(words[0])
            return self._column(item, words[1]) if item is not None else None
        if len(words) > 1:
            return None
        found: set[int | None] = set()
        for item in scope.visible():
            if item.kind != "relation":
                return None
            relation = self._relation(item)
            if relation is None:
                return None
            if self._catalog.has_column(relation, words[0]):
                found.add(self._column(item, words[0]))
        return found.pop() if len(found) == 1 else None  # none: a level further out, or a system column

    def _column(self, item: RangeItem, name: str) -> int | None:
        relation = self._relation(item)
        column = next((each for each in relation.columns if each.name == name), None) if relation is not None else None
        return self._overloads.printed.get(column.type) if column is not None else None

    def _relation(self, item: RangeItem) -> Relation | None:
        if item.kind != "relation" or item.relation is None or item.aliases:
            return None
        return self._relation_of(item.relation.index)


def _of_constant(body: Node) -> int | None:
    """As make_const takes it."""
    if "ival" in body:
        return _INT4
    if "boolval" in body:
        return _BOOLEAN
    if "bsval" in body:
        return _BIT
    if "sval" in body or body.get("isnull"):
        return UNKNOWN
    text = body.get("fval", {}).get("fval", "")
    if not text or not set(text) <= _DIGITS:
        return None
    if not text.removeprefix("-").isdigit():
        return _NUMERIC
    number = int(text)
    return _INT4 if -(2**31) <= number < 2**31 else _INT8 if -(2**63) <= number < 2**63 else _NUMERIC
