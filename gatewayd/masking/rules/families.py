"""What kind of values a column holds, as far as masks ask, and which mask fits which kind (decision 10). Pure."""

from typing import Final, Literal

from gatewayd.catalog import Catalog
from gatewayd.policy.file.model import (
    ConsistentHash,
    FullRedact,
    Generalize,
    Mask,
    Noise,
    NullOut,
    Partial,
    Pseudonymize,
)

Family = Literal[
    "text",
    "blank-padded",
    "integer",
    "numeric",
    "float",
    "uuid",
    "date",
    "timestamp",
    "timestamp with time zone",
    "json",
    "other",
]

_FAMILIES: Final[dict[str, Family]] = {
    "text": "text",
    "character varying": "text",
    "character": "blank-padded",
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "numeric": "numeric",
    "real": "float",
    "double precision": "float",
    "uuid": "uuid",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamp with time zone",
    "json": "json",
    "jsonb": "json",
}
_TEXTS: Final = frozenset[Family]({"text", "blank-padded"})
_NUMBERS: Final = frozenset[Family]({"integer", "numeric", "float"})
_DATES: Final = frozenset[Family]({"date", "timestamp", "timestamp with time zone"})
_HASHED: Final = _TEXTS | {"integer", "numeric", "uuid", "date"}


def family(type_: str, catalog: Catalog) -> Family:
    """`type_` is as `catalog.Column.type`. A domain is of the kind of its base type; citext is text."""
    found = _FAMILIES.get(type_)
    if found is not None:
        return found
    schema, _, name = type_.rpartition(".")
    known = catalog.types.get((_unquoted(schema) or "pg_catalog", _unquoted(name)))
    if known is None:
        return "other"
    if known.kind == "domain":
        return _FAMILIES.get(known.base, "other")
    return "text" if known.name == known.extension == "citext" else "other"


def misfit(mask: Mask, kind: Family) -> str | None:
    """What a mask expects of its column's type, when it is not that; None where it fits."""
    match mask:
        case FullRedact() | NullOut():
            return None
        case ConsistentHash():
            return None if kind in _HASHED else "text, an integer, numeric, uuid or date"
        case Partial() | Pseudonymize():
            return None if kind in _TEXTS else "text"
        case Generalize(granularity=str()):
            return None if kind in _DATES else "a date or timestamp (or a number as granularity)"
        case Generalize():
            return None if kind in _NUMBERS else "a number (or year, month or day as granularity)"
        case Noise():
            return None if kind in _NUMBERS else "a number"


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
