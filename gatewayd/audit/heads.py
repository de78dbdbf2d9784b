"""A signed head: how many rows an instance of the file has, and the root over them (C2SP tlog-checkpoint.md). Pure.

The text is three lines: origin `gatewayd/<key id>/<instance>`, size, root in base64. The gateway's identity signs it as a note.
"""

import base64
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from gatewayd.keys.ed25519 import SigningKey, strict_base64
from gatewayd.keys.note import NoteRefused, sign_note, text_of

WITNESS_NAME: Final = "gatewayd-control/{}"
"""The name of a control plane's key, with its key id. With it the control plane signs heads of gateways' files, as a witness."""

_ORIGIN: Final = r"gatewayd/([0-9a-f]{32})/([0-9A-HJKMNP-TV-Z]{26})"
_TEXT: Final = re.compile(_ORIGIN + r"\n(0|[1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n(?:.+\n)*")


class Head(msgspec.Struct, frozen=True):
    """The tree of `instance` at `size` leaves."""

    key_id: str
    instance: str
    size: int
    root: bytes

    @property
    def origin(self) -> str:
        return f"gatewayd/{self.key_id}/{self.instance}"

    @property
    def text(self) -> str:
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


def sign_head(instance: str, size: int, root: bytes, key: SigningKey) -> str:
    """The signed note of a head."""
    return sign_note(Head(key.key_id, instance, size, root).text, f"gatewayd/{key.key_id}", key)


def head_in(text: str) -> Head:
    """The head in the text of a note. Raises NoteRefused."""
    matched = _TEXT.fullmatch(text)
    if matched is None:
        raise NoteRefused("it is no head of an audit file: expected origin gatewayd/<key id>/<instance>, size and root")
    try:
        root = strict_base64(matched[4])
    except ValueError as failure:
        raise NoteRefused(f"its root: {failure}") from None
    return Head(matched[1], matched[2], int(matched[3]), root)


def unproved_head(note: str) -> Head:
    """The head in a note whose signature was not checked, so it proves nothing yet. Raises NoteRefused."""
    return head_in(text_of(note))


def head_in_or_none(note: str) -> Head | None:
    """The head in a signed note, its signature unchecked; None for a text that is no such note."""
    try:
        return unproved_head(note)
    except NoteRefused:
        return None


def heads_in_log(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """(note, where) of each `audit checkpoint` line of a log, as gatewayd writes it or as journalctl shows it."""
    for number, line in enumerate(lines, 1):
        start = line.find('{"time":')
        if start < 0 or '"msg":"audit checkpoint"' not in line:
            continue
        try:
            fields = msgspec.json.decode(line[start:].strip(), type=dict[str, object])
        except msgspec.DecodeError:
            continue
        note = fields.get("note")
        if isinstance(note, str):
            yield note, f"line {number} of the log"
