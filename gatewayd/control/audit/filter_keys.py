"""The 64-bit hashes by which events are found: of project, kind and value. One index over them answers every filter. Pure."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, Literal

KeyKind = Literal["agent", "token", "database", "fingerprint", "table", "decision", "rule", "event"]

_TABLES: Final = 64


def filter_key(project_id: str, kind: KeyKind, value: str) -> int:
    """Signed, as PostgreSQL's bigint; the columns themselves are checked again, so that two of one hash do not matter."""
    text = f"{project_id}\0{kind}\0{value}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def tables_of(payload: Mapping[str, Any]) -> list[str]:
    """The tables that a DECIDED row names."""
    tables = payload.get("tables_touched")
    return [each for each in tables[:_TABLES] if isinstance(each, str)] if isinstance(tables, list) else []
