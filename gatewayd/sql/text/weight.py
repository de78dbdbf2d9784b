"""How much memory the parser will take for a text, told before it parses. Pure.

The parser's tree and its JSON take up to 580 bytes for a name and 310 for a constant: 1 MiB of `a+a,a+a,…` took 290 MiB. Nothing
limits the parser while it runs, so a text with too many names and constants is not given to it. They are counted without looking
at each: bytes become classes, and the classes' borders are counted, a millisecond for 1 MiB.
"""

import re
from typing import Final

NAME_BYTES: Final = 580
CONSTANT_BYTES: Final = 310
BRACKET_BYTES: Final = 300
MOST_BYTES: Final = 56 * 1024 * 1024

_NAME, _DIGIT, _OTHER = b"a", b"0", b" "
_CLASSES: Final = bytes.maketrans(
    bytes(range(256)),
    b"".join(
        each
        if each in (b"'", b"(", b"*")
        else _NAME
        if each.isalpha() or each in (b"_", b"$", b'"') or each[0] >= 0x80
        else _DIGIT
        if each.isdigit()
        else _OTHER
        for each in (bytes((number,)) for number in range(256))
    ),
)
_APART: Final = (b" ", b"'", b"(", b"*")
# What holds no parts: strings, and comments without comments in them. A quoted name counts as what is in it.
_OPAQUE: Final = re.compile(
    rb"(?<![\w$\x80-\xff])[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'"
    rb"|'[^']*'"
    rb"|(?<![\w$\x80-\xff])\$(\w*)\$.*?\$\1\$"
    rb"|--[^\r\n]*"
    rb"|/\*[^*/]*(?:\*(?!/)[^*/]*|/(?!\*)[^*/]*)*\*/",
    re.DOTALL,
)


def is_too_heavy(data: bytes) -> bool:
    """Whether parsing it would take more memory than a statement may. Counts too much rather than too little: where comments lie
    within comments all words count."""
    if len(data) * NAME_BYTES // 2 <= MOST_BYTES or _weight(data) <= MOST_BYTES:
        return False
    bare = _OPAQUE.sub(b"''", data)
    return b"/*" in bare or _weight(bare) > MOST_BYTES


def _weight(data: bytes) -> int:
    """Bytes that the parser takes, at most, about."""
    classes = data.translate(_CLASSES)
    names = sum(map(classes.count, (each + _NAME for each in _APART))) + classes.count(b"*")
    constants = sum(map(classes.count, (each + _DIGIT for each in _APART))) + classes.count(b"'") // 2
    return names * NAME_BYTES + constants * CONSTANT_BYTES + classes.count(b"(") * BRACKET_BYTES
