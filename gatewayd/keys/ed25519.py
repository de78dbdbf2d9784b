"""Ed25519 keys (RFC 8032): loaded strictly, so that one signature stands for one message under one key.

The library underneath loads keys of small order (8 encodings) and encodings that are not canonical (6 more, of the same points).
Under such a key a signature that anybody can make verifies many messages. Both kinds are refused here, and nowhere else is a key
loaded.
"""

import base64
import binascii
import hashlib
from typing import Final, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_KEY_ID_DIGITS: Final = 32

_P: Final = 2**255 - 19
# The y coordinates of the eight points of small order: of order 4, 1, 2, and twice of order 8.
_SMALL_ORDER_Y: Final = frozenset(
    {
        0,
        1,
        _P - 1,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
    }
)


class KeyRefused(Exception):
    """Bytes that are not a key to be trusted; the text says what was found and what is expected."""


@final
class PublicKey:
    """A key that signatures are checked with. Equal to another of the same bytes.

    Raises:
      KeyRefused: not 32 bytes, an encoding that is not canonical, or a point of small order.
    """

    __slots__ = ("_key", "key_id", "raw")

    def __init__(self, raw: bytes) -> None:
        if len(raw) != KEY_BYTES:
            raise KeyRefused(f"found a public key of {len(raw)} bytes, expected {KEY_BYTES}")
        y = int.from_bytes(raw, "little") & (2**255 - 1)
        if y >= _P:
            raise KeyRefused("found a public key whose encoding is not canonical")
        if y in _SMALL_ORDER_Y:
            raise KeyRefused("found a public key of small order")
        self.raw = bytes(raw)
        self.key_id = hashlib.sha256(self.raw).hexdigest()[:_KEY_ID_DIGITS]
        self._key = Ed25519PublicKey.from_public_bytes(self.raw)

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether `signature` was made over `message` with the private half of this key."""
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"PublicKey({self.key_id})"


@final
class SigningKey:
    """The private half, from its seed of 32 bytes. Shows itself only through `seed`."""

    __slots__ = ("_key", "public", "seed")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != KEY_BYTES:
            raise KeyRefused(f"found a private key of {len(seed)} bytes, expected {KEY_BYTES}")
        self.seed = bytes(seed)
        self._key = Ed25519PrivateKey.from_private_bytes(self.seed)
        self.public = PublicKey(self._key.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> "SigningKey":
        """A fresh key from the system's randomness."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @property
    def key_id(self) -> str:
        return self.public.key_id

    def sign(self, message: bytes) -> bytes:
        """64 bytes, the same for the same message."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id}, …)"

    def __reduce__(self) -> str:
        raise TypeError("a SigningKey is not pickled")


def strict_base64(text: str) -> bytes:
    """The bytes of standard base64 (RFC 4648 section 4) in its one canonical form. Raises ValueError for anything else."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("expected base64") from None
    if base64.b64encode(data).decode() != text:
        raise ValueError("expected base64 in its canonical form")
    return data


def base64_of(data: bytes) -> str:
    """Standard base64 with padding."""
    return base64.b64encode(data).decode()
