"""Exports of a search: CSV for spreadsheets, JSON lines with every event, and with proofs where they are asked for."""

import csv
import io
from collections.abc import Sequence
from typing import Final

import msgspec

from gatewayd.control.audit.one_query import OneQuery
from gatewayd.control.audit.proof_text import Proof
from gatewayd.control.audit.summary import QuerySummary

COLUMNS: Final = (
    "ts", "query_id", "gateway_id", "database", "outcome", "agent_name", "agent_version", "token_id", "intent", "sql",
    "fingerprint", "statement_type", "decision", "rule", "reason", "tables", "rows", "exec_ms", "error",
)  # fmt: skip
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")  # spreadsheets take the wide ones, too


class ExportedQuery(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of JSON: the query with its events; `proof` with the keys that it is checked with, or why there is none."""

    query: OneQuery
    proof: Proof | None = None
    no_proof: str | None = None


def as_csv(queries: Sequence[QuerySummary], *, with_head: bool = True) -> bytes:
    """UTF-8, quoted, one line a query. No cell begins like a formula: a quote mark stands before one that would."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if with_head:
        writer.writerow(COLUMNS)
    for query in queries:
        writer.writerow([cell(getattr(query, name)) for name in COLUMNS])
    return text.getvalue().encode()


def as_lines(queries: Sequence[ExportedQuery]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in queries)


def cell(value: object) -> str:
    """Text that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    text = " ".join(value) if isinstance(value, list) else str(value)
    text = text.replace("\0", "")
    return "'" + text if text.lstrip(" ").startswith(_FORMULA) else text
