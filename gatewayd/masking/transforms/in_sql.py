"""Each mask as an SQL expression, the keyed ones byte for byte what `in_python.py` does (decision 10). Pure; needs no extension.

Every function, operator and type is named with its schema; all OPERATOR(…) bind alike, hence the brackets. Keys and dictionaries
are bind parameters, never text: a text shows up in pg_stat_activity, in logs and in error positions. HMAC is made of sha256()
and the two padded keys, so the salt itself never leaves the gateway.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from gatewayd.masking.rules.families import Family
from gatewayd.masking.transforms.dictionaries import ENTRIES
from gatewayd.masking.transforms.in_python import (
    CHOICE_DIGITS,
    CHOICE_START,
    EXACT,
    HASH_DIGITS,
    NOISE_DIGITS,
    NOISE_SCALE,
    NOISE_STEPS,
    padded,
)
from gatewayd.policy.file.model import ConsistentHash, FullRedact, Generalize, Mask, Noise, NullOut, Partial, Pseudonymize

REDACTED: Final = "***"

Parameter = bytes | tuple[str, ...]
Keyless = FullRedact | NullOut | Partial | Generalize

_TEXT: Final = "::pg_catalog.text"
_NUMERIC: Final = "::pg_catalog.numeric"
_INT8: Final = "::pg_catalog.int8"
_JOIN: Final = " OPERATOR(pg_catalog.||) "


class Parameters:
    """The bind parameters of one statement; an equal value is bound once."""

    def __init__(self, salt: bytes) -> None:
        self.values: list[Parameter] = []
        self._inner, self._outer = padded(salt)

    def bind(self, value: Parameter) -> str:
        """The placeholder of a parameter, which is added unless it is there."""
        if value not in self.values:
            self.values.append(value)
        return f"${self.values.index(value) + 1}"

    def hmac(self, text: str) -> str:
        """HMAC-SHA256 (RFC 2104) of an SQL text, as 64 hexadecimal digits."""
        inner = f"{self.bind(self._inner)}::pg_catalog.bytea{_JOIN}pg_catalog.convert_to({text}, 'UTF8')"
        outer = f"{self.bind(self._outer)}::pg_catalog.bytea{_JOIN}pg_catalog.sha256({inner})"
        return f"pg_catalog.encode(pg_catalog.sha256({outer}), 'hex')"

    def choice(self, text: str) -> str:
        """An SQL expression for a whole number made of the HMAC of `text`, by which an entry of a list is chosen."""
        digits = f"pg_catalog.substr({self.hmac(text)}, {CHOICE_START + 1}, {CHOICE_DIGITS})"
        return f"('x'{_TEXT}{_JOIN}{digits})::pg_catalog.bit({CHOICE_DIGITS * 4}){_INT8}"


def masked(mask: Mask, column: str, kind: Family, parameters: Parameters, *, nullable: bool = True) -> str:
    """The expression that stands for `column` (a qualified, quoted reference) of a type of `kind`; `nullable` as in `keyless`."""
    text = column + _TEXT
    match mask:
        case ConsistentHash():
            return f"pg_catalog.substr({parameters.hmac(text)}, 1, {HASH_DIGITS})"
        case Pseudonymize():
            return _pseudonym(text, ENTRIES[mask.kind], parameters)
        case Noise():
            return _of_number(column, kind, lambda value: _noisy(value, text, mask.ratio, parameters))
    return keyless(mask, column, kind, nullable=nullable)


def keyless(mask: Keyless, column: str, kind: Family, *, nullable: bool = True) -> str:
    """As `masked`, where no parameter is needed. `nullable` False makes the expression independent of the column where the mask
    permits it."""
    match mask:
        case NullOut():
            # Not NULL::type: a domain may forbid NULL. The planner leaves nothing of the column.
            return f"CASE WHEN false THEN {column} END"
        case FullRedact():
            redacted = f"'{REDACTED}'{_TEXT}"
            if kind == "json":  # a JSON null looks like NULL in the row, and is taken for it
                blanks = "E' \\t\\n\\r'"
                is_value = f"pg_catalog.btrim({column}{_TEXT}, {blanks}) OPERATOR(pg_catalog.<>) 'null'"
                return f"CASE WHEN {is_value} THEN {redacted} END"
            # Not IS NULL, which is true of a row whose fields are all null.
            return f"CASE WHEN {column} IS DISTINCT FROM NULL THEN {redacted} END" if nullable else redacted
        case Partial():
            return _partial(mask, column + _TEXT)
        case Generalize(granularity=str(unit)):
            return _truncated(column, kind, unit)
        case Generalize(granularity=int() | float() as width):
            return _of_number(column, kind, lambda value: _floored(value, width))
    raise AssertionError(f"nobody has taught this what {mask} does")


def _partial(mask: Partial, text: str) -> str:
    glyph = "'" + mask.glyph.replace("'", "''") + f"'{_TEXT}"
    length = f"pg_catalog.length({text})"
    kept = mask.keepStart + mask.keepEnd
    whole = f"pg_catalog.repeat({glyph}, GREATEST({length}, 1))"
    hidden = f"pg_catalog.repeat({glyph}, {length} OPERATOR(pg_catalog.-) {kept})"
    ends = f"pg_catalog.left({text}, {mask.keepStart}){_JOIN}{hidden}{_JOIN}pg_catalog.right({text}, {mask.keepEnd})"
    return f"CASE WHEN {length} OPERATOR(pg_catalog.<=) {kept} THEN {whole} ELSE {ends} END"


def _pseudonym(text: str, entries: tuple[str, ...], parameters: Parameters) -> str:
    choice = parameters.choice(text)
    array = f"({parameters.bind(entries)}::pg_catalog.text[])"

    def entry(number: str) -> str:
        return f"{array}[pg_catalog.mod({number}, {len(entries)}{_INT8})::pg_catalog.int4 OPERATOR(pg_catalog.+) 1]"

    # One HMAC where the first entry will do. NULLIF compares as "C": a collation of the column's own may find more to be equal.
    first = f'NULLIF({entry(choice)}, {text} COLLATE pg_catalog."C")'
    return f"COALESCE({first}, {entry(f'{choice} OPERATOR(pg_catalog.+) 1{_INT8}')})"


def _truncated(column: str, kind: Family, unit: str) -> str:
    type_ = f"pg_catalog.{'date' if kind == 'date' else 'timestamptz' if kind == 'timestamp with time zone' else 'timestamp'}"
    value = f"{column}::{type_}"
    if kind == "date":
        if unit == "day":
            return value
        field = "doy" if unit == "year" else "day"
        back = f"EXTRACT({field} FROM {value})::pg_catalog.int4 OPERATOR(pg_catalog.-) 1"
        # Not by way of a timestamp: dates reach further into the future.
        cut = f"CASE WHEN pg_catalog.isfinite({value}) THEN {value} OPERATOR(pg_catalog.-) ({back}) ELSE {value} END"
    else:
        zone = ", 'UTC'" if kind == "timestamp with time zone" else ""
        cut = f"pg_catalog.date_trunc('{unit}', {value}{zone})"
        if unit == "day":
            return cut
    bound = "4713-01-01 00:00:00+00 BC" if kind == "timestamp with time zone" else "4713-01-01 BC"
    return f"CASE WHEN {value} OPERATOR(pg_catalog.<) '{bound}'::{type_} THEN '-infinity'::{type_} ELSE {cut} END"


def _of_number(column: str, kind: Family, change: Callable[[str], str]) -> str:
    """Numbers leave as numeric: a multiple below the least integer is no integer. A float's digits are those of its text."""
    value = f"{column}{_TEXT}{_NUMERIC}" if kind == "float" else f"{column}{_NUMERIC}"
    if kind == "integer":
        return change(value)
    endless = f"{value} OPERATOR(pg_catalog.=) ANY ('{{NaN,Infinity,-Infinity}}'::pg_catalog.numeric[])"
    return f"CASE WHEN {endless} THEN {value} ELSE {change(value)} END"


def width_of(width: int | float) -> Decimal:
    """A width as written in the policy, without zeros that only the float has: 10.0 is 10."""
    exact = Decimal(repr(width)).normalize(EXACT)
    return exact if int(exact.as_tuple().exponent) <= 0 else exact.quantize(Decimal(1))


def _floored(value: str, width: int | float) -> str:
    exact = f"'{width_of(width):f}'{_NUMERIC}"
    rest = f"pg_catalog.mod({value}, {exact})"
    below = f"CASE WHEN {rest} OPERATOR(pg_catalog.<) 0{_NUMERIC} THEN {exact} ELSE 0{_NUMERIC} END"
    # Not floor(value / width): the quotient of numerics is rounded.
    return f"{value} OPERATOR(pg_catalog.-) {rest} OPERATOR(pg_catalog.-) {below}"


def _noisy(value: str, text: str, ratio: float, parameters: Parameters) -> str:
    steps = f"pg_catalog.mod({parameters.choice(text)}, {2 * NOISE_STEPS + 1}{_INT8}) OPERATOR(pg_catalog.-) {NOISE_STEPS}{_INT8}"
    step = f"'{width_of(ratio) / NOISE_STEPS:f}'{_NUMERIC}"
    factor = f"1{_NUMERIC} OPERATOR(pg_catalog.+) (({steps}){_NUMERIC} OPERATOR(pg_catalog.*) {step})"
    scale = f"LEAST(pg_catalog.scale({value}) OPERATOR(pg_catalog.+) {NOISE_DIGITS}, {NOISE_SCALE})"
    return f"pg_catalog.round({value} OPERATOR(pg_catalog.*) ({factor}), {scale})"
