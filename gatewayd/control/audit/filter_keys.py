"""The 64-bit hashes by which events are found: of project, kind and value. One index over them answers every filter. Pure."""

from hashlib import blake2b
from typing import Literal

KeyKind = Literal["agent", "token", "database", "fingerprint", "table", "decision", "rule", "event"]


def filter_key(project_id: str, kind: KeyKind, value: str) -> int:
    """Signed, as PostgreSQL's bigint; the columns themselves are checked again, so that two of one hash do not matter."""
    text = f"{project_id}\0{kind}\0{value}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)
