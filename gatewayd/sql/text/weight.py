"""How much memory the parser will take for a text, told before it parses. Pure.

The parser's tree and its JSON take up to 580 bytes for a name, 310 for a constant, 270 for an operator: 1 MiB of `a+a,a+a,…` took
290 MiB. Nothing limits the parser while it runs, so a text with too many of these is not given to it. They are counted without
looking at each: bytes become classes, and the borders of classes are counted, a millisecond for 1 MiB. Only where that is too
much strings and comments are taken out first, one after the other, so that other threads get their turns.
"""

import re
from typing import Final

NAME_BYTES: Final = 580  # also for `*`, which may be all columns
CONSTANT_BYTES: Final = 310
OPERATOR_BYTES: Final = 270
BRACKET_BYTES: Final = 300
MOST_BYTES: Final = 56 * 1024 * 1024

_NAME, _DIGIT, _OPERATOR, _OTHER = b"a", b"0", b"+", b" "
_OPERATORS: Final = b"+-/<>=~!@#%^&|`?"
_WORD: Final = re.compile(rb"[\w$\x80-\xff]")


def _class_of(byte: bytes) -> bytes:
    if byte in (b"'", b"(", b"*"):
        return byte
    if byte.isdigit():
        return _DIGIT
    return _NAME if _WORD.match(byte) or byte == b'"' else _OPERATOR if byte in _OPERATORS else _OTHER


_CLASSES: Final = bytes.maketrans(bytes(range(256)), b"".join(_class_of(bytes((number,))) for number in range(256)))
_APART: Final = (b" ", b"'", b"(", b"*", b"+")

_MAY_OPEN: Final = re.compile(rb"['\"$/-]")  # of one character, which is found eight times as fast
_OPENING: Final = re.compile(rb"['\"]|\$\w*\$|--|/\*")
_STRING, _QUOTED_NAME = b"'", b'"'
_ESCAPED: Final = re.compile(rb"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'", re.DOTALL)
_LINE_END: Final = re.compile(rb"[\r\n]")
_COMMENT: Final = re.compile(rb"/\*|\*/")
_MOST_STRINGS: Final = MOST_BYTES // CONSTANT_BYTES


def is_too_heavy(data: bytes) -> bool:
    """Whether parsing it would take more memory than a statement may."""
    if len(data) * NAME_BYTES <= MOST_BYTES or weight(data) <= MOST_BYTES:
        return False
    bare = _bare(data)
    return bare is None or weight(bare) > MOST_BYTES


def weight(data: bytes) -> int:
    """Bytes that the parser takes, at most, about."""
    classes = data.translate(_CLASSES)
    names = sum(map(classes.count, (each + _NAME for each in _APART))) + classes.count(b"*")
    constants = sum(map(classes.count, (each + _DIGIT for each in _APART))) + classes.count(b"'") // 2
    operators = sum(classes.count(each + _OPERATOR) for each in (b" ", b"'", b"(", b"*", _NAME, _DIGIT))
    return names * NAME_BYTES + constants * CONSTANT_BYTES + operators * OPERATOR_BYTES + classes.count(b"(") * BRACKET_BYTES


def _bare(data: bytes) -> bytes | None:
    """The text with short strings and quoted names and without comments, whose ends are found as PostgreSQL's scanner does;
    None: too many of them."""
    pieces: list[bytes] = []
    copied = at = 0
    while (possible := _MAY_OPEN.search(data, at)) is not None:
        start = possible.start()
        found = _OPENING.match(data, start)
        if found is None:
            at = start + 1
            continue
        pieces += (data[copied:start], b" a " if found[0] == _QUOTED_NAME else b" '' ")
        if len(pieces) > 2 * _MOST_STRINGS:
            return None
        copied = at = _end(data, found[0], start, found.end())
    pieces.append(data[copied:])
    return b"".join(pieces)


def _end(data: bytes, opening: bytes, start: int, behind: int) -> int:
    """Where what opens there ends: at the end of the text when nothing closes it, and then it does not parse."""
    if opening == _STRING:
        is_escaped = data[start - 1 : start] in (b"e", b"E") and not _WORD.match(data, max(start - 2, 0), max(start - 1, 0))
        closed = _ESCAPED.match(data, start) if is_escaped else None
        return closed.end() if closed is not None else _behind(data, opening, behind)
    if opening == _QUOTED_NAME:
        return _behind(data, opening, behind)
    if opening == b"--":
        line_end = _LINE_END.search(data, behind)
        return line_end.end() if line_end is not None else len(data)
    if opening == b"/*":
        depth = 1
        for mark in _COMMENT.finditer(data, behind):
            depth += 1 if mark[0] == b"/*" else -1
            if depth == 0:
                return mark.end()
        return len(data)
    return start + 1 if _WORD.match(data, max(start - 1, 0), start) else _behind(data, opening, behind)


def _behind(data: bytes, closing: bytes, start: int) -> int:
    at = data.find(closing, start)
    return at + len(closing) if at >= 0 else len(data)
