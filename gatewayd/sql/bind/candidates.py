"""Which overload PostgreSQL takes (parse_func.c, parse_oper.c). Pure.

Rule by rule as the server does it: an exact match; else the candidates that the arguments can be converted to, of them those with
most exact matches, then with most preferred types, then by the categories of untyped constants, then by the one known type.
"""

from collections.abc import Sequence
from typing import TypeVar

from gatewayd.catalog import OperatorOverload, Overload
from gatewayd.sql.bind.coercion import UNKNOWN, Coercion, Undecided

T = TypeVar("T")
_Candidates = list[tuple[tuple[int, ...], T]]


def function(coercion: Coercion, overloads: Sequence[Overload], actual: tuple[int, ...]) -> Overload:
    """The function of a plain call with arguments of these types (func_get_detail). Raises Undecided, also where none fits."""
    candidates: _Candidates[Overload] = []
    seen: set[tuple[int, ...]] = set()
    for each in sorted(overloads, key=lambda each: each.schema != "pg_catalog"):  # searched first
        if each.is_variadic or (each.defaults and len(each.arguments) - each.defaults <= len(actual) < len(each.arguments)):
            raise Undecided
        if len(each.arguments) == len(actual) and each.arguments not in seen:
            seen.add(each.arguments)
            candidates.append((each.arguments, each))
    exact = next((each for arguments, each in candidates if arguments == actual), None)
    return exact or _best(coercion, candidates, actual)


def operator(coercion: Coercion, overloads: Sequence[OperatorOverload], left: int, right: int) -> OperatorOverload:
    """The operator between operands of these types, `left` 0 for a prefix operator (oper, left_oper). Raises Undecided."""
    by_types: dict[tuple[int, ...], OperatorOverload] = {}
    for each in sorted(overloads, key=lambda each: each.schema != "pg_catalog"):
        if bool(each.left) == bool(left):
            by_types.setdefault((each.left, each.right) if left else (each.right,), each)
    actual = (left, right) if left else (right,)
    exact = by_types.get(actual) if not left else _exact(coercion, by_types, left, right)
    return exact or _best(coercion, list(by_types.items()), actual)


def _exact(coercion: Coercion, by_types: dict[tuple[int, ...], T], left: int, right: int) -> T | None:
    """binary_oper_exact: an untyped constant is first taken to be of the other operand's type."""
    was_unknown = (left == UNKNOWN) != (right == UNKNOWN)
    if was_unknown:
        left = right = right if left == UNKNOWN else left
    found = by_types.get((left, right))
    if found is None and was_unknown:
        base = coercion.base(left)
        found = by_types.get((base, base)) if base != left else None
    return found


def _best(coercion: Coercion, candidates: _Candidates[T], actual: tuple[int, ...]) -> T:
    """func_match_argtypes, then func_select_candidate."""
    left = [(formal, each) for formal, each in candidates if coercion.coerces(actual, formal)]
    if len(left) > 1:
        left = _selected(coercion, left, actual)
    if len(left) != 1:
        raise Undecided
    return left[0][1]


def _selected(coercion: Coercion, left: _Candidates[T], actual: tuple[int, ...]) -> _Candidates[T]:
    known = [coercion.base(each) if each != UNKNOWN else UNKNOWN for each in actual]
    left = _most(left, [sum(a == f != UNKNOWN for a, f in zip(known, formal, strict=True)) for formal, _ in left])
    if len(left) == 1:
        return left

    def preferred(a: int, f: int) -> bool:
        if a == UNKNOWN:
            return False
        return a == f or coercion.category(f) == (coercion.category(a)[0], True)

    left = _most(left, [sum(preferred(a, f) for a, f in zip(known, formal, strict=True)) for formal, _ in left])
    if len(left) == 1 or UNKNOWN not in known:
        return left
    left = _by_category(coercion, left, [index for index, each in enumerate(known) if each == UNKNOWN])
    types = {each for each in known if each != UNKNOWN}
    if len(left) > 1 and len(types) == 1:
        same = (types.pop(),) * len(known)
        fitting = [(formal, each) for formal, each in left if coercion.coerces(same, formal)]
        if len(fitting) == 1:
            return fitting
    return left


def _most(left: _Candidates[T], matches: list[int]) -> _Candidates[T]:
    best = max(matches)
    return [each for each, count in zip(left, matches, strict=True) if count == best]


def _by_category(coercion: Coercion, left: _Candidates[T], unknowns: list[int]) -> _Candidates[T]:
    """Those that take each untyped constant as a string, if any does, else as the one category that all of them take."""
    slots: dict[int, tuple[str, bool]] = {}
    for index in unknowns:
        found = [coercion.category(formal[index]) for formal, _ in left]
        category = "S" if any(each == "S" for each, _ in found) else found[0][0]
        if category != "S" and any(each != category for each, _ in found):
            return left
        slots[index] = category, any(preferred for each, preferred in found if each == category)
    kept = [
        (formal, each)
        for formal, each in left
        if all(
            coercion.category(formal[index])[0] == category and (coercion.category(formal[index])[1] or not has_preferred)
            for index, (category, has_preferred) in slots.items()
        )
    ]
    return kept or left
