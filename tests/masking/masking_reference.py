"""Each mask by the words of docs/policy.md: one JSON value as `row_to_json` writes it in, the masked JSON value out. Slow and plain:
what the masks in SQL and those in Python are held to."""

import hmac
import json
import re
from decimal import ROUND_HALF_UP, Context, Decimal

from gatewayd.masking.rules.families import Family
from gatewayd.masking.transforms.dictionaries import ENTRIES
from gatewayd.policy.file.model import ConsistentHash, FullRedact, Generalize, Mask, Noise, NullOut, Partial, Pseudonymize
from tests.masking.masking_table import SALT

EXACT = Context(prec=400_000)
DATE = re.compile(r"(\d+)-(\d\d)-(\d\d)(T[\d:.]+)?(\+00:00)?( BC)?")
FIRST_YEAR_BC = 4714  # of PostgreSQL's calendar, not a whole one


def masked(mask: Mask, kind: Family, value: bytes) -> bytes:
    if value.strip() == b"null" or isinstance(mask, NullOut):
        return b"null"
    if isinstance(mask, FullRedact):
        return b'"***"'
    text = json.loads(value) if value.startswith(b'"') else value.decode()
    if kind == "blank-padded":
        text = text.rstrip(" ")
    match mask:
        case ConsistentHash():
            return a_string(digits(text)[:32])
        case Pseudonymize():
            entries = ENTRIES[mask.kind]
            chosen = int(digits(text)[32:47], 16)
            entry = entries[chosen % 256]
            return a_string(entry if entry != text else entries[(chosen + 1) % 256])
        case Partial():
            return a_string(covered(text, mask))
        case Generalize(granularity=str(unit)):
            return a_string(truncated(text, unit))
        case Generalize(granularity=width):
            return number(floored(Decimal(text), Decimal(str(width))), text)
        case Noise():
            return number(noisy(Decimal(text), mask.ratio, digits(text)), text)
    raise AssertionError(mask)


def a_string(text: str) -> bytes:
    """As PostgreSQL writes it."""
    return json.dumps(text, ensure_ascii=False).encode()


def digits(text: str) -> str:
    return hmac.new(SALT, text.encode(), "sha256").hexdigest()


def covered(text: str, mask: Partial) -> str:
    hidden = len(text) - mask.keepStart - mask.keepEnd
    if hidden <= 0:
        return mask.glyph * max(len(text), 1)
    return text[: mask.keepStart] + mask.glyph * hidden + text[len(text) - mask.keepEnd :]


def truncated(text: str, unit: str) -> str:
    found = DATE.fullmatch(text)
    if found is None:  # infinity, -infinity
        return text
    year, month, day, time, zone, bc = found.groups(default="")
    if unit != "day" and bc and int(year) >= FIRST_YEAR_BC:
        return "-infinity"
    month, day = ("01", "01") if unit == "year" else (month, "01") if unit == "month" else (month, day)
    return f"{year}-{month}-{day}{'T00:00:00' if time else ''}{zone}{bc}"


def number(value: Decimal, text: str) -> bytes:
    """NaN and the infinities stay as they are."""
    return format(value if value else abs(value), "f").encode() if value.is_finite() else a_string(text)


def floored(value: Decimal, width: Decimal) -> Decimal:
    if not value.is_finite():
        return value
    width = width.normalize(EXACT)
    if int(width.as_tuple().exponent) > 0:
        width = width.quantize(Decimal(1))
    rest = EXACT.remainder(value, width)
    return EXACT.subtract(value, EXACT.add(rest, width) if rest < 0 else rest)


def noisy(value: Decimal, ratio: float, hexadecimal: str) -> Decimal:
    if not value.is_finite():
        return value
    steps = 10**15
    share = Decimal(int(hexadecimal[32:47], 16) % (2 * steps + 1) - steps) / steps
    factor = EXACT.fma(share, Decimal(str(ratio)), 1)
    scale = min(max(-int(value.as_tuple().exponent), 0) + 2, 1000)
    return EXACT.multiply(value, factor).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
