"""Sealing: AES-256-GCM under the current key of a ring, bound to what the text belongs to.

A sealed text that is copied into another row, project or organisation does not open there.
"""

import struct
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gatewayd.control.keyring.ring import ID_CHARACTERS, Key, Ring

NONCE_BYTES: Final = 12
_FORMAT: Final = b"\x01"


class Unsealable(Exception):
    """The text cannot be opened: its key is not in the ring, it was changed, or it belongs elsewhere."""


def seal(ring: Ring, purpose: str, text: bytes, nonce: bytes, *bound_to: str) -> bytes:
    """`nonce`: 12 random bytes, never used before. `bound_to`: ids that must be the same when it is opened."""
    key = ring.current
    sealed = AESGCM(_key(key, purpose)).encrypt(nonce, text, _bound(purpose, bound_to))
    return _FORMAT + key.key_id.encode() + nonce + sealed


def unseal(ring: Ring, purpose: str, sealed: bytes, *bound_to: str) -> bytes:
    """Raises Unsealable."""
    start = 1 + ID_CHARACTERS
    if sealed[:1] != _FORMAT or len(sealed) < start + NONCE_BYTES + 16:
        raise Unsealable("not a sealed text of ours")
    key = ring.by_id(key_id(sealed))
    if key is None:
        raise Unsealable(f"it was sealed with key {key_id(sealed)}, which is not among the keys given")
    try:
        return AESGCM(_key(key, purpose)).decrypt(
            sealed[start : start + NONCE_BYTES], sealed[start + NONCE_BYTES :], _bound(purpose, bound_to)
        )
    except InvalidTag:
        raise Unsealable("it was changed, or belongs elsewhere") from None


def key_id(sealed: bytes) -> str:
    """Which key opens it: what is sealed with another than the current one can be sealed anew."""
    return sealed[1 : 1 + ID_CHARACTERS].decode("ascii", "replace")


def _key(key: Key, purpose: str) -> bytes:
    return key.mac(f"sealing {purpose}")


def _bound(purpose: str, bound_to: tuple[str, ...]) -> bytes:
    parts = [purpose.encode(), *(each.encode() for each in bound_to)]
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)
