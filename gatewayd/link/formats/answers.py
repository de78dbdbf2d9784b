"""What the control plane answers to one request: freshness, refusal, ack, conflict, enrolment (docs/link-protocol.md, Requests).

Each names the digest of the request that it answers, so none can be shown again to another. An answer that is none of them (a
page of a portal, a bare 403) says nothing: the control plane is unreachable.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeVar

import msgspec

from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.formats.documents import NO_ENVELOPE, DocumentKind, DocumentRefused, opened, read, seal
from gatewayd.link.formats.trust import Trust


class TreeHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The audit tree as one side holds it: `size` leaves of the instance, `root` in hex."""

    instance: str
    size: int
    root: str


class Freshness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to every poll: which bundle is the newest, now. `version` 0: the project has none yet.

    `head` is the audit head that the control plane holds of this gateway's instance, None where it holds none; `public_urls` are
    those that it knows for this gateway.
    """

    gateway: str
    project: str
    version: int
    sha256: str
    ts: int
    request: str
    run: str
    n: int
    head: TreeHead | None = None
    public_urls: tuple[str, ...] = ()


RefusalReason = Literal["cut", "duplicated", "late", "clock", "status", "not_now"]


class RefusalAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request that is refused, and by whom: only this cuts the link (`cut`, `duplicated`).

    `status`: the control plane does not know what a newer gateway reports. `clock`: `ts` is its own time.
    """

    gateway: str
    request: str
    reason: RefusalReason
    ts: int
    message: str = ""


CUTTING: Final[frozenset[RefusalReason]] = frozenset({"cut", "duplicated"})


class Ack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows `from_seq` to `to_seq` of the instance are held, under the tree of `size` leaves with this `root`."""

    gateway: str
    instance: str
    from_seq: int
    to_seq: int
    request: str
    size: int
    root: str
    ts: int


class Conflict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The control plane holds another leaf at `seq`: `leaf`, its inclusion `proof` in `head` (hex, lowest first)."""

    gateway: str
    instance: str
    request: str
    seq: int
    leaf: str
    proof: tuple[str, ...]
    head: TreeHead
    first_seq: int
    ts: int


class Enrolment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to an enrolment: the gateway's name and whom it belongs to. `ts` is in milliseconds since the epoch."""

    gateway: str
    project: str
    issuer: str
    tenant_id: str
    request: str
    nonce: str
    ts: int


class PollAnswer(msgspec.Struct, frozen=True):
    """The unsigned outside of the answer to a poll: envelopes, each verified for itself. `bundle` is there when it is newer."""

    freshness: msgspec.Raw
    bundle: msgspec.Raw = NO_ENVELOPE
    trust: tuple[msgspec.Raw, ...] = ()


class EnrolAnswer(msgspec.Struct, frozen=True):
    """The unsigned outside of the answer to an enrolment: two envelopes, each verified for itself."""

    enrolment: msgspec.Raw
    trust: msgspec.Raw


SignedAnswer = TypeVar("SignedAnswer", Freshness, RefusalAnswer, Ack, Conflict)
_KINDS: Final[dict[type, DocumentKind]] = {Freshness: "freshness", RefusalAnswer: "refusal", Ack: "ack", Conflict: "conflict"}


def sign_answer(answer: Freshness | RefusalAnswer | Ack | Conflict | Enrolment, keys: Sequence[SigningKey]) -> bytes:
    """The signed envelope of an answer."""
    return seal("enrolment" if isinstance(answer, Enrolment) else _KINDS[type(answer)], answer, keys)


def read_answer(data: bytes, shape: type[SignedAnswer], trust: Trust, now_ms: int, *, gateway: str, request: str) -> SignedAnswer:
    """The answer of this kind to this very request of this gateway. Raises DocumentRefused."""
    kind = _KINDS[shape]
    answer = read(opened(kind, data, trust.keys_for(kind, now_ms)), shape)
    if answer.gateway != gateway or answer.request != request:
        raise DocumentRefused("project", "it answers another request")
    return answer


def read_enrolment(data: bytes, trust: Trust, now_ms: int, *, request: str, nonce: str) -> Enrolment:
    """Raises DocumentRefused."""
    found = read(opened("enrolment", data, trust.keys_for("enrolment", now_ms)), Enrolment)
    if found.request != request or found.nonce != nonce:
        raise DocumentRefused("project", "it answers another request")
    if found.issuer != trust.issuer:
        raise DocumentRefused("issuer", "it is another issuer's")
    return found
