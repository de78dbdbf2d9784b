"""Each mask in Python: one JSON value as `row_to_json` writes it in, the masked JSON value out (contract 10). Pure.

`sql_transforms.py` says the same in SQL; a test holds the two to equal bytes. Numbers are Decimals, dates are text: nothing
passes through a binary float or through Python's calendar, which ends at the year 9999.

Every mask is total: no value makes it fail, because a failure would tell something about the value. What no date can hold (a
truncation below 4713 BC) becomes -infinity.
"""

import hashlib
import re
from binascii import hexlify
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final

import msgspec

from gatewayd.masking.dictionaries import ENTRIES
from gatewayd.masking.families import Family
from gatewayd.policy.model import ConsistentHash, FullRedact, Generalize, Mask, Noise, NullOut, Partial, Pseudonymize

REDACTED: Final = "***"
HASH_DIGITS: Final = 32
CHOICE_START: Final = 32
CHOICE_DIGITS: Final = 15
"""What chooses a pseudonym or a noise comes from hexadecimal digits of the HMAC that `consistent-hash` never shows: a column with
the one mask must not tell how the other was drawn."""
STEP_DIGITS: Final = 15
NOISE_STEPS: Final = 10**STEP_DIGITS
"""u is a whole number of steps in -1 … 1. So fine that no divisor of the result betrays the value."""
NOISE_DIGITS: Final = 2
"""A noisy number has this many digits more behind the point than its value: 3 would come out as 3 otherwise."""
NOISE_SCALE: Final = 1000
NULL: Final = b"null"

_BLOCK: Final = 64  # bytes of a block of SHA-256

_EXACT: Final = Context(prec=400_000)  # numeric has at most 131072 digits before the point and 16383 behind it
_DATE: Final = re.compile(r"(\d+)-(\d\d)-(\d\d)(T[\d:.]+)?(\+00:00)?( BC)?")
_FIRST_YEAR_BC: Final = 4714  # of PostgreSQL's calendar, not a whole one
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(str).decode

Change = Callable[[Sequence[bytes]], list[bytes]]
"""Of values that are not null, all at once: with a thousand of them a call of a function for each costs as much as its work."""


class Transform:
    """One column's mask: JSON values in, the masked ones out, in order; null stays null."""

    def __init__(self, kind: Family, change: Change | None, constant: bytes = NULL) -> None:
        """`constant` stands for every value where there is no `change`."""
        self.is_tight = kind not in ("json", "other")
        """Whether PostgreSQL writes such values without blanks beside them. A `json` keeps those that it was stored with."""
        self._change = change
        self._constant = constant

    def __call__(self, value: bytes) -> bytes:
        return self.batch((value.strip(),))[0]

    def batch(self, values: Sequence[bytes]) -> list[bytes]:
        """Values that are repeated are worked out once. Nothing is kept from batch to batch: they are what must not be seen."""
        change = self._change
        if change is None:
            return [NULL if value == NULL else self._constant for value in values]
        distinct = set(values)
        if NULL not in distinct and 2 * len(distinct) > len(values):
            return change(values)
        different = list(distinct - {NULL})
        masked = dict(zip(different, change(different), strict=True))
        masked[NULL] = NULL
        return [masked[value] for value in values]


@lru_cache(maxsize=256)
def transform(mask: Mask, kind: Family, salt: bytes) -> Transform:
    """The mask of one column whose values are of `kind`."""
    match mask:
        case NullOut():
            return Transform(kind, None)
        case FullRedact():
            return Transform(kind, None, _encode(REDACTED))
        case ConsistentHash():
            return Transform(kind, _hashing(kind, salt))
        case Partial():
            return Transform(kind, _covering(kind, mask))
        case Pseudonymize():
            return Transform(kind, _pseudonymizing(kind, ENTRIES[mask.kind], salt))
        case Generalize(granularity=str(unit)):
            return Transform(kind, _truncating(unit))
        case Generalize(granularity=int() | float() as granularity):
            return Transform(kind, _flooring(kind, width_of(granularity)))
        case Noise():
            return Transform(kind, _noising(kind, Decimal(repr(mask.ratio)).scaleb(-STEP_DIGITS), salt))
    raise AssertionError(f"nobody has taught this what {mask} does")


def width_of(width: int | float) -> Decimal:
    """A width as written in the policy, without zeros that only the float has: 10.0 is 10."""
    exact = Decimal(repr(width)).normalize(_EXACT)
    return exact if int(exact.as_tuple().exponent) <= 0 else exact.quantize(Decimal(1))


def covered(text: str, mask: Partial) -> str:
    """Kept ends, the rest glyphs. A text that the ends would show whole is covered whole, an empty one by one glyph."""
    hidden = len(text) - mask.keepStart - mask.keepEnd
    if hidden <= 0:
        return mask.glyph * max(len(text), 1)
    return text[: mask.keepStart] + mask.glyph * hidden + text[len(text) - mask.keepEnd :]


def _texts(values: Sequence[bytes], kind: Family) -> list[bytes]:
    """The text of each value, in UTF-8. That of a blank-padded one has no blanks at its end."""
    if b"\\" in b"".join(values):
        texts = [_decode(value).encode() if b"\\" in value and value[:1] == b'"' else value.strip(b'"') for value in values]
    else:
        texts = [value.strip(b'"') for value in values]
    return [text.rstrip(b" ") for text in texts] if kind == "blank-padded" else texts


def _hashing(kind: Family, salt: bytes) -> Change:
    hmac = _hmac(salt)
    return lambda values: [b'"' + hexlify(digest)[:HASH_DIGITS] + b'"' for digest in hmac(_texts(values, kind))]


def _covering(kind: Family, mask: Partial) -> Change:
    glyph = _encode(mask.glyph)[1:-1]
    start, end = mask.keepStart + 1, -1 - mask.keepEnd
    least = start - end

    def change(values: Sequence[bytes]) -> list[bytes]:
        text = b"".join(values)
        if text.isascii() and b"\\" not in text and kind != "blank-padded":  # a character is a byte, and stands as it is shown
            return [
                value[:start] + glyph * (len(value) - least) + value[end:] if len(value) > least else any_text((value,))[0]
                for value in values
            ]
        return any_text(values)

    def any_text(values: Sequence[bytes]) -> list[bytes]:
        return [_encode(covered(text.decode(), mask)) for text in _texts(values, kind)]

    return change


def _pseudonymizing(kind: Family, entries: tuple[str, ...], salt: bytes) -> Change:
    hmac = _hmac(salt)
    encoded = [(entry.encode(), _encode(entry)) for entry in entries]
    size = len(encoded)

    def change(values: Sequence[bytes]) -> list[bytes]:
        masked = []
        for text, digest in zip(texts := _texts(values, kind), hmac(texts), strict=True):
            choice = _choice(digest)
            chosen, shown = encoded[choice % size]
            masked.append(shown if chosen != text else encoded[(choice + 1) % size][1])
        return masked

    return change


def _truncating(unit: str) -> Change:
    end, more = {"year": (6, b"01-01"), "month": (9, b"01"), "day": (11, b"")}[unit]

    def change(value: bytes) -> bytes:
        if value[5:6] != b"-" or not value[-2:-1].isdigit():  # infinity, BC, a year of more than four digits
            return _encode(_truncated(value.decode().strip('"'), unit))
        time = b"T00:00:00" if value[11:12] == b"T" else b""
        return value[:end] + more + time + (b'+00:00"' if value[-7:-6] == b"+" else b'"')

    return lambda values: [change(value) for value in values]


def _flooring(kind: Family, width: Decimal) -> Change:
    return lambda values: [_number(_floored(_finite(text), width), text) for text in _texts(values, kind)]


def _noising(kind: Family, step: Decimal, salt: bytes) -> Change:
    hmac = _hmac(salt)

    def change(values: Sequence[bytes]) -> list[bytes]:
        texts = _texts(values, kind)
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


def _truncated(text: str, unit: str) -> str:
    found = _DATE.fullmatch(text)
    if found is None:  # infinity, -infinity
        return text
    year, month, day, time, zone, bc = found.groups(default="")
    if unit != "day" and bc and int(year) >= _FIRST_YEAR_BC:
        return "-infinity"
    month, day = ("01", "01") if unit == "year" else (month, "01") if unit == "month" else (month, day)
    return f"{year}-{month}-{day}{'T00:00:00' if time else ''}{zone}{bc}"


def _finite(text: bytes) -> Decimal | None:
    """NaN and the infinities stay as they are."""
    value = _EXACT.create_decimal(text.decode())
    return value if value.is_finite() else None


def _number(value: Decimal | None, text: bytes) -> bytes:
    if value is None:
        return _encode(text.decode())
    return format(value if value else abs(value), "f").encode()


def _floored(value: Decimal | None, width: Decimal) -> Decimal | None:
    if value is None:
        return None
    rest = _EXACT.remainder(value, width)  # has the sign of the value, as PostgreSQL's mod()
    if rest < 0:
        rest = _EXACT.add(rest, width)
    return _EXACT.subtract(value, rest)


def _noisy(value: Decimal | None, step: Decimal, choice: int) -> Decimal | None:
    if value is None:
        return None
    factor = _EXACT.fma(choice % (2 * NOISE_STEPS + 1) - NOISE_STEPS, step, 1)
    return _EXACT.multiply(value, factor).quantize(_quantum(value.as_tuple().exponent), ROUND_HALF_UP, _EXACT)


@lru_cache(maxsize=64)
def _quantum(exponent: int) -> Decimal:
    """The last digit of a noisy number, by the exponent of its value."""
    return Decimal(1).scaleb(-min(max(-exponent, 0) + NOISE_DIGITS, NOISE_SCALE))
