"""The types of a stored row's values. SQLite does not enforce them, so a row that was put in by hand may have others."""

from typing import Final

from gatewayd.audit.rows import COLUMNS

STORED_COLUMNS: Final = (*COLUMNS, "seq", "leaf", "salt")
USUAL_TYPES: Final[set[tuple[type, ...]]] = set()
"""The types of whole rows that were found correct: a look-up here spares most rows the check of each column."""
_NULLABLE: Final = frozenset({"agent_name", "agent_version", "agent_intent", "mcp_token_id", "seq", "leaf", "salt"})
_TYPES: Final = dict.fromkeys(COLUMNS, str) | {"ts": int, "schema_version": int, "seq": int, "leaf": bytes, "salt": bytes}
_USUAL_KEPT: Final = 1000


def wrong_type(row: tuple[object, ...]) -> str:
    """The name of the first column whose value has another type than its column; "" if there is none.

    The types of a correct row are added to `USUAL_TYPES`.
    """
    for name, value in zip(STORED_COLUMNS, row, strict=True):
        if type(value) is not _TYPES[name] and not (value is None and name in _NULLABLE):
            return name
    leaf, salt = row[13], row[14]
    if row[12] is not None and leaf is None:
        return "leaf"
    if len(USUAL_TYPES) < _USUAL_KEPT and (salt is None or type(salt) is bytes):
        USUAL_TYPES.add(tuple(map(type, row)))
    return ""
