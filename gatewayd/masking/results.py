"""post_exec: masked values put into rows that have already come from the database (contract 10). Pure.

A row is the JSON text of `row_to_json`: an object whose values stand in column order. The masked ones are cut out by their place
and replaced. Every other byte stays as PostgreSQL wrote it, also what a JSON reader would take offence at: the text of a `json`
column may hold blanks, lone surrogates, equal keys. So no reader is asked.

A batch of rows is one text, cut before and behind the masked values at the keys, which are searched for as bytes: the way through
every value of every row costs many times as much. `,"name":` is a key wherever it stands, because a quote inside of a string has
a backslash before it. It is the column's where no object stands inside of a row, or where it stands once a row.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from gatewayd.masking.transforms import Transform

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FIND_STRING: Final = re.compile(_STRING, re.DOTALL).match
_FIND_PLAIN: Final = re.compile(rb'[^"\[{,}\s]+').match
_FIND_BLANKS: Final = re.compile(rb"\s*").match
_FIND_BRACKET: Final = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL).search
_IS_SEARCHED: Final = re.compile(rb'"[0-9A-Za-z_\x80-\xff]').match
"""Keys to search for. One that begins with a comma could also be found between two strings."""
_decode_name: Final = msgspec.json.Decoder(str).decode
_decode_row: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_END: Final = b"\1"  # of a row: no JSON text holds such a character


class WrongShape(Exception):
    """A row does not have the columns that the statement was proved to have: nothing of it may be shown."""


class PostExec(msgspec.Struct, frozen=True):
    """The statement runs as it is, and each value of these output columns goes through its transform."""

    width: int  # how many columns every row has, 0 where there are no transforms and nobody can tell
    transforms: tuple[tuple[int, str, Transform], ...]  # place from 0, its name before equal names got their _2, _3, transform
    columns: tuple[str, ...]  # schema.table.column
    keeps_heap_order: bool = False
    """An index holds a masked column: rows read in its order would tell the order of the values."""


class _Span(msgspec.Struct, frozen=True, gc=False):
    key: bytes  # as it is written, with its quotes
    start: int  # of the value
    end: int


class _Cut(msgspec.Struct, frozen=True, gc=False):
    before: bytes  # what stands before the masked value
    behind: bytes
    transform: Transform


class _NotCut(Exception):
    """The rows cannot be cut at keys."""


class RowMask:
    """Masks the rows of one result. Raises WrongShape. The columns of the first row stand for all: they are the statement's."""

    def __init__(self, masking: PostExec) -> None:
        self._width = masking.width
        self._transforms = masking.transforms
        self._cuts: Sequence[_Cut] = ()
        self._is_checked = False

    def __call__(self, row: bytes) -> bytes:
        return self.batch([row])[0]

    def batch(self, rows: Sequence[bytes]) -> list[bytes]:
        if rows and not self._is_checked:
            self._check(rows[0])
        if rows and self._cuts:
            try:
                return _masked(rows, self._cuts)
            except _NotCut:
                pass
        return [self._long_way(row) for row in rows]

    def _long_way(self, row: bytes) -> bytes:
        spans = _spans(row)
        if len(spans) != self._width:
            raise WrongShape(f"expected {self._width} columns, found {len(spans)}")
        parts: list[bytes] = []
        end = 0
        for place, _, transform in self._transforms:
            span = spans[place]
            parts += (row[end : span.start], transform(row[span.start : span.end]))
            end = span.end
        parts.append(row[end:])
        return b"".join(parts)

    def _check(self, row: bytes) -> None:
        names = _names(row)
        if len(names) != self._width:
            raise WrongShape(f"expected {self._width} columns, found {len(names)}")
        for place, name, _ in self._transforms:
            shown = names[place]
            if shown != name and not (shown.rpartition("_")[2].isdecimal() and name.startswith(shown.rpartition("_")[0])):
                raise WrongShape(f"expected column {name}, found {shown}")
        self._cuts = _cuts(names, self._transforms)
        self._is_checked = True


def _names(row: bytes) -> tuple[str, ...]:
    """Of the columns, in order. Raises WrongShape. A JSON reader is ten times as fast, where it takes the row."""
    try:
        return tuple(_decode_row(row))
    except msgspec.DecodeError:
        return tuple(_decode_name(span.key) for span in _spans(row))


@lru_cache(maxsize=16)  # few: names are the agent's, and there may be 1600 of them
def _cuts(names: tuple[str, ...], transforms: tuple[tuple[int, str, Transform], ...]) -> Sequence[_Cut]:
    """None at all where a key cannot be searched for."""
    keys = [msgspec.json.encode(name) for name in names]
    texts = [(b"," if place else b"{") + key + b":" for place, key in enumerate(keys)]
    cuts = [_Cut(texts[place], (*texts, b"}" + _END)[place + 1], transform) for place, _, transform in transforms]
    searched = {key for place, _, _ in transforms for key in keys[place : place + 2]}
    return cuts if len(set(keys)) == len(keys) and all(map(_IS_SEARCHED, searched)) else ()


def _masked(rows: Sequence[bytes], cuts: Sequence[_Cut]) -> list[bytes]:
    """Goes through the columns, not through the rows: one call of a function for each row would cost as much as all of this.
    Raises _NotCut."""
    count = len(rows)
    text = _END.join((*rows, b""))
    if text.count(b"{") != count and any(text.count(key) != count for cut in cuts for key in (cut.before, cut.behind)):
        raise _NotCut
    at = cuts[0].before
    first, *pieces = text.split(at)
    rest: Sequence[bytes] = pieces
    columns: list[Sequence[bytes]] = [[at] * count]
    for cut in cuts:
        if cut.before != at:
            between, rest = _parted(rest, cut.before)
            columns += (between, [cut.before] * count)
        values, rest = _parted(rest, cut.behind)
        if not cut.transform.is_tight and any(value[:1] <= b" " or value[-1:] <= b" " for value in values):
            raise _NotCut  # a blank beside a value stays, and only the long way knows it
        columns += (cut.transform.batch(values), [cut.behind] * count)
        at = cut.behind
    columns.append(rest)
    if any(len(column) != count for column in columns):
        raise _NotCut
    joined = [first] * (1 + count * len(columns))
    for number, column in enumerate(columns):
        joined[1 + number :: len(columns)] = column
    masked = b"".join(joined).split(_END)
    if masked.pop() or len(masked) != count:
        raise _NotCut
    return masked


def _parted(texts: Sequence[bytes], key: bytes) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """What stands before and behind a key in each text. Raises _NotCut."""
    if not texts:
        raise _NotCut
    before, found, behind = zip(*[text.partition(key) for text in texts], strict=True)
    if b"" in found:
        raise _NotCut
    return before, behind


def _spans(row: bytes) -> list[_Span]:
    """Key, start and end of each value. Raises WrongShape."""
    found: list[_Span] = []
    if row[:1] != b"{":
        raise WrongShape("a row is no JSON object")
    at = 1
    if row == b"{}":
        return found
    while True:
        key = _FIND_STRING(row, at)
        if key is None or row[key.end() : key.end() + 1] != b":":
            raise WrongShape("a row is no JSON object")
        start = _FIND_BLANKS(row, key.end() + 1).end()  # type: ignore[union-attr]  # it matches the empty text as well
        end = _value_end(row, start)
        found.append(_Span(key[0], start, end))
        at = _FIND_BLANKS(row, end).end()  # type: ignore[union-attr]  # it matches the empty text as well
        if row[at : at + 1] == b"}" and at + 1 == len(row):
            return found
        if row[at : at + 1] != b",":
            raise WrongShape("a row is no JSON object")
        at += 1


def _value_end(row: bytes, start: int) -> int:
    first = row[start : start + 1]
    if first in (b"[", b"{"):
        depth = 0
        at = start
        while (bracket := _FIND_BRACKET(row, at)) is not None:
            at = bracket.end()
            text = bracket[0]
            if text in (b"[", b"{"):
                depth += 1
            elif text in (b"]", b"}"):
                depth -= 1
                if not depth:
                    return at
        raise WrongShape("a row is no JSON object")
    value = _FIND_STRING(row, start) if first == b'"' else _FIND_PLAIN(row, start)
    if value is None:
        raise WrongShape("a row is no JSON object")
    return value.end()
