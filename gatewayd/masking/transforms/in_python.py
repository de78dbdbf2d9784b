"""The keyed masks in Python: the text of a value in, its masked JSON value out (decision 10). Pure.

post_exec uses them. `in_sql.py` says the same in SQL; a test holds the two to equal bytes. Numbers are Decimals: nothing
passes through a binary float.

Every mask is total: no value makes it fail, because a failure would tell something about the value.
"""

import hashlib
from binascii import hexlify
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final, cast

import msgspec

from gatewayd.masking.transforms.dictionaries import ENTRIES
from gatewayd.policy.file.model import ConsistentHash, Noise, Pseudonymize

HASH_DIGITS: Final = 32
CHOICE_START: Final = 32
CHOICE_DIGITS: Final = 15
"""What chooses a pseudonym or a noise comes from hexadecimal digits of the HMAC that `consistent-hash` never shows: a column with
the one mask must not tell how the other was drawn."""
STEP_DIGITS: Final = 15
NOISE_STEPS: Final = 10**STEP_DIGITS
"""u is a whole number of steps in -1 … 1. Fine enough that no divisor of the result reveals the value."""
NOISE_DIGITS: Final = 2
"""A noisy number has this many digits more behind the point than its value: 3 would come out as 3 otherwise."""
NOISE_SCALE: Final = 1000
NULL: Final = b"null"
EXACT: Final = Context(prec=400_000)
"""numeric has at most 131072 digits before the point and 16383 behind it."""

_BLOCK: Final = 64  # bytes of a block of SHA-256
_encode = msgspec.json.encode

Change = Callable[[Sequence[bytes]], list[bytes]]
"""Of texts in UTF-8, all at once: with a thousand of them a call of a function for each costs as much as its work."""

Keyed = ConsistentHash | Pseudonymize | Noise


class Transform:
    """One column's mask: the texts of its values in, None for NULL; JSON values out, in order."""

    def __init__(self, change: Change) -> None:
        self._change = change

    def __call__(self, texts: Sequence[bytes | None]) -> list[bytes]:
        """Repeated texts are computed once. Nothing is kept between calls, because the texts are secret."""
        distinct = set(texts)
        if None not in distinct and 2 * len(distinct) > len(texts):
            return self._change(cast(Sequence[bytes], texts))
        different = [text for text in distinct if text is not None]
        masked: dict[bytes | None, bytes] = dict(zip(different, self._change(different), strict=True))
        masked[None] = NULL
        return [masked[text] for text in texts]


@lru_cache(maxsize=256)
def transform(mask: Keyed, salt: bytes) -> Transform:
    """The transform of a keyed mask as a function over values."""
    match mask:
        case ConsistentHash():
            return Transform(_hashing(salt))
        case Pseudonymize():
            return Transform(_pseudonymizing(ENTRIES[mask.kind], salt))
        case Noise():
            return Transform(_noising(Decimal(repr(mask.ratio)).scaleb(-STEP_DIGITS), salt))


def _hashing(salt: bytes) -> Change:
    hmac = _hmac(salt)
    return lambda texts: [b'"%b"' % hexlify(digest[: HASH_DIGITS // 2]) for digest in hmac(texts)]


def _pseudonymizing(entries: tuple[str, ...], salt: bytes) -> Change:
    hmac = _hmac(salt)
    encoded = [(entry.encode(), _encode(entry)) for entry in entries]
    size = len(encoded)

    def change(texts: Sequence[bytes]) -> list[bytes]:
        masked = []
        for text, digest in zip(texts, hmac(texts), strict=True):
            choice = _choice(digest)
            chosen, shown = encoded[choice % size]
            masked.append(shown if chosen != text else encoded[(choice + 1) % size][1])
        return masked

    return change


def _noising(step: Decimal, salt: bytes) -> Change:
    hmac = _hmac(salt)

    def change(texts: Sequence[bytes]) -> list[bytes]:
        return [
            _number(_noisy(_finite(text), step, _choice(digest)), text) for text, digest in zip(texts, hmac(texts), strict=True)
        ]

    return change


def _hmac(salt: bytes) -> Change:
    """HMAC-SHA256 (RFC 2104) of each text. The key's two pads are hashed once: half the cost for short texts."""
    begin_inner, begin_outer = (hashlib.sha256(pad).copy for pad in padded(salt))

    def digests(texts: Sequence[bytes]) -> list[bytes]:
        found = []
        for text in texts:
            inner, outer = begin_inner(), begin_outer()
            inner.update(text)
            outer.update(inner.digest())
            found.append(outer.digest())
        return found

    return digests


@lru_cache(maxsize=8)
def padded(salt: bytes) -> tuple[bytes, bytes]:
    """The inner and the outer key of HMAC-SHA256."""
    key = (hashlib.sha256(salt).digest() if len(salt) > _BLOCK else salt).ljust(_BLOCK, b"\0")
    return bytes(byte ^ 0x36 for byte in key), bytes(byte ^ 0x5C for byte in key)


def _choice(digest: bytes) -> int:
    """The digits are one short of whole bytes."""
    return int.from_bytes(digest[CHOICE_START // 2 : (CHOICE_START + CHOICE_DIGITS) // 2 + 1], "big") >> 4


def _finite(text: bytes) -> Decimal | None:
    """NaN and the infinities stay as they are."""
    value = EXACT.create_decimal(text.decode())
    return value if value.is_finite() else None


def _number(value: Decimal | None, text: bytes) -> bytes:
    if value is None:
        return _encode(text.decode())
    return format(value if value else abs(value), "f").encode()


def _noisy(value: Decimal | None, step: Decimal, choice: int) -> Decimal | None:
    if value is None:
        return None
    factor = EXACT.fma(choice % (2 * NOISE_STEPS + 1) - NOISE_STEPS, step, 1)
    return EXACT.multiply(value, factor).quantize(_quantum(value.as_tuple().exponent), ROUND_HALF_UP, EXACT)


@lru_cache(maxsize=64)
def _quantum(exponent: int) -> Decimal:
    """The last digit of a noisy number, by the exponent of its value."""
    return Decimal(1).scaleb(-min(max(-exponent, 0) + NOISE_DIGITS, NOISE_SCALE))
