"""Which overloads and casts PostgreSQL takes in one statement, exact or undecided. Pure.

Asked only where an overload or a cast of a user stands beside a built-in one and may not run: then the statement is walked again
with its operands. What is undecided is None: then every candidate of the name counts.
"""

from collections.abc import Callable
from functools import cached_property

from gatewayd.catalog import FIRST_USER_OID, Catalog, OperatorOverload, Relation
from gatewayd.sql.bind import candidates
from gatewayd.sql.bind.coercion import UNKNOWN, Coercion, Undecided
from gatewayd.sql.bind.operand_types import OperandTypes
from gatewayd.sql.builtins import lookup as builtins
from gatewayd.sql.facts.analyze import watched
from gatewayd.sql.facts.walk import Watched


class Bound:
    """One statement over one catalog; nothing is done before the first question."""

    def __init__(self, sql: str, catalog: Catalog, relation: Callable[[int], Relation | None]) -> None:
        self._sql = sql
        self._overloads = catalog.overloads
        self._coercion = Coercion(catalog.overloads)
        self._types = OperandTypes(catalog, relation)

    def functions(self, name: str) -> frozenset[int] | None:
        """The functions that the unqualified calls of this name take."""
        overloads = self._overloads.functions.get(name)
        if overloads is None or builtins.type_name(name) is not None:  # f(x) may be a conversion to type f
            return None
        return self._taken("function", name, lambda types: candidates.function(self._coercion, overloads, types).oid)

    def operators(self, name: str) -> frozenset[int] | None:
        """The operators that the unqualified uses of this name take."""
        overloads = self._overloads.operators.get(name)
        if overloads is None:
            return None
        return self._taken("operator", name, lambda types: self._operator(overloads, types))

    def _operator(self, overloads: tuple[OperatorOverload, ...], types: tuple[int, ...]) -> int:
        left, *right = types
        if len(right) > 1:
            # IN: members with columns in them are compared one by one, the others as an array of their common type.
            known = {each for each in types if each != UNKNOWN}
            if len(known) != 1 or left == UNKNOWN:
                raise Undecided
            right = [*set(right), self._coercion.base(left) if UNKNOWN in right else left]
        taken = {candidates.operator(self._coercion, overloads, left, each).oid for each in right}
        if len(taken) > 1:
            raise Undecided
        return taken.pop()

    def casts_to(self, schema: str | None, name: str) -> bool:
        """Whether every use of a built-in type's name is a cast that no function of a user can have a part in: from a constant
        without a type, or from a type of PostgreSQL's own where pg_cast holds nothing of a user for the two."""
        target = self._overloads.named.get(("pg_catalog", name)) if schema in (None, "pg_catalog") else None
        if target is None or target >= FIRST_USER_OID or self._watched is None:
            return False
        uses = [each for each in self._watched if each.name == (schema, name)]
        found = [each for each in uses if each.kind == "cast"]
        if len(found) != sum(each.kind == "type" for each in uses) or any(each.kind == "function" for each in uses):
            return False
        try:
            return all(self._is_own(self._operands(each)[0], target) for each in found)
        except Undecided:
            return False

    def _is_own(self, source: int, target: int) -> bool:
        if source == UNKNOWN:
            return True
        source = self._coercion.base(source)
        cast = self._overloads.casts.get((source, target))
        elements = self._coercion.value(source).element or self._coercion.value(target).element
        return source < FIRST_USER_OID and not elements and (cast is None or cast.function < FIRST_USER_OID)

    @cached_property
    def _watched(self) -> list[Watched] | None:
        walk = watched(self._sql)
        return walk.watched if walk is not None else None

    def _taken(self, kind: str, name: str, choose: Callable[[tuple[int, ...]], int]) -> frozenset[int] | None:
        if self._watched is None:
            return None
        try:
            uses = [each for each in self._watched if each.kind == kind and each.name == (None, name)]
            return frozenset(choose(self._operands(each)) for each in uses) if uses else None
        except Undecided:
            return None

    def _operands(self, each: Watched) -> tuple[int, ...]:
        if each.operands is None or each.scope is None:
            raise Undecided
        types = [0 if node is None else self._types.of(node, each.scope) for node in each.operands]
        if None in types:
            raise Undecided
        return tuple(found for found in types if found is not None)
