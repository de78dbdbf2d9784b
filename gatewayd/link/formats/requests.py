"""Requests of a gateway: signed by its identity, numbered within a run (docs/link-protocol.md, Enrolment and identity).

Pure. The gateway makes them, the control plane reads them and says whether they come late, from a copy, or at a wrong time.
"""

from typing import Final, Literal, TypeVar

import msgspec

from gatewayd.keys.ed25519 import PublicKey, SigningKey
from gatewayd.keys.envelope import EnvelopeRefused, parse
from gatewayd.link.formats.documents import DocumentRefused, digest, opened, seal

RequestKind = Literal[
    "enrol", "rotate", "poll", "audit", "approval", "approval_wait", "approval_status", "approval_outcome", "taint", "catalog"
]  # fmt: skip
PATHS: Final[dict[RequestKind, str]] = {
    "enrol": "/link/v1/enrol",
    "rotate": "/link/v1/rotate",
    "poll": "/link/v1/poll",
    "audit": "/link/v1/audit",
    "approval": "/link/v1/approval",
    "approval_wait": "/link/v1/approval/wait",
    "approval_status": "/link/v1/approval/status",
    "approval_outcome": "/link/v1/approval/outcome",
    "taint": "/link/v1/taint",
    "catalog": "/link/v1/catalog",
}
CLOCK_MS: Final = 5 * 60 * 1000
"""A request further from the control plane's clock than this is refused, in a signed answer with its time."""

T = TypeVar("T")


class LinkRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`run` is drawn at each start, `n` counts within it, `ts` is in milliseconds. `body` has the shape of its kind."""

    issuer: str
    gateway: str
    kind: RequestKind
    run: str
    n: int
    ts: int
    body: msgspec.Raw


class SentRequest(msgspec.Struct, frozen=True):
    """A request as it goes out. `digest` is what answers to it name."""

    request: LinkRequest
    data: bytes
    digest: str


class ReadRequest(msgspec.Struct, frozen=True):
    """A verified request, and the digest of its envelope."""

    request: LinkRequest
    digest: str


def sign_request(request: LinkRequest, identity: SigningKey) -> SentRequest:
    """The signed envelope of a request, and its digest."""
    data = seal("request", request, [identity])
    return SentRequest(request, data, digest(data))


def read_request(data: bytes, identity: PublicKey) -> ReadRequest:
    """The request of an envelope that `identity` has signed. Raises DocumentRefused."""
    return ReadRequest(read_body(opened("request", data, [identity]), LinkRequest), digest(data))


class Claimed(msgspec.Struct, frozen=True):
    """What a request says of its sender, unverified: whose key is to be asked for."""

    issuer: str
    gateway: str
    kind: RequestKind


def claimed(data: bytes) -> Claimed:
    """Raises DocumentRefused."""
    try:
        return read_body(parse(data).payload, Claimed)
    except EnvelopeRefused as refused:
        raise DocumentRefused("envelope", refused.reason) from None


def read_body(body: bytes | msgspec.Raw, shape: type[T]) -> T:
    """A request's payload or its `body`. Raises DocumentRefused.

    By msgspec alone, which takes the last of a key that is there twice: a batch of rows is large, and only one program reads it.
    """
    try:
        return msgspec.json.decode(body, type=shape)
    except (ValueError, RecursionError):
        raise DocumentRefused("envelope", f"it has not the shape of a {shape.__name__.lower()}") from None


class EnrolBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`token` is the secret part of the enrolment token, `public_key` that which signs this very request."""

    token: str
    public_key: str
    nonce: str
    version: str


class PollsBefore(msgspec.Struct, frozen=True):
    """What the control plane remembers of the polls of a gateway: the last run, its last number, time and digest, and the runs
    before it, oldest first."""

    run: str
    n: int
    ts: int
    digest: str
    earlier_runs: tuple[str, ...] = ()


PollOrder = Literal["next", "same", "late", "duplicated", "clock"]
RUNS_KEPT: Final = 32


def order_of(found: ReadRequest, before: PollsBefore | None, now_ms: int) -> PollOrder:
    """How a poll stands to those before it. Polls alone are in an order: other kinds run beside them, each idempotent by its key.

    - `next`: a higher number of the run, or the first of a new run.
    - `same`: the very bytes of the last one, come twice; it gets an answer again.
    - `late`: a lower number, or a superseded run's from before: refused quietly, it may have waited somewhere.
    - `duplicated`: two senders hold this identity: the same number with other bytes, or a superseded run that goes on.
    - `clock`: further than CLOCK_MS from `now_ms`.
    """
    request = found.request
    if before is not None and found.digest == before.digest:
        return "same"
    if is_off_clock(request, now_ms):
        return "clock"
    if before is None:
        return "next"
    if request.run == before.run:
        if request.n == before.n:
            return "duplicated"
        return "next" if request.n > before.n else "late"
    if request.run in before.earlier_runs:
        return "duplicated" if request.ts > before.ts else "late"
    return "next"


def is_off_clock(request: LinkRequest, now_ms: int) -> bool:
    """Whether the request's time is further than CLOCK_MS from `now_ms`."""
    return abs(request.ts - now_ms) > CLOCK_MS


def after(found: ReadRequest, before: PollsBefore | None) -> PollsBefore:
    """What is remembered once a poll was `next`."""
    request = found.request
    earlier: tuple[str, ...] = ()
    if before is not None:
        earlier = before.earlier_runs
        if before.run != request.run:
            earlier = (*earlier, before.run)[-RUNS_KEPT:]
    return PollsBefore(request.run, request.n, request.ts, found.digest, earlier)
