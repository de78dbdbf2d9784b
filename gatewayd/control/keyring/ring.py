"""A secret of the control plane as a ring of values: the first is used to make, all of them to open, so that it can be changed.

The text of a ring is one value a line, each 32 random bytes in base64url; the key id follows from the value, so nobody has to
give one. To change a secret: add a next value at the end on every replica, then move it to the front, then remove the old one
once nothing needs it any more (`gatewayd control key`).
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final

import msgspec

VALUE_BYTES: Final = 32
ID_CHARACTERS: Final = 8


class RingProblem(Exception):
    """A text is no ring; the text says what is wrong and what is expected."""


class Key(msgspec.Struct, frozen=True):
    """`key_id` is the start of a hash of the value: it may be shown, stored and logged."""

    key_id: str
    value: bytes

    def __repr__(self) -> str:
        return f"Key({self.key_id})"

    def mac(self, purpose: str, *parts: bytes) -> bytes:
        """HMAC-SHA256 over the parts, each with its length before it, under a key of this purpose."""
        own = hmac.digest(self.value, purpose.encode(), "sha256")
        return hmac.digest(own, b"".join(len(part).to_bytes(8, "big") + part for part in parts), "sha256")


class Ring(msgspec.Struct, frozen=True):
    """At least one key; the first is the current one."""

    keys: tuple[Key, ...]

    @property
    def current(self) -> Key:
        return self.keys[0]

    def by_id(self, key_id: str) -> Key | None:
        return next((key for key in self.keys if key.key_id == key_id), None)


def key_of(value: bytes) -> Key:
    return Key(hashlib.sha256(b"gatewayd control key id\n" + value).hexdigest()[:ID_CHARACTERS], value)


def read_ring(text: str) -> Ring:
    """The ring of a text: values apart by line ends or commas. Raises RingProblem."""
    entries = [entry.strip() for entry in text.replace(",", "\n").split("\n") if entry.strip()]
    if not entries:
        raise RingProblem("holds no value; expected 32 random bytes in base64url, as `gatewayd control key new` prints them")
    keys = []
    for number, entry in enumerate(entries, 1):
        try:
            value = base64.b64decode(entry + "=" * (-len(entry) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            value = b""
        if len(value) != VALUE_BYTES:
            raise RingProblem(f"value {number} is not 32 bytes in base64url; expected what `gatewayd control key new` prints")
        keys.append(key_of(value))
    if len({key.key_id for key in keys}) != len(keys):
        raise RingProblem("holds one value twice; expected different values")
    return Ring(tuple(keys))


def ring_text(ring: Ring) -> str:
    return "".join(value_text(key.value) + "\n" for key in ring.keys)


def value_text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
