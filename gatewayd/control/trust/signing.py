"""The control plane's signing keys, made from the ring CONTROL_SIGNING_KEY: root keys sign trust documents, others the rest.

A ring of two values has two working keys, and gateways trust both: so the next one can be brought everywhere before it is used.
"""

from collections.abc import Sequence

from gatewayd.control.keyring.ring import Key, Ring
from gatewayd.keys.ed25519 import SigningKey


def working_keys(ring: Ring) -> list[SigningKey]:
    """The one in use first."""
    return [working_key(key) for key in ring.keys]


def working_key(key: Key) -> SigningKey:
    return SigningKey(key.mac("ed25519 working key"))


def root_keys(ring: Ring) -> list[SigningKey]:
    """The one in use first."""
    return [SigningKey(key.mac("ed25519 root key")) for key in ring.keys]


def signers(ring: Ring) -> Sequence[SigningKey]:
    """What a document is signed with: the current working key alone."""
    return [working_key(ring.current)]
