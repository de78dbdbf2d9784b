"""Trust: which working keys may sign what, said by the root key (docs/link-protocol.md, Trust).

A gateway pins the root when it is enrolled and takes only higher versions. Where a document names another root, both have signed
it, so a gateway that was off walks through all that came meanwhile, in order.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from gatewayd.keys.ed25519 import PublicKey, SigningKey
from gatewayd.keys.envelope import EnvelopeRefused, parse
from gatewayd.link.formats.documents import DocumentKind, DocumentRefused, digest, opened, public_key, read, seal

USES: Final[tuple[DocumentKind, ...]] = ("bundle", "freshness", "ack", "conflict", "verdict", "taint", "refusal", "enrolment")
CLOCK_SLACK_MS: Final = 24 * 3600 * 1000
"""A key ends so much later than it says: clocks of machines step, and the gateway must not cut itself off for one that does."""


class WorkingKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key that may sign documents of these kinds, until `not_after`."""

    public: str  # as documents.public_text
    uses: tuple[DocumentKind, ...]
    not_after: int  # milliseconds since the epoch


class Trust(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`root` is the key that signs; `next_root`, where there is one, signs too and is the root from then on."""

    version: int
    issuer: str
    root: str
    keys: tuple[WorkingKey, ...]
    ts: int
    next_root: str | None = None

    def keys_for(self, use: DocumentKind, now_ms: int) -> list[PublicKey]:
        """The keys that may sign a document of this kind now."""
        return [public_key(key.public) for key in self.keys if use in key.uses and now_ms <= key.not_after + CLOCK_SLACK_MS]

    @property
    def root_from_now_on(self) -> str:
        return self.next_root or self.root


def fingerprint_of(root: PublicKey) -> str:
    """What an enrolment token carries of the root: SHA-256 of its 32 bytes, in hex."""
    return digest(root.raw)


def sign_trust(trust: Trust, root: SigningKey, next_root: SigningKey | None = None) -> bytes:
    """The signed envelope of a trust document. `next_root` signs too if the document names one."""
    return seal("trust", trust, [root] if next_root is None else [root, next_root])


def first_trust(data: bytes, fingerprint: str, issuer: str | None = None) -> Trust:
    """The trust that enrolment brings: signed by the root whose fingerprint the token carries. Raises DocumentRefused."""
    claimed = _unverified(data)
    root = public_key(claimed.root_from_now_on)
    if fingerprint_of(root) != fingerprint:
        raise DocumentRefused("issuer", "its root is not the one that the token names")
    return _read(data, [root], issuer or claimed.issuer)


def next_trust(data: bytes, held: Trust) -> Trust:
    """`data` where it is newer than `held` and signed by the root that `held` leaves in force. Raises DocumentRefused."""
    root = public_key(held.root_from_now_on)
    claimed = _unverified(data)
    signers = [root] if claimed.next_root is None else [root, public_key(claimed.next_root)]
    trust = _read(data, signers, held.issuer)
    if trust.root != held.root_from_now_on:
        raise DocumentRefused("issuer", "its root is another one")
    if trust.version <= held.version:
        raise DocumentRefused("version", f"found version {trust.version}; expected one above {held.version}")
    return trust


def walked(documents: Iterable[bytes], held: Trust) -> tuple[Trust, bytes | None]:
    """The newest trust that `documents`, oldest first, lead to from `held`, with its envelope; older ones are passed over.

    Raises DocumentRefused for the first that does not follow.
    """
    trust, newest = held, None
    for data in documents:
        if data != newest and _unverified(data).version > trust.version:
            trust, newest = next_trust(data, trust), data
    return trust, newest


def again(data: bytes, root: str) -> Trust:
    """The trust that a gateway kept, read back: signed by the root that it pinned. Raises DocumentRefused."""
    trust = _read(data, [public_key(root)], None)
    if trust.root_from_now_on != root:
        raise DocumentRefused("issuer", "its root is not the one that is pinned")
    return trust


def _unverified(data: bytes) -> Trust:
    """What the document says of itself: only to know whose signatures to ask for."""
    try:
        return read(parse(data).payload, Trust)
    except EnvelopeRefused as refused:
        raise DocumentRefused("envelope", refused.reason) from None


def _read(data: bytes, signers: Sequence[PublicKey], issuer: str | None) -> Trust:
    trust = read(opened("trust", data, signers, each=True), Trust)
    if issuer is not None and trust.issuer != issuer:
        raise DocumentRefused("issuer", "it is another issuer's")
    for key in trust.keys:
        public_key(key.public)
    return trust
