"""A statement for the eyes of whoever decides about it: its constants marked, since they say which rows, and what differs from
the statement of the same shape that was approved last. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

import msgspec

from gatewayd.control.web.shown_text import Shown, short
from gatewayd.sql.text.parse import NotParsed, parse
from gatewayd.sql.text.redact import CONSTANTS
from gatewayd.sql.text.tokens import scan

MARKED_MOST: Final = 100_000
"""Characters: a longer statement is shown as it is."""
HTML_MOST: Final = 250_000
_COMPARED: Final = 2000


class Piece(msgspec.Struct, frozen=True):
    text: str
    is_constant: bool


class MarkedStatement(msgspec.Struct, frozen=True):
    """`differences`: in how many places it differs from the one before, None where there is none or they cannot be compared."""

    html: Shown
    differences: int | None


def marked(sql: str, before: str | None = None) -> MarkedStatement:
    pieces = _pieces(sql)
    if pieces is None:
        return MarkedStatement(short(sql, HTML_MOST), None)
    changed = _changed(pieces, _pieces(before)) if before is not None else None
    parts: list[str] = []
    length = 0
    for place, piece in enumerate(pieces):
        inside = short(piece.text, HTML_MOST).__html__()
        is_changed = changed is not None and place in changed
        if piece.is_constant or is_changed:
            inside = f'<mark class="{"changed" if is_changed else "constant"}">{inside}</mark>'
        length += len(inside)
        if length > HTML_MOST:
            parts.append("…")
            break
        parts.append(inside)
    return MarkedStatement(Shown("".join(parts)), None if changed is None else len(changed))


def _pieces(sql: str | None) -> list[Piece] | None:
    """The text in tokens and what stands between them; None where it cannot be read so."""
    if sql is None or len(sql) > MARKED_MOST:
        return None
    try:
        data = parse(sql).data
        tokens = scan(data)
    except (NotParsed, ValueError, RecursionError):
        return None
    if data.decode(errors="replace") != sql:
        return None  # what was parsed is not the text as it came
    pieces: list[Piece] = []
    end = 0
    for token in tokens:
        if token.start > end:
            pieces.append(Piece(data[end : token.start].decode(), False))
        pieces.append(Piece(data[token.start : token.end].decode(), token.name in CONSTANTS))
        end = token.end
    if end < len(data):
        pieces.append(Piece(data[end:].decode(), False))
    return pieces


def _changed(now: Sequence[Piece], before: Sequence[Piece] | None) -> set[int] | None:
    if before is None:
        return None
    ours, theirs = [each.text for each in now], [each.text for each in before]
    if len(ours) == len(theirs):
        return {place for place, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other}
    if max(len(ours), len(theirs)) > _COMPARED:
        return None
    found = SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes()
    return {place for kind, _, _, start, end in found if kind != "equal" for place in range(start, max(end, start + 1))}
