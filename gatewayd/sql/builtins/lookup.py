"""What each built-in function, catalog relation, operator, type and setting of PostgreSQL may do (decisions 2, 3.2, 3.5).

Look-ups only; the reviewed lists are data beside this module: `functions.py` and `objects.py`. They hold the
union of the server versions at hand; a name that no list holds is None here and denied by `policy/decide/decision.py`.
"""

import enum
from collections.abc import Iterable
from functools import cache
from typing import Final

import msgspec

from gatewayd.sql.builtins import functions as builtins_functions
from gatewayd.sql.builtins import objects as builtins_objects


class Clearance(enum.Enum):
    """Whether a policy may allow a built-in object."""

    ALLOWED = "allowed"
    OPEN_ONLY = "open only"  # only where the policy hides nothing (Policy.hides_something)
    REFUSED = "refused"  # for a relation: needs its own exact key


class Builtin(msgspec.Struct, frozen=True):
    """`reason` completes "`name` …" ("reads or lists files of the server"); "" when ALLOWED.

    With `columns`, the clearance is because of these columns alone: a relation whose statement is proved to read none of them
    (no `*`, no whole row, no column alias list, no NATURAL JOIN over it) counts as ALLOWED. Without the proof it stands.
    """

    clearance: Clearance
    reason: str = ""
    columns: frozenset[str] = frozenset()


ALLOWED: Final = Builtin(Clearance.ALLOWED)
SUPPORT_ROUTINE: Final = "is internal machinery of the server, not for statements"
"""The reason of functions that aggregates, indexes and the like are made of."""
CONVERSION_ROUTINE: Final = "is a conversion routine; write a cast instead"
"""The reason of functions that types are made of."""

RUNS_ANY_CONVERSION: Final = frozenset(
    {
        "json_populate_record",
        "json_populate_recordset",
        "jsonb_populate_record",
        "jsonb_populate_record_valid",
        "jsonb_populate_recordset",
        "pg_input_error_info",
        "pg_input_is_valid",
    }
)
"""Functions that may run the input conversion of a type which the statement does not name as a type (the columns of a row given
as argument, a type name in a text), and so a domain's CHECK: safe only where no user-defined type reaches a user-defined
function, or where the text is a constant: then its type counts among those that the statement names."""

HARMLESS_WITH: Final = frozenset({("ts_rewrite", 3)})
"""Overloads, by their number of arguments, that do none of what their name is refused for: with two, ts_rewrite runs the SQL text
that it is given."""

INFORMATION_SCHEMA_PASSWORDS: Final = frozenset({"_pg_user_mappings", "user_mapping_options"})
"""The views of information_schema that give the options of user mappings, passwords among them, to the role they belong to."""

TABLESAMPLE_METHODS: Final = frozenset({"bernoulli", "system"})


def function(name: str, schema: str = "pg_catalog") -> Builtin | None:
    """The verdict on every overload of a built-in function together; None when there is no such name.

    `schema` is "pg_catalog" or "information_schema", whose few helper functions JDBC drivers call.
    """
    if schema == "information_schema":
        return ALLOWED if name in _INFORMATION_SCHEMA_FUNCTIONS else None
    return _functions().get(name)


def function_names() -> Iterable[str]:
    """Of pg_catalog."""
    return _functions().keys()


def relation(name: str) -> Builtin | None:
    """The verdict on reading a relation of pg_catalog."""
    return _relations().get(name)


def operator(name: str) -> bool:
    """Whether pg_catalog has an operator of this name; all of them are harmless (a test checks the functions behind them)."""
    return name in _OPERATORS


def type_name(name: str) -> Builtin | None:
    """The verdict on a type of pg_catalog by its internal name ("int4", "_text"), row types of its relations included."""
    plain = name.removeprefix("_")
    if plain in _TYPES or plain in _relations():
        return ALLOWED
    return _PSEUDO_TYPE if plain in _PSEUDO_TYPES else None


def setting(name: str) -> Builtin | None:
    """The verdict on SHOW of a setting, in any case; None for one that is not on the short list."""
    folded = name.lower()
    if folded == "all":
        return _SHOW_ALL
    return ALLOWED if folded in _SETTINGS else None


_INFORMATION_SCHEMA_FUNCTIONS: Final = frozenset(builtins_objects.INFORMATION_SCHEMA_FUNCTIONS.split())
_OPERATORS: Final = frozenset(builtins_objects.OPERATORS.split())
_TYPES: Final = frozenset(builtins_objects.TYPES.split())
_PSEUDO_TYPES: Final = frozenset(builtins_objects.PSEUDO_TYPES.split())
_SETTINGS: Final = frozenset(builtins_objects.SETTINGS.split())
_PSEUDO_TYPE: Final = Builtin(Clearance.REFUSED, SUPPORT_ROUTINE)
_SHOW_ALL: Final = Builtin(Clearance.REFUSED, "shows every setting, also paths and secrets; name one, such as server_version")


@cache
def _functions() -> dict[str, Builtin]:
    return _verdicts((verdict, reason, frozenset(), names.split()) for verdict, reason, names in builtins_functions.SECTIONS)


@cache
def _relations() -> dict[str, Builtin]:
    return _verdicts(
        (verdict, reason, frozenset(columns.split()), names.split())
        for verdict, reason, columns, names in builtins_objects.RELATIONS
    )


def _verdicts(sections: Iterable[tuple[str, str, frozenset[str], list[str]]]) -> dict[str, Builtin]:
    found: dict[str, Builtin] = {}
    for verdict, reason, columns, names in sections:
        kind = Clearance(verdict)
        # A section of ALLOWED says for the reviewer why it is harmless; that is no reason to show an agent.
        builtin = ALLOWED if kind is Clearance.ALLOWED else Builtin(kind, reason, columns)
        found.update(dict.fromkeys(names, builtin))
    return found
