"""Rotation of a gateway's identity: the key in force asks, the next one proves itself (docs/link-protocol.md, Rotation).

Pure. Both sides use it.
"""

import base64
import binascii
from typing import Final

import msgspec

from gatewayd.keys.ed25519 import PublicKey, SigningKey
from gatewayd.link.formats.documents import DocumentRefused, public_key, public_text

_DOMAIN: Final = b"gatewayd rotate 1\n"


class RotateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`public_key` is the next identity, as documents.public_text. `proof` is its signature, in base64, over the gateway, the key
    that signs the request and itself: so nobody can have a key that is not theirs put in place of this gateway's."""

    public_key: str
    proof: str
    nonce: str


def rotate_body(next_identity: SigningKey, *, gateway: str, signer: PublicKey, nonce: str) -> RotateBody:
    """The body of a request that `signer`, the identity in force, signs."""
    proof = next_identity.sign(_proved(gateway, signer, next_identity.public))
    return RotateBody(public_text(next_identity.public), base64.b64encode(proof).decode(), nonce)


def next_key(body: RotateBody, *, gateway: str, signer: PublicKey) -> PublicKey:
    """The key that is proved to ask for its place. Raises DocumentRefused."""
    found = public_key(body.public_key)
    try:
        proof = base64.b64decode(body.proof, validate=True)
    except (binascii.Error, ValueError):
        raise DocumentRefused("envelope", "its proof is no base64") from None
    if not found.verifies(proof, _proved(gateway, signer, found)):
        raise DocumentRefused("envelope", "its proof is not the next key's")
    return found


def _proved(gateway: str, signer: PublicKey, following: PublicKey) -> bytes:
    name = gateway.encode()
    return _DOMAIN + len(name).to_bytes(8, "big") + name + signer.raw + following.raw
