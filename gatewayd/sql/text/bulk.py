"""Large parser answers, made small before they become objects: long runs of constants say nothing about a statement.

Every step works on a piece of the text at a time, so that a worker thread lets the interpreter lock go in between (decision 3.1:
a 1 MiB statement must not keep the other calls waiting).
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

PIECE_BYTES = 128 * 1024
MAX_SKIPPED_BYTES = 64 * 1024 * 1024  # read over again while a deep and large tree is taken apart

# Plain text first, which the engine finds fast. A quote inside a string is escaped, so none of these matches in there.
CONSTANT = re.compile(
    r'"A_Const":\{(?:"\w+":(?:\{(?:"\w+":(?:"[^"\\]*(?:\\.[^"\\]*)*"|[^"{}]*))?\}|true)(?:,"location":-?\d+)?)?\}'
)
_BOUNDARY = re.compile(r'\},(?=\{"\w|"(?!\w*(?:location|stmt_len|list_start|list_end|isnull)")\w)')
_SAME_ROWS = re.compile(r'(\{"List":\{"items":\[[^\[\]]{1,65536}\]\}\},)\1+')
_LONG_LIST = re.compile(r'(?:\{"A_Const":\{\}\},){1664,}')  # longer than any row or argument list can be
_bodies = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])
_any = msgspec.json.Decoder()
_LOCATION = re.compile(r',"location":-?\d+')  # most positions; it begins with plain text, and is searched for much faster
_POSITION = re.compile(r',?"(?:\w*location|stmt_len|\w*list_(?:start|end))":-?\d+')
_OTHERS = ('{"location":', '_location":', 'stmt_len":', 'list_start":', 'list_end":')


class TooDeep(Exception):
    """The tree is too large for its depth."""


def pieces(text: str, size: int = PIECE_BYTES) -> Iterator[str]:
    """The text in pieces of about `size` characters. They end between two nodes of a list or two fields of a node, never inside
    a constant nor before a position, which goes together with its comma."""
    start = 0
    while len(text) - start > size:
        found = _BOUNDARY.search(text, start + size)
        if found is None:
            break
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


def without_bulk(json: str) -> str:
    """The same tree with empty constants, one of each run of equal rows, one of each run of constants too long to be a row."""
    short: list[str] = []
    for piece in pieces(json):
        bare = CONSTANT.sub('"A_Const":{}', piece)
        short.append(_LONG_LIST.sub('{"A_Const":{}},', _SAME_ROWS.sub(r"\1", bare)))
    return "".join(short)


def without_positions(json: str, size: int = PIECE_BYTES) -> str:
    """A tree as text, without where its parts stand: equal texts are equal trees."""
    return "".join(map(_placeless, pieces(json, size)))


def _placeless(piece: str) -> str:
    text = _LOCATION.sub("", piece)
    return _POSITION.sub("", text) if any(other in text for other in _OTHERS) else text


def decode(json: str) -> Any:
    """The objects, made a piece at a time. Raises TooDeep, or RecursionError."""
    skipped = 0
    root: list[Any] = [msgspec.Raw(json.encode())]
    pending: list[tuple[Any, Any]] = [(root, 0)]
    while pending:
        holder, key = pending.pop()
        raw = holder[key]
        size = len(memoryview(raw))
        if size <= PIECE_BYTES:
            holder[key] = _any.decode(raw)
            continue
        skipped += size
        if skipped > MAX_SKIPPED_BYTES:
            raise TooDeep
        first = bytes(memoryview(raw)[:1])
        if first == b"{":
            holder[key] = made = _bodies.decode(raw)
            pending.extend((made, name) for name in made)
        elif first == b"[":
            holder[key] = row = _elements.decode(raw)
            pending.extend((row, index) for index in range(len(row)))
        else:
            holder[key] = _any.decode(raw)
    return root[0]
