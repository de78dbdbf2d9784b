"""Signed notes (C2SP signed-note.md): text, a blank line, and lines `— name base64(key hash ‖ signature)`.

Signs with one Ed25519 key, and opens a note for a set of keys. A line of an unknown key is ignored, as the format asks; a line
of a known key that does not verify refuses the whole note.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from gatewayd.keys.ed25519 import KEY_BYTES, KeyRefused, PublicKey, SigningKey, strict_base64

_ED25519: Final = b"\x01"
_HASH_BYTES: Final = 4
_LINES: Final = 64  # of signatures; the format asks for 16 at least
_NOTE_CHARACTERS: Final = 64 * 1024
_CONTROL: Final = re.compile("[\x00-\x09\x0b-\x1f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NAME: Final = re.compile(r"[^\s+]+")
_LINE: Final = re.compile(r"— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")


class NoteRefused(Exception):
    """A text that is no signed note, or not one of a key that is trusted."""


class VerifierKey(msgspec.Struct, frozen=True):
    """A public key under the name that notes call it by."""

    name: str
    key: PublicKey

    @property
    def hash(self) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.key.raw).digest()[:_HASH_BYTES]

    def __str__(self) -> str:
        """`name+hash+base64(type ‖ key)`, as the tools of transparency logs take it."""
        return f"{self.name}+{self.hash.hex()}+{base64.b64encode(_ED25519 + self.key.raw).decode()}"


def verifier_key(text: str) -> VerifierKey:
    """The key that `text` spells. Raises KeyRefused with what was found and what is expected."""
    name, _, rest = text.strip().partition("+")
    hash_, _, encoded = rest.partition("+")
    if not _NAME.fullmatch(name) or not encoded:
        raise KeyRefused("expected a verifier key such as name+0123abcd+AQ…, the output of `gatewayd audit identity`")
    try:
        data = strict_base64(encoded)
    except ValueError as failure:
        raise KeyRefused(f"the verifier key's last part: {failure}") from None
    if data[:1] != _ED25519 or len(data) != 1 + KEY_BYTES:
        raise KeyRefused("the verifier key is not an Ed25519 key (type 1, 32 bytes)")
    key = VerifierKey(name, PublicKey(data[1:]))
    if key.hash.hex() != hash_:
        raise KeyRefused("the verifier key's hash is not that of its name and key")
    return key


def sign_note(text: str, name: str, key: SigningKey) -> str:
    """The note over `text`, which ends in a line end and holds no other control character."""
    assert text.endswith("\n")
    assert not _CONTROL.search(text)
    data = VerifierKey(name, key.public).hash + key.sign(text.encode())
    return f"{text}\n— {name} {base64.b64encode(data).decode()}\n"


def text_of(note: str) -> str:
    """The text of a note, whoever signed it. Raises NoteRefused when the form is wrong. Nothing of it may be believed yet."""
    return _parsed(note)[0]


def open_note(note: str, keys: Iterable[VerifierKey]) -> tuple[str, VerifierKey]:
    """The text of a note that one of `keys` signed, and that key.

    Raises:
      NoteRefused: the form is wrong, no key of `keys` signed it, or a line of one of them does not verify.
    """
    text, lines = _parsed(note)
    known = {(key.name, key.hash): key for key in keys}
    signer: VerifierKey | None = None
    for name, data in lines:
        key = known.get((name, data[:_HASH_BYTES]))
        if key is None:
            continue
        if not key.key.verifies(data[_HASH_BYTES:], text.encode()):
            raise NoteRefused(f"the signature of {name} does not verify")
        signer = signer or key
    if signer is None:
        raise NoteRefused("no known key has signed it")
    return text, signer


def signer_names(note: str) -> tuple[str, ...]:
    """The names on the signature lines, which prove nothing."""
    return tuple(name for name, _ in _parsed(note)[1])


def _parsed(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    if len(note) > _NOTE_CHARACTERS:
        raise NoteRefused(f"it is longer than {_NOTE_CHARACTERS} characters")
    if _CONTROL.search(note) or _SURROGATE.search(note):
        raise NoteRefused("it holds control characters")
    head, blank, tail = note.rpartition("\n\n")
    if not blank or not head or not tail.endswith("\n"):
        raise NoteRefused("it is no signed note: expected text, a blank line, and signature lines")
    lines: list[tuple[str, bytes]] = []
    for line in tail[:-1].split("\n"):
        matched = _LINE.fullmatch(line)
        if matched is None:
            raise NoteRefused("expected signature lines of the form `— name base64`")
        try:
            data = strict_base64(matched[2])
        except ValueError as failure:
            raise NoteRefused(f"a signature line: {failure}") from None
        if len(data) <= _HASH_BYTES:
            raise NoteRefused("a signature line has no signature")
        lines.append((matched[1], data))
    if len(lines) > _LINES:
        raise NoteRefused(f"it has more than {_LINES} signature lines")
    return head + "\n", lines
