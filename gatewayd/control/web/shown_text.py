"""Text of strangers on a page: every invisible or direction-changing character is made visible, so that what is read is what is
there. Pure.

Escaping alone keeps HTML out. It does not keep a statement from looking like another one: a right-to-left override reorders
what follows it, a zero-width space splits a word for the parser and not for the eye, and PostgreSQL takes a no-break space for
part of a name.
"""

import unicodedata
from html import escape
from typing import Final

_PLAIN: Final = frozenset("\n\t")
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and signs without a picture of their own, which are of no hidden category.
_WITHOUT_PICTURE: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)


class Shown:
    """A piece of HTML made here, which escaping leaves as it is."""

    def __init__(self, html: str) -> None:
        self._html = html

    def __html__(self) -> str:
        return self._html


def is_hidden(character: str) -> bool:
    """Whether a reader would not see it, or would take it for another one: a space that is none to PostgreSQL, too."""
    if character.isascii() and character.isprintable():
        return False
    category = unicodedata.category(character)
    return character not in _PLAIN and (
        category in _HIDDEN_CATEGORIES or category == "Zs" or character in _WITHOUT_PICTURE
    )  # fmt: skip


def plain(text: object) -> str:
    """For attributes and options, where no element may stand: hidden characters as `⟨U+202E⟩`."""
    return "".join(f"⟨{_code(each)}⟩" if is_hidden(each) else each for each in str(text))


def text(value: object) -> Shown:
    """For the page itself: isolated from the direction of what is around it, hidden characters as small marks."""
    found = str(value)
    if found.isascii() and found.isprintable():
        return Shown(f"<bdi>{escape(found)}</bdi>")
    return Shown(f"<bdi>{''.join(_mark(each) if is_hidden(each) else escape(each) for each in found)}</bdi>")


def short(value: object, most: int, *, breaks: str = "") -> Shown:
    """As `text`, cut where its HTML has `most` characters: a mark takes seventy, so the length of a text bounds no page.

    A line is best broken after one of `breaks`: for names, whose words would be broken anywhere."""
    parts: list[str] = []
    length = 0
    for each in str(value):
        part = _mark(each) if is_hidden(each) else escape(each)
        length += len(part)
        if length > most:
            parts.append("…")
            break
        parts.append(f"{part}<wbr>" if each in breaks else part)
    return Shown(f"<bdi>{''.join(parts)}</bdi>")


def _mark(character: str) -> str:
    name = unicodedata.name(character, "a character without a name").lower()
    return f'<span class="odd" title="{escape(name)}">{_code(character)}</span>'


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"
