"""A held write as a person at a terminal reads it: everything in it is text, whatever it holds. Pure.

Lines are folded here and not by the terminal: what a statement or an intent says stands behind a margin of ours on each line, so
that it cannot look like a field, a second request or the question at the end. What decides (kind, tables, rows) comes last, next
to the question, so that a long statement does not push it off the screen.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from gatewayd.approvals.desk.requests import DeskRequest
from gatewayd.approvals.messages import ROWS_COUNTED, Preview
from gatewayd.cli.output import visible
from gatewayd.sql.text.redact import CONSTANTS
from gatewayd.sql.text.tokens import scan

Piece = tuple[str, str]  # text, style

LITERAL: Final = "reverse"
_LITERALS: Final = CONSTANTS | {"TRUE_P", "FALSE_P", "NULL_P"}
_CLASSES: Final = {
    "row_changes": "a change of rows",
    "whole_table_writes": "a write of a whole table",
    "schema_changes": "a change of the schema",
}
_NARROWEST: Final = 40
_PLAN_LINES: Final = 40
_TABLES: Final = 20
_EMPTY_LINES: Final = 2
_INTENT_CHARACTERS: Final = 500
_MARGIN: Final = 10


def lines(request: DeskRequest, now_ms: int, width: int = 100) -> Iterator[list[Piece]]:
    """The request from its headline to its fields, on lines of at most `width` columns."""
    ask, width = request.ask, max(width, _NARROWEST)
    minutes = max(0, request.expires_ms - now_ms) // 60_000
    title = [
        (f"{visible(ask.statement_type)} on {visible(ask.database)}", "bold"),
        (f"   {request.approval_id}   expires in {minutes} min", "dim"),
    ]
    yield from folded(title, "", width)
    yield from statement(ask.sql, width)
    yield from _plan(ask.preview.plan if ask.preview is not None else (), width)
    agent = " ".join(visible(word) for word in (ask.agent_name, ask.agent_version) if word) or "it gives no name"
    token = visible(ask.mcp_token_id) if ask.mcp_token_id else "none"
    for name, text in (
        ("intent", f"{_intent(ask.intent or '')} (the agent's own words)"),
        ("agent", f"{agent} (as it calls itself)"),
        ("token", token),
        ("kind", _CLASSES[ask.write_class]),
        ("tables", _tables(ask.tables_touched)),
        ("rows", _rows(ask.preview)),
    ):
        yield from folded([(text, "")], f"  {name:<7} ", width)


def statement(sql: str, width: int) -> Iterator[list[Piece]]:
    """The statement with its literals marked and its lines numbered; of empty lines the first two of a row are shown."""
    line: list[Piece] = []
    found: list[list[Piece]] = []
    for text, style in marked(sql):
        first, *others = visible(text, lines=True).split("\n")
        line.append((first, style))
        for other in others:
            found.append(line)
            line = [(other, style)]
    found.append(line)
    empty = 0
    for number, pieces in enumerate(found, 1):
        is_empty = not "".join(text for text, _ in pieces).strip()
        if not is_empty and empty > _EMPTY_LINES:
            yield [(f"{'…':>{_MARGIN - 3}} │ ({empty - _EMPTY_LINES} more empty lines)", "dim")]
        empty = empty + 1 if is_empty else 0
        if empty <= _EMPTY_LINES:
            yield from folded(pieces, f"{number:>{_MARGIN - 3}} │ ", width)


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


def folded(pieces: Iterable[Piece], margin: str, width: int) -> Iterator[list[Piece]]:
    """The text on lines of at most `width` columns: the first behind `margin`, the others as far in, behind a bar."""
    line: list[Piece] = [(margin, "dim")]
    left = width - len(margin)
    for text, style in pieces:
        start = 0
        for place, character in enumerate(text):
            columns = 2 if unicodedata.east_asian_width(character) in "WFA" else 1
            if columns > left:
                yield [*line, (text[start:place], style)]
                start = place
                line = [(f"{' ' * (max(len(margin), 4) - 2)}│ ", "dim")]
                left = width - max(len(margin), 4)
            left -= columns
        line.append((text[start:], style))
    yield line


def _plan(plan: tuple[str, ...], width: int) -> Iterator[list[Piece]]:
    for line in plan[:_PLAN_LINES]:
        yield from folded([(visible(line), "dim")], f"{'plan':>{_MARGIN - 3}} │ ", width)
    if len(plan) > _PLAN_LINES:
        yield [(f"{'…':>{_MARGIN - 3}} │ ({len(plan) - _PLAN_LINES} more lines)", "dim")]


def _intent(intent: str) -> str:
    shown = visible(intent[:_INTENT_CHARACTERS])
    return shown if len(intent) <= _INTENT_CHARACTERS else f"{shown}… ({len(intent)} characters)"


def _tables(tables: tuple[str, ...]) -> str:
    more = f" and {len(tables) - _TABLES} more" if len(tables) > _TABLES else ""
    return (", ".join(map(visible, tables[:_TABLES])) or "none") + more


def _rows(preview: Preview | None) -> str:
    if preview is None:
        return "not counted"
    if preview.rows is None:
        return f"not known: {visible(preview.why or 'no reason given')}"
    count = f"more than {ROWS_COUNTED - 1}" if preview.rows >= ROWS_COUNTED else str(preview.rows)
    return f"{count} ({visible(preview.why)})" if preview.why else count
