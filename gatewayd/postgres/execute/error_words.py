"""Failures whose words may carry values that policy hides: the SQLSTATE's meaning stands instead (decisions 3.10, 10).

Codes: https://www.postgresql.org/docs/current/errcodes-appendix.html. Pure.
"""

from collections.abc import Sequence
from typing import Final

from gatewayd.postgres.execute.result import ExecutionFailed

_SAY_NO_VALUES: Final = frozenset({"08", "0A", "25", "28", "3D", "3F", "40", "42", "53", "54", "57", "58"})
"""Classes whose texts name objects, types and settings, never values of rows."""
_CLASSES: Final = {
    "21": "cardinality violation",
    "22": "data exception",
    "23": "integrity constraint violation",
    "25": "not possible in this state of the transaction",
    "40": "the transaction was rolled back",
    "42": "syntax error or access rule violation",
    "44": "a row violates the check option of a view",
    "55": "object not in the state needed",
    "P0": "a function raised an error",
}
_CODES: Final = {
    "22001": "a value is too long for its column",
    "22003": "numeric value out of range",
    "22007": "invalid date or time format",
    "22008": "date or time out of range",
    "22012": "division by zero",
    "2201B": "invalid regular expression",
    "2201E": "invalid argument for a logarithm",
    "2201F": "invalid argument for a power",
    "22023": "invalid parameter value",
    "22032": "invalid JSON text",
    "22P02": "invalid text representation: a value cannot be converted to the type asked for",
    "23502": "not-null violation",
    "23503": "foreign key violation",
    "23505": "unique violation",
    "23514": "check violation",
    "23P01": "exclusion violation",
    "42501": "insufficient privilege",
    "55P03": "lock not available",
    "57014": "the statement was cancelled, by its timeout or from outside",
}


def told_less(failure: ExecutionFailed, *rewritings: Sequence[tuple[int, int, int]]) -> ExecutionFailed:
    """The same failure without what could be a value that policy hides. The edits of each of `rewritings`, the last one first,
    lead its position back to the agent's own text.

    Code that the statement set off may raise any code with any words: from there only the code is told.
    """
    position = failure.position
    for edits in rewritings:
        position = _before(position, edits) if position is not None else None
    code = failure.sqlstate
    if code[:2] in _SAY_NO_VALUES and not failure.is_inner:
        return ExecutionFailed(code, failure.message, failure.hint, position)
    meaning = _CODES.get(code) or _CLASSES.get(code[:2], "the database refused the statement")
    return ExecutionFailed(
        code, f"{meaning} (the database's own words are withheld: they could carry a hidden value)", None, position
    )


def _before(position: int, edits: Sequence[tuple[int, int, int]]) -> int | None:
    """A 1-based position in the rewritten text as one in the agent's; None inside of what was put in."""
    at, moved = position - 1, 0
    for start, end, length in edits:
        begins = start + moved
        if at < begins:
            break
        if at < begins + length:
            return None
        moved += length - (end - start)
    return at - moved + 1
