"""The form of one inclusion proof as text: C2SP tlog-proof, with what it proves in its `extra` line. Pure."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from gatewayd.keys.ed25519 import base64_of, strict_base64

FIRST_LINE: Final = "c2sp.org/tlog-proof@v1"
_FORM: Final = re.compile(
    re.escape(FIRST_LINE) + r"\nextra ([A-Za-z0-9+/=]+)\nindex (0|[1-9][0-9]{0,18})\n((?:[A-Za-z0-9+/]{43}=\n){0,64})\n(.+)",
    re.DOTALL,
)


class ProofForm(msgspec.Struct, frozen=True):
    """`extra`: what is proved, `hashes`: from its leaf at `index` up to the root, `note`: the signed head."""

    extra: bytes
    index: int
    hashes: tuple[bytes, ...]
    note: str


def proof_text(extra: bytes, index: int, hashes: Sequence[bytes], note: str) -> str:
    lines = "".join(f"{base64_of(each)}\n" for each in hashes)
    return f"{FIRST_LINE}\nextra {base64_of(extra)}\nindex {index}\n{lines}\n{note}"


def read_proof(text: str) -> ProofForm | None:
    """None for what is in another form. Raises ValueError for base64 that is not canonical."""
    matched = _FORM.fullmatch(text)
    if matched is None:
        return None
    hashes = tuple(strict_base64(line) for line in matched[3].split())
    return ProofForm(strict_base64(matched[1]), int(matched[2]), hashes, matched[4])
