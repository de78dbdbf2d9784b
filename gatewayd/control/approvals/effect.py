"""What a held write would do, in a sentence: from its kind, its tables and the gateway's count. Pure."""

from typing import Final

from gatewayd.approvals.messages import ROWS_COUNTED, GateAsk

_VERBS: Final = {
    "INSERT": "inserts", "UPDATE": "changes", "DELETE": "deletes", "MERGE": "inserts, changes or deletes", "TRUNCATE": "empties",
}  # fmt: skip


def effect_of(ask: GateAsk) -> str:
    """`Deletes 12 rows`, `Changes rows: how many was not counted`, `Runs ALTER TABLE`."""
    kind = ask.statement_type.split(" ", 1)[0] if ask.statement_type else ""
    verb = _VERBS.get(kind)
    if kind == "TRUNCATE":
        return "Empties whole tables"
    if ask.write_class == "schema_changes":
        return f"Changes the schema: {ask.statement_type}"
    if verb is None:
        return f"Runs {ask.statement_type or 'a statement'}"
    return f"{verb.capitalize()} {rows_of(ask)}"


def rows_of(ask: GateAsk) -> str:
    rows = ask.preview.rows if ask.preview is not None else None
    if rows is None:
        return "rows, how many is not known"
    if rows >= ROWS_COUNTED:
        return f"more than {ROWS_COUNTED - 1:,} rows"
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def bound_for(ask: GateAsk) -> int | None:
    """The bound to offer: as many rows as were counted; None where they were not."""
    rows = ask.preview.rows if ask.preview is not None else None
    return rows if rows is not None and rows < ROWS_COUNTED else None
