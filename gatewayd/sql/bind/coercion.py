"""Whether PostgreSQL converts a value of one type to another by itself (parse_coerce.c: can_coerce_type, implicit). Pure.

Answers for base types, enums, ranges, arrays and domains over them. What may be a row, or an array of rows, is undecided.
"""

from typing import Final

from gatewayd.catalog import Overloads, TypeShape

UNKNOWN: Final = 705
"""The type of a string constant or NULL that nothing has given a type yet."""
ANY: Final = 2276
_ALIKE: Final = {5077: 2283, 5078: 2277, 5079: 2776, 5080: 3831, 4538: 4537}
"""anycompatible, …array, …nonarray, …range, …multirange as anyelement and its kin, for one argument of them."""
_POLYMORPHIC: Final = frozenset({2277, 2283, 2776, 3500, 3831, 4537, *_ALIKE})
_VECTORS: Final = frozenset({22, 30})  # int2vector, oidvector: no arrays to coercion


class Undecided(Exception):
    """PostgreSQL's choice follows from something that is not known here: every candidate counts."""


class Coercion:
    """The types and casts of one catalog snapshot."""

    def __init__(self, overloads: Overloads) -> None:
        self._overloads = overloads

    def value(self, oid: int) -> TypeShape:
        """A type that a value has here. Raises Undecided for rows and arrays of them, and for types that nothing is known of."""
        found = self._overloads.shapes.get(oid)
        if found is None or found.kind in "cp" or (found.element and self._is_row(found.element)):
            raise Undecided
        return found

    def _is_row(self, oid: int) -> bool:
        shape = self._overloads.shapes.get(oid)  # types of tables are not among them
        return shape is None or shape.kind in "cp"

    def base(self, oid: int) -> int:
        """The type below all domains. Raises Undecided as `value` does."""
        while (shape := self.value(oid)).kind == "d":
            oid = shape.base
        return oid

    def category(self, oid: int) -> tuple[str, bool]:
        """pg_type's category of a parameter's type, and whether the type is preferred in it."""
        shape = self._overloads.shapes.get(oid)
        return (shape.category, shape.preferred) if shape is not None else ("C", False)

    def coerces(self, actual: tuple[int, ...], formal: tuple[int, ...]) -> bool:
        """Whether a call with these argument types fits these parameters. Raises Undecided."""
        fits = all(
            f == ANY or a in (f, UNKNOWN) or (self._fits(a, f) if f in _POLYMORPHIC else self.pathway(a, f, "i"))
            for a, f in zip(actual, formal, strict=True)
        )
        polymorphic = [a for a, f in zip(actual, formal, strict=True) if f in _POLYMORPHIC]
        if fits and len(polymorphic) > 1 and any(a != UNKNOWN for a in polymorphic):
            raise Undecided  # whether they agree with each other is not looked at
        return fits

    def _fits(self, actual: int, formal: int) -> bool:
        """Whether a value may stand for a polymorphic parameter that is the only one."""
        shape = self.value(self.base(actual))
        match _ALIKE.get(formal, formal):
            case 2277:
                return bool(shape.element)
            case 2776:
                return not shape.element
            case 3500:
                return shape.kind == "e"
            case 3831:
                return shape.kind == "r"
            case 4537:
                return shape.kind == "m"
        return True

    def pathway(self, source: int, target: int, contexts: str) -> bool:
        """find_coercion_pathway by pg_cast, arrays by their elements; `contexts` are those in which a cast may stand."""
        source = self.base(source)
        target = self._base_of_parameter(target)
        if source == target:
            return True
        cast = self._overloads.casts.get((source, target))
        if cast is not None:
            return cast.context in contexts
        shape = self._overloads.shapes.get(target)
        elements = self.value(source).element, shape.element if shape is not None else 0
        if all(elements) and _VECTORS.isdisjoint((source, target)):
            return self.pathway(*elements, contexts)
        return False

    def _base_of_parameter(self, oid: int) -> int:
        while (shape := self._overloads.shapes.get(oid)) is not None and shape.kind == "d":
            oid = shape.base
        return oid
