"""Exports of a search: CSV for spreadsheets, JSON lines with every event, and with proofs where they are asked for."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gatewayd.control.audit.one_query import OneQuery
from gatewayd.control.audit.proof_text import Proof
from gatewayd.control.audit.summary import QuerySummary
from gatewayd.control.web.csv_file import as_csv

_OWN: Final = (
    "ts", "query_id", "gateway_id", "database", "outcome", "agent_name", "agent_version", "token_id", "intent", "sql",
    "fingerprint", "statement_type", "decision", "rule", "reason", "tables", "rows", "exec_ms", "error",
)  # fmt: skip
COLUMNS: Final = (*_OWN, "held", "ran_as")


class ExportedQuery(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of JSON: the query with its events; `proof` with the keys that it is checked with, or why there is none."""

    query: OneQuery
    proof: Proof | None = None
    no_proof: str | None = None


def queries_as_csv(queries: Sequence[QuerySummary], *, with_head: bool = True) -> bytes:
    return as_csv(map(_cells, queries), COLUMNS if with_head else None)


def as_lines(queries: Sequence[ExportedQuery]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in queries)


def _cells(query: QuerySummary) -> list[object]:
    """`held` and `ran_as` are what became of a query that a person was asked about."""
    held = query.held
    return [*(getattr(query, name) for name in _OWN), held and held.status, held and held.ran_as]
