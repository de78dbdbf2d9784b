"""A statement without its constants, for whoever may know what was asked and not about whom. Pure."""

from typing import Final

from gatewayd.sql.text.parse import NotParsed, parse
from gatewayd.sql.text.tokens import scan

CONSTANTS: Final = frozenset({"SCONST", "ICONST", "FCONST", "BCONST", "XCONST", "USCONST"})
"""Names of the tokens that are constants."""
_PLACE: Final = b"?"


def redacted(sql: str) -> str | None:
    """The statement with `?` for each constant, its comments left out; None where it cannot be parsed."""
    try:
        data = parse(sql).data
        tokens = scan(data)
    except (NotParsed, ValueError, RecursionError):
        return None
    parts = (_PLACE if token.name in CONSTANTS else data[token.start : token.end] for token in tokens)
    return b" ".join(parts).decode()
