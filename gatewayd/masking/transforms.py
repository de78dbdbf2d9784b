"""Each mask in Python: one JSON value as `row_to_json` writes it in, the masked JSON value out (contract 10). Pure.

`sql_transforms.py` says the same in SQL; a test holds the two to equal bytes. Numbers are Decimals, dates are text: nothing
passes through a binary float or through Python's calendar, which ends at the year 9999.

Every mask is total: no value makes it fail, because a failure would tell something about the value. What no date can hold (a
truncation below 4713 BC) becomes -infinity.
"""

import hashlib
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final

import msgspec

from gatewayd.masking.dictionaries import ENTRIES
from gatewayd.masking.families import Family
from gatewayd.policy.model import ConsistentHash, FullRedact, Generalize, Mask, Noise, NullOut, Partial, Pseudonymize

Transform = Callable[[bytes], bytes]

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
_text = msgspec.json.Decoder(str).decode


def transform(mask: Mask, kind: Family, salt: bytes) -> Transform:
    """The mask of one column whose values are of `kind`. The transform takes and gives one JSON value; null stays null."""
    match mask:
        case NullOut():
            return lambda value: NULL
        case FullRedact():
            redacted = _encode(REDACTED)
            return lambda value: NULL if value.strip() == NULL else redacted
        case ConsistentHash():
            return _over_text(kind, lambda text: _encode(_hmac(salt, text)[:HASH_DIGITS]))
        case Partial():
            return _over_text(kind, lambda text: _encode(covered(text, mask)))
        case Pseudonymize():
            return _over_text(kind, lambda text: _encode(_pseudonym(text, ENTRIES[mask.kind], salt)))
        case Generalize(granularity=granularity):
            if isinstance(granularity, str):
                return _over_text(kind, lambda text: _encode(_truncated(text, granularity)))
            width = width_of(granularity)
            return _over_text(kind, lambda text: _number(_floored(_finite(text), width), text))
        case Noise():
            ratio = Decimal(repr(mask.ratio))
            return _over_text(kind, lambda text: _number(_noisy(_finite(text), text, ratio, salt), text))


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


def _over_text(kind: Family, change: Callable[[str], bytes]) -> Transform:
    """What a change of the value's text makes of its JSON. The text of a blank-padded value has no blanks at its end."""

    def apply(value: bytes) -> bytes:
        if value == NULL:
            return NULL
        text = _text(value) if value.startswith(b'"') else value.decode()
        return change(text.rstrip(" ") if kind == "blank-padded" else text)

    return apply


def _hmac(salt: bytes, text: str) -> str:
    """HMAC-SHA256 (RFC 2104) in hexadecimal digits. The key's two pads are hashed once: half the cost for short texts."""
    inner, outer = map(_copy, _padded(salt))
    inner.update(text.encode())
    outer.update(inner.digest())
    return outer.hexdigest()


@lru_cache(maxsize=8)
def _padded(salt: bytes) -> tuple["hashlib._Hash", "hashlib._Hash"]:
    key = (hashlib.sha256(salt).digest() if len(salt) > _BLOCK else salt).ljust(_BLOCK, b"\0")
    return hashlib.sha256(bytes(byte ^ 0x36 for byte in key)), hashlib.sha256(bytes(byte ^ 0x5C for byte in key))


def _copy(started: "hashlib._Hash") -> "hashlib._Hash":
    return started.copy()


def _choice(salt: bytes, text: str) -> int:
    return int(_hmac(salt, text)[CHOICE_START : CHOICE_START + CHOICE_DIGITS], 16)


def _pseudonym(text: str, entries: tuple[str, ...], salt: bytes) -> str:
    choice = _choice(salt, text)
    chosen = entries[choice % len(entries)]
    return chosen if chosen != text else entries[(choice + 1) % len(entries)]


def _truncated(text: str, unit: str) -> str:
    found = _DATE.fullmatch(text)
    if found is None:  # infinity, -infinity
        return text
    year, month, day, time, zone, bc = found.groups(default="")
    if unit != "day" and bc and int(year) >= _FIRST_YEAR_BC:
        return "-infinity"
    month, day = ("01", "01") if unit == "year" else (month, "01") if unit == "month" else (month, day)
    return f"{year}-{month}-{day}{'T00:00:00' if time else ''}{zone}{bc}"


def _finite(text: str) -> Decimal | None:
    """NaN and the infinities stay as they are."""
    value = _EXACT.create_decimal(text)
    return value if value.is_finite() else None


def _number(value: Decimal | None, text: str) -> bytes:
    if value is None:
        return _encode(text)
    return format(value if value else abs(value), "f").encode()


def _floored(value: Decimal | None, width: Decimal) -> Decimal | None:
    if value is None:
        return None
    rest = _EXACT.remainder(value, width)  # has the sign of the value, as PostgreSQL's mod()
    if rest < 0:
        rest = _EXACT.add(rest, width)
    return _EXACT.subtract(value, rest)


def _noisy(value: Decimal | None, text: str, ratio: Decimal, salt: bytes) -> Decimal | None:
    if value is None:
        return None
    steps = _choice(salt, text) % (2 * NOISE_STEPS + 1) - NOISE_STEPS
    factor = _EXACT.add(Decimal(1), _EXACT.multiply(ratio, Decimal(steps).scaleb(-STEP_DIGITS)))
    scale = max(-int(value.as_tuple().exponent), 0)
    exact = _EXACT.multiply(value, factor)
    return exact.quantize(Decimal(1).scaleb(-min(scale + NOISE_DIGITS, NOISE_SCALE)), ROUND_HALF_UP, _EXACT)
