"""post_exec: masked values put into rows that have already come from the database (contract 10). Pure.

A row is the JSON text of `row_to_json`: an object whose values stand in column order. The masked ones are cut out by their place
and replaced. Every other byte stays as PostgreSQL wrote it, also what a JSON reader would take offence at: the text of a `json`
column may hold blanks, lone surrogates, equal keys. So no reader is asked.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

from gatewayd.masking.transforms import Transform

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SCALAR: Final = _STRING + rb'|[^"\[{,}\s]++'
_FIND_STRING: Final = re.compile(_STRING, re.DOTALL).match
_FIND_PLAIN: Final = re.compile(rb'[^"\[{,}\s]+').match
_FIND_BLANKS: Final = re.compile(rb"\s*").match
_FIND_BRACKET: Final = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL).search
_decode_name: Final = msgspec.json.Decoder(str).decode


class WrongShape(Exception):
    """A row does not have the columns that the statement was proved to have: nothing of it may be shown."""


class PostExec(msgspec.Struct, frozen=True):
    """The statement runs as it is, and each value of these output columns goes through its transform."""

    width: int  # how many columns every row has, 0 where there are no transforms and nobody can tell
    transforms: tuple[tuple[int, str, Transform], ...]  # place from 0, its name before equal names got their _2, _3, transform
    columns: tuple[str, ...]  # schema.table.column
    keeps_heap_order: bool = False
    """An index holds a masked column: rows read in its order would tell the order of the values."""


class RowMask:
    """Masks the rows of one result. Raises WrongShape. The columns of the first row stand for all: they are the statement's."""

    def __init__(self, masking: PostExec) -> None:
        self._width = masking.width
        self._names = tuple((place, name) for place, name, _ in masking.transforms)
        self._transforms = tuple((place, transform) for place, _, transform in masking.transforms)
        self._cut = _cutter(tuple(place for place, _ in self._transforms)).match
        self._values = tuple((2 * number + 1, transform) for number, (_, transform) in enumerate(self._transforms))
        self._is_checked = False

    def __call__(self, row: bytes) -> bytes:
        if not self._is_checked:
            self._check(row)
        found = self._cut(row)
        if found is None:
            return self._long_way(row)
        parts = list(found.groups())
        for number, transform in self._values:
            parts[number] = transform(parts[number])
        return b"".join(parts)

    def _long_way(self, row: bytes) -> bytes:
        """For a row with an array or an object before a masked value, or as one."""
        spans = _spans(row)
        if len(spans) != self._width:
            raise WrongShape(f"expected {self._width} columns, found {len(spans)}")
        parts: list[bytes] = []
        end = 0
        for place, transform in self._transforms:
            _, start, stop = spans[place]
            parts += (row[end:start], transform(row[start:stop]))
            end = stop
        parts.append(row[end:])
        return b"".join(parts)

    def _check(self, row: bytes) -> None:
        spans = _spans(row)
        if len(spans) != self._width:
            raise WrongShape(f"expected {self._width} columns, found {len(spans)}")
        for place, name in self._names:
            shown = spans[place][0]
            if shown != name and not (shown.rpartition("_")[2].isdecimal() and name.startswith(shown.rpartition("_")[0])):
                raise WrongShape(f"expected column {name}, found {shown}")
        self._is_checked = True


@lru_cache(maxsize=256)
def _cutter(places: tuple[int, ...]) -> re.Pattern[bytes]:
    """Cuts a row into what stands before, the masked value, what stands between, the next masked value, …, the rest."""
    text = b"(\\{"
    before = 0
    for place in places:
        fields = (_STRING + b":(?:" + _SCALAR + b")," for _ in range(before, place))
        text += b"".join(fields) + _STRING + b":)(" + _SCALAR + b")(,"
        before = place + 1
    return re.compile(text.removesuffix(b"(,") + b"([,}].*)\\Z", re.DOTALL)


def _spans(row: bytes) -> list[tuple[str, int, int]]:
    """Name, start and end of each value. Raises WrongShape."""
    found: list[tuple[str, int, int]] = []
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
        found.append((_decode_name(key[0]), start, end))
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
