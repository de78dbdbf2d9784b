"""What a gateway says of itself in each poll (docs/link-protocol.md, Poll)."""

from typing import Literal

import msgspec

from gatewayd.link.formats.answers import TreeHead
from gatewayd.link.formats.documents import NO_ENVELOPE

StateName = Literal["waiting", "enforcing", "paused", "halted"]


class NotEnforced(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why the newest bundle that was delivered is not in force. `envelope` is the digest of its envelope, so that the control
    plane does not send the same one again at once; `version` is there once it was found authentic."""

    check: str
    error: str
    version: int | None = None
    envelope: str = ""


class DatabaseStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of one database: whether its catalog was last read, the catalog's revision, and how many relations it has."""

    name: str
    reachable: bool
    catalog_revision: int
    relations: int = 0


class Supports(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What this gatewayd can enforce: the bundle format, the features, and its own version."""

    format: int
    features: tuple[str, ...]
    version: str


class PollBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`wait_s` is how long the control plane may hold the poll; `trust_version` from which on trust documents are wanted.

    `newest` and `acks` are envelopes as they came, for a control plane that was restored from a backup and knows less than it
    once signed: there only when the last freshness was below what the gateway has seen. `note` is the newest signed head of the
    audit file, for the control plane to keep as a witness.
    """

    state: StateName
    cut: bool
    version: int
    sha256: str
    seen_version: int
    trust_version: int
    supports: Supports
    wait_s: float
    databases: tuple[DatabaseStatus, ...] = ()
    problem: NotEnforced | None = None
    head: TreeHead | None = None
    acked: TreeHead | None = None
    newest: msgspec.Raw = NO_ENVELOPE
    acks: tuple[msgspec.Raw, ...] = ()
    note: str | None = None
