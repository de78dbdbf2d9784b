"""Audit rows for people: one line an event, with the words of its payload that matter (decision 14)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from gatewayd.audit.reader import AuditRow
from gatewayd.cli.output import Output, cell, json_line, style_of, visible

_SQL_CHARACTERS: Final = 300


def show(output: Output, row: AuditRow) -> None:
    """The row as a line on a terminal, whole as JSON otherwise."""
    if not output.is_table:
        output.json(row)
        return
    word, told = summary(row)
    output.line(
        (f"{moment(row.ts)}  ", "dim"),
        (f"{visible(row.database):<12} ", ""),
        (f"{visible(row.agent_name or '-'):<16.16} ", "cyan"),
        (f"{word:<15} ", style_of(word)),
        (told, ""),
        (f"  {place(row)}  {row.id}", "dim"),
    )


def place(row: AuditRow) -> str:
    """Where the row stands in the file's tree, as `audit verify` names it."""
    return "no seq" if row.seq is None else f"seq {row.seq}"


def summary(row: AuditRow) -> tuple[str, str]:
    """The event in one word, and what it says in one line."""
    payload: dict[str, Any] = msgspec.json.decode(row.payload)
    match row.event_type:
        case "ATTEMPTED":
            counts = "(counted for a reviewer) " if payload.get("preview_of") else ""
            return "ATTEMPTED", counts + one_line(payload["sql_raw"])
        case "DECIDED" if payload["decision"] == "DENY":
            return "DENY", f"{payload.get('policy_rule')}: {visible(payload.get('reason', ''))}"
        case "DECIDED":
            by = f" approved by {visible(payload['approved_by'])}" if payload.get("approved_by") else ""
            return "ALLOW", f"{payload.get('statement_type', '')} {cell(payload.get('tables_touched') or [])}{by}".strip()
        case "EXECUTED":
            return "EXECUTED", _executed(payload)
        case "FAILED":
            return "FAILED", f"{payload['error_class']}: {visible(payload['error_message'])}"
        case "ERASED":
            ranges = ", ".join(f"{first}-{last}" for first, last in payload["seqs"][:3])
            more = " …" if len(payload["seqs"]) > 3 else ""
            return "ERASED", f"details of seq {ranges}{more}: {visible(payload['reason'])}"
        case _:
            changed = cell(payload.get("sections_changed") or []) or "nothing"
            return row.event_type, f"by {visible(str(payload.get('source')))}: {changed} changed"


def _executed(payload: dict[str, Any]) -> str:
    said: list[str] = []
    if payload.get("rows_returned") is not None:
        said.append(_rows(payload["rows_returned"]))
    if payload.get("rows_affected") is not None:
        said.append(f"{_rows(payload['rows_affected'])} affected")
    if payload.get("truncated"):
        said.append("truncated")
    if payload.get("columns_masked"):
        said.append(f"masked {cell(payload['columns_masked'])}")
    if payload.get("masking_rejected"):
        said.append(f"withheld: {visible(str(payload.get('masking_reason')))}")
    return f"{', '.join(said) or 'done'} in {payload['exec_ms']} ms (+{payload['overhead_ms']} ms)"


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def details(payload: msgspec.Raw) -> Sequence[tuple[str, str]]:
    """Every field of a payload by name; SQL keeps its lines."""
    fields: dict[str, Any] = msgspec.json.decode(payload)
    return [
        (
            key,
            visible(value, lines=True)
            if isinstance(value, str)
            else cell(value)
            if _is_flat(value)
            else visible(json_line(value)),
        )
        for key, value in fields.items()
        if value is not None
    ]


def _is_flat(value: object) -> bool:
    return not isinstance(value, dict) and not (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def one_line(sql: str) -> str:
    """The statement on one line, for lists."""
    cut = sql if len(sql) <= _SQL_CHARACTERS else sql[:_SQL_CHARACTERS] + "…"
    return " ".join(visible(cut).split())


def moment(ts_ms: int) -> str:
    """Local time, as on the person's clock."""
    return datetime.fromtimestamp(ts_ms / 1000).astimezone().isoformat(sep=" ", timespec="milliseconds")[:23]
