"""The text of an agent token: `gw_live_` or `gw_test_`, 32 hexadecimal digits, `_`, and 6 characters of checksum. Pure.

A scanner for secrets finds one by its prefix and knows by the checksum that it is no accident. The store has only a MAC of it.
"""

import hashlib
import re
from typing import Final, Literal, get_args

TokenKind = Literal["live", "test"]
RANDOM_BYTES: Final = 16
SHOWN: Final = 12
_CHECK: Final = 6
_FORM: Final = re.compile(r"gw_(live|test)_[0-9a-f]{32}_[0-9a-f]{6}")


def token_text(kind: TokenKind, random: bytes) -> str:
    """`random`: 16 fresh bytes."""
    assert len(random) == RANDOM_BYTES
    assert kind in get_args(TokenKind)
    stem = f"gw_{kind}_{random.hex()}"
    return f"{stem}_{checksum(stem)}"


def is_token(text: str) -> bool:
    """Whether the text has the form and the checksum of a token; says nothing of whether one exists."""
    return _FORM.fullmatch(text) is not None and checksum(text[: -_CHECK - 1]) == text[-_CHECK:]


def checksum(stem: str) -> str:
    return hashlib.sha256(b"gatewayd agent token\n" + stem.encode()).hexdigest()[:_CHECK]
