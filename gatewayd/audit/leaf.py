"""The leaf of a row, made from the columns as they are stored (docs/audit-format.md, Leaf). Pure.

    leaf       = SHA-256(0x00 ‖ "gatewayd audit 2\\n" ‖ seq as 8 bytes ‖ SHA-256(envelope) ‖ commitment)
    commitment = SHA-256(salt ‖ length of details as 8 bytes ‖ details ‖ zero bytes up to a multiple of 256 after the salt)

`details` are the texts that may be erased, `envelope` is everything else, with "" in place of each detail. The salt is random and
is erased with the details: without it nobody can test guesses against the commitment.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

SALT_BYTES: Final = 32
DETAIL_KEYS: Final = ("error_message", "masking_reason", "reason", "sql_raw")
ERASED_KEY: Final = "erased"
_PAD_BYTES: Final = 256
_PREFIX: Final = b"\x00gatewayd audit 2\n"
_ZEROS: Final = tuple(bytes(-(8 + length) % _PAD_BYTES) for length in range(_PAD_BYTES))  # by what the length leaves over

LeafJson = None | bool | int | float | str | list["LeafJson"] | dict[str, "LeafJson"]


class PayloadRefused(ValueError):
    """A payload that gatewayd would not have written: not a JSON object, or not in canonical form."""


class Facts(msgspec.Struct, frozen=True, gc=False):
    """The two halves of a row. `is_erased`: the payload says that its details were erased. `has_details`: one is not empty."""

    envelope: bytes
    details: bytes
    is_erased: bool
    has_details: bool
    erased_seqs: object = None

    def seq_ranges(self) -> list[tuple[int, int]]:
        """The ranges (first, last) of seq that an ERASED row names."""
        try:
            return msgspec.convert(self.erased_seqs, list[tuple[int, int]])
        except msgspec.ValidationError:
            return []


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    """The fields are in the order of their names, so that nothing has to be sorted."""

    agent_intent: object
    agent_name: object
    agent_version: object
    database: object
    event_type: object
    id: object
    mcp_token_id: object
    payload: msgspec.Raw
    query_id: object
    schema_version: object
    tenant_id: object
    ts: object


_NOT_IN_ENVELOPE: Final = frozenset({*DETAIL_KEYS, ERASED_KEY})
_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode: Final = msgspec.json.Decoder(dict[str, object], float_hook=str).decode
_decode_exactly: Final = msgspec.json.Decoder(dict[str, object]).decode


def leaf_of(seq: int, envelope: bytes, commitment: bytes) -> bytes:
    """The leaf of a row, 32 bytes."""
    return sha256(b"".join((_PREFIX, seq.to_bytes(8, "big"), sha256(envelope).digest(), commitment))).digest()


def commitment_of(salt: bytes, details: bytes) -> bytes:
    """The commitment to a row's details, 32 bytes. The padding hides their length."""
    length = len(details)
    return sha256(b"".join((salt, length.to_bytes(8, "big"), details, _ZEROS[length % _PAD_BYTES]))).digest()


def facts_of(columns: Sequence[str | int | None]) -> Facts:
    """The halves of a stored row, from its columns in the specification's order, `id` first.

    Raises PayloadRefused if the payload is not in the form that gatewayd writes, because two readers could then read it
    differently.
    """
    text, intent = str(columns[10]), columns[6]
    data, fields = _payload(text)
    seqs = fields.get("seqs")
    details: dict[str, object] = {} if intent is None else {"agent_intent": intent}
    is_erased = False
    if not _NOT_IN_ENVELOPE.isdisjoint(fields):
        for key in DETAIL_KEYS:
            value = fields.get(key)
            if isinstance(value, str):
                details[key] = value
                fields[key] = ""
        is_erased = fields.pop(ERASED_KEY, None) is True
        data = _encode(fields)
    envelope = _Envelope(
        None if intent is None else "",
        columns[4],
        columns[5],
        columns[3],
        columns[9],
        columns[0],
        columns[7],
        msgspec.Raw(data),
        columns[1],
        columns[11],
        columns[2],
        columns[8],
    )
    return Facts(_encode(envelope), _encode(details) if details else b"{}", is_erased, any(details.values()), seqs)


def erased_payload(payload: str) -> str:
    """The payload with "" for each detail, and with `erased`. The row's envelope does not change."""
    fields: dict[str, object] = _decode_exactly(payload)
    for key in DETAIL_KEYS:
        if isinstance(fields.get(key), str):
            fields[key] = ""
    return _encode({**fields, ERASED_KEY: True}).decode()


def canonical(value: object) -> bytes:
    """The canonical JSON of rows and metadata: UTF-8, keys sorted by their bytes, no white space."""
    return _encode(value)


def _payload(text: str) -> tuple[bytes, dict[str, object]]:
    """The canonical form of `text` and the object in it, where numbers that are not integers are the characters that they are
    written with."""
    try:
        data = text.encode()
        fields: dict[str, object] = _decode(data)
        encoded = _encode(fields)
        if encoded != data and _encode(_decode_exactly(data)) != data:
            raise PayloadRefused("its payload is not in the form that gatewayd writes")
    except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError, RecursionError):
        raise PayloadRefused("its payload is no JSON object") from None
    return encoded, fields
