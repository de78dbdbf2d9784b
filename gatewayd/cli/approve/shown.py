"""A held write as a person at a terminal reads it: everything in it is text, whatever it holds. Pure."""

from collections.abc import Iterator
from typing import Final

from gatewayd.approvals.desk.requests import DeskRequest
from gatewayd.approvals.messages import ROWS_COUNTED, Preview
from gatewayd.cli.output import visible
from gatewayd.sql.text.tokens import scan

Piece = tuple[str, str]  # text, style

LITERAL: Final = "reverse"
_LITERALS: Final = frozenset({"SCONST", "USCONST", "ICONST", "FCONST", "BCONST", "XCONST", "TRUE_P", "FALSE_P", "NULL_P"})
_CLASSES: Final = {
    "row_changes": "a change of rows",
    "whole_table_writes": "a write of a whole table",
    "schema_changes": "a change of the schema",
}


def lines(request: DeskRequest, now_ms: int) -> Iterator[list[Piece]]:
    """The request from its headline to its statement."""
    ask = request.ask
    minutes = max(0, request.expires_ms - now_ms) // 60_000
    yield [
        (f"{visible(ask.statement_type)} on {visible(ask.database)}", "bold"),
        (f"   {request.approval_id}   expires in {minutes} min", "dim"),
    ]
    agent = " ".join(visible(word) for word in (ask.agent_name, ask.agent_version) if word) or "it gives no name"
    yield _field("kind", _CLASSES[ask.write_class])
    yield _field("tables", ", ".join(map(visible, ask.tables_touched)) or "none")
    yield _field("rows", _rows(ask.preview))
    yield _field("agent", f"{agent} (as it calls itself)")
    yield _field("token", visible(ask.mcp_token_id) if ask.mcp_token_id else "none")
    yield _field("intent", f"{visible(ask.intent or '')} (the agent's own words)")
    for line in ask.preview.plan if ask.preview is not None else ():
        yield [("  ", ""), (visible(line), "dim")]
    yield from statement(ask.sql)


def statement(sql: str) -> Iterator[list[Piece]]:
    """The statement with its literals marked, a list of pieces a line."""
    line: list[Piece] = [("  ", "")]
    for text, style in marked(sql):
        first, *others = visible(text, lines=True).split("\n")
        line.append((first, style))
        for other in others:
            yield line
            line = [("  ", ""), (other, style)]
    yield line


def marked(sql: str) -> Iterator[Piece]:
    """All of the statement in pieces; those that are literals have the style LITERAL."""
    data = sql.encode()
    end = 0
    for token in scan(data):
        if token.name in _LITERALS:
            yield data[end : token.start].decode(), ""
            yield data[token.start : token.end].decode(), LITERAL
            end = token.end
    yield data[end:].decode(), ""


def _rows(preview: Preview | None) -> str:
    if preview is None:
        return "not counted"
    if preview.rows is None:
        return f"not known: {visible(preview.why or 'no reason given')}"
    count = f"more than {ROWS_COUNTED - 1}" if preview.rows >= ROWS_COUNTED else str(preview.rows)
    return f"{count} ({visible(preview.why)})" if preview.why else count


def _field(name: str, text: str) -> list[Piece]:
    return [(f"  {name:<7} ", "dim"), (text, "")]
