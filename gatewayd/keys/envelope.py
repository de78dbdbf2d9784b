"""DSSE envelopes: one signed document, its type and its exact bytes (https://github.com/secure-systems-lab/dsse).

The signature is over the type and the payload's bytes, so one kind of document never stands for another, and the bytes that were
verified are the bytes that are parsed. Stricter than DSSE asks for: an envelope has exactly one form, so that no changed copy of
one is accepted. That is compact JSON with the keys in their order, canonical base64, and in `keyid` the id of the key that
verifies. The key id only refuses; it never chooses a key.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from gatewayd.keys.ed25519 import PublicKey, SigningKey, strict_base64

MOST_SIGNATURES: Final = 8
_KEYS: Final = ["payloadType", "payload", "signatures"]


class EnvelopeRefused(Exception):
    """No envelope, signed by none of the keys, or (`is_type`) a good one of another type. `reason` quotes nothing of it."""

    def __init__(self, reason: str, *, is_type: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_type = is_type


class Signature(msgspec.Struct, frozen=True):
    """One signature of an envelope, and the id of its key."""

    keyid: str
    sig: str


class Envelope(msgspec.Struct, frozen=True):
    """An envelope that is well formed; whether it is signed, only `verify` says."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, keys: Sequence[SigningKey]) -> bytes:
    """The envelope of `payload`, signed by each of `keys`."""
    signed = pae(payload_type, payload)
    signatures = [Signature(key.public.key_id, base64.b64encode(key.sign(signed)).decode()) for key in keys]
    return _encode(payload_type, base64.b64encode(payload), signatures)


def verify(data: bytes, payload_type: str, keys: Iterable[PublicKey], *, each: bool = False) -> bytes:
    """The payload of the envelope. Raises EnvelopeRefused.

    One good signature of one of `keys` is enough: an issuer may sign with its present and its next key. With `each` every one
    of `keys` must have signed.
    """
    envelope = parse(data)
    signed = pae(envelope.payload_type, envelope.payload)
    needed = list(keys)
    good = [key for key in needed if _has_signed(key, envelope.signatures, signed)]
    if not good or (each and len(good) != len(needed)):
        raise EnvelopeRefused("no signature of a key that may sign it verifies")
    if envelope.payload_type != payload_type:
        raise EnvelopeRefused("it is of another type", is_type=True)
    return envelope.payload


def parse(data: bytes) -> Envelope:
    """What the envelope holds, unverified. Raises EnvelopeRefused when it is not in the one form."""
    try:
        found = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise EnvelopeRefused("it is no JSON") from None
    if not isinstance(found, dict) or list(found) != _KEYS:
        raise EnvelopeRefused("it is no envelope")
    kind, payload, listed = found.values()
    if not isinstance(kind, str) or not isinstance(payload, str) or not isinstance(listed, list):
        raise EnvelopeRefused("it is no envelope")
    if not 1 <= len(listed) <= MOST_SIGNATURES:
        raise EnvelopeRefused("it has no signature, or too many")
    signatures = tuple(_signature(each) for each in listed)
    try:
        in_form = _encode(kind, payload.encode("ascii"), signatures) == data
    except UnicodeEncodeError:
        in_form = False
    if not in_form:
        raise EnvelopeRefused("it is not in the one form of an envelope")
    return Envelope(kind, _unbase64(payload), signatures)


def _signature(found: Any) -> Signature:
    if not isinstance(found, dict) or list(found) != ["keyid", "sig"]:
        raise EnvelopeRefused("it is no envelope")
    keyid, sig = found.values()
    if not isinstance(keyid, str) or not isinstance(sig, str):
        raise EnvelopeRefused("it is no envelope")
    return Signature(keyid, sig)


def _has_signed(key: PublicKey, signatures: Sequence[Signature], signed: bytes) -> bool:
    return any(each.keyid == key.key_id and key.verifies(_unbase64(each.sig), signed) for each in signatures)


def _encode(kind: str, payload: bytes, signatures: Sequence[Signature]) -> bytes:
    return b'{"payloadType":%b,"payload":"%b","signatures":%b}' % (
        msgspec.json.encode(kind),
        payload,
        msgspec.json.encode(signatures),
    )


def _unbase64(text: str) -> bytes:
    try:
        return strict_base64(text)
    except ValueError:
        raise EnvelopeRefused("it holds no canonical base64") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise EnvelopeRefused("a key is there twice")
    return found
