"""What all signed documents of the link have in common: their types, how one is made, how one is read (docs/link-protocol.md).

Pure, as this whole folder: the gateway and the control plane use the same functions, each its own half.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeVar

import msgspec

from gatewayd.keys import envelope
from gatewayd.keys.ed25519 import KeyRefused, PublicKey, SigningKey, strict_base64
from gatewayd.keys.envelope import EnvelopeRefused

DocumentKind = Literal[
    "bundle", "freshness", "ack", "conflict", "verdict", "taint", "trust", "refusal", "request", "enrolment"
]  # fmt: skip
BundleCheck = Literal["envelope", "type", "issuer", "project", "version", "features", "enforceable"]
"""In the order in which they are made. Past `version` a document is authentic."""

BUNDLE_BYTES: Final = 4 * 1024 * 1024
REQUEST_BYTES: Final = 16 * 1024 * 1024
DOCUMENT_BYTES: Final = 64 * 1024
"""The payload of any other document."""

NO_ENVELOPE: Final = msgspec.Raw(b"null")
"""Stands where an envelope may be left out."""

T = TypeVar("T")


class DocumentRefused(Exception):
    """A document that is not taken. `check` is the first that failed; `reason` quotes nothing of the document."""

    def __init__(self, check: BundleCheck, reason: str) -> None:
        super().__init__(f"{check}: {reason}")
        self.check = check
        self.reason = reason


def public_text(key: PublicKey) -> str:
    """A public key as documents carry it: base64 of its 32 bytes."""
    return base64.b64encode(key.raw).decode()


def public_key(text: str) -> PublicKey:
    """Raises DocumentRefused for what is no key, and for a weak one."""
    try:
        return PublicKey(strict_base64(text))
    except (KeyRefused, ValueError):
        raise DocumentRefused("envelope", "it names a key that is none, or a weak one") from None


def payload_type(kind: DocumentKind) -> str:
    """The payload type that the envelope of such a document names."""
    return f"application/vnd.gatewayd.{kind}+json"


def digest(data: bytes) -> str:
    """SHA-256 in hex: of a payload, of a request's envelope, of whatever another document names."""
    return hashlib.sha256(data).hexdigest()


def encode(document: msgspec.Struct) -> bytes:
    """The JSON of a document, in the form that is signed."""
    return msgspec.json.encode(document)


def seal(kind: DocumentKind, document: msgspec.Struct, keys: Sequence[SigningKey]) -> bytes:
    """The signed envelope of a document."""
    return envelope.sign(payload_type(kind), encode(document), keys)


def opened(kind: DocumentKind, data: bytes, keys: Iterable[PublicKey], *, each: bool = False) -> bytes:
    """The payload, once the envelope is verified. Raises DocumentRefused with `envelope` or `type`."""
    limit = {"bundle": BUNDLE_BYTES, "request": REQUEST_BYTES}.get(kind, DOCUMENT_BYTES)
    if len(data) > limit * 4 // 3 + 4096:
        raise DocumentRefused("envelope", f"it is larger than {limit} bytes")
    try:
        return envelope.verify(data, payload_type(kind), keys, each=each)
    except EnvelopeRefused as refused:
        raise DocumentRefused("type" if refused.is_type else "envelope", refused.reason) from None


def read(payload: bytes, shape: type[T], *, check: BundleCheck = "envelope") -> T:
    """The document of a verified payload. Raises DocumentRefused: no JSON, a key twice, or another shape."""
    try:
        found = json.loads(payload, object_pairs_hook=_unique, parse_constant=_no_number)
        return msgspec.convert(found, shape)
    except (ValueError, RecursionError):
        raise DocumentRefused(check, f"it has not the shape of a {shape.__name__.lower()}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
