"""What a gate answers, given the newest request for a write (docs/approvals.md, What a gate must keep). Pure.

Both gates of gatewayd use these rules, each over its own store: the command `approvals` and the control plane.
"""

from typing import Final, Literal

import msgspec

from gatewayd.approvals.messages import Approved, Expired, GateAnswer, GateDenied, Pending, RunOutcome, Status

OPEN_OF_ONE: Final = 20
"""The most requests that one token may have open."""

DecidedAs = Literal["approved", "denied"]


class TooManyOpen(Exception):
    """The token has too many open requests; the first of them expires in `retry_after_s` seconds."""

    def __init__(self, first_expires_ms: int, now_ms: int) -> None:
        super().__init__(f"{OPEN_OF_ONE} requests of this token are open")
        self.retry_after_s = max(1, -(-(first_expires_ms - now_ms) // 1000))


class NotAsked(Exception):
    """There is no such request of this token, or its query_id belongs to another write."""


class RequestStanding(msgspec.Struct, frozen=True):
    """The state of a request. `decided_by` is a name; `claimed_by` and `expiry_told_to` are query_ids."""

    approval_id: str
    state: Literal["pending", "approved", "denied"]
    expires_ms: int
    decided_by: str | None
    note: str | None
    rows_at_most: int | None
    claimed_by: str | None
    expiry_told_to: str | None
    outcome: RunOutcome | None

    def is_open(self, now_ms: int) -> bool:
        """Whether the request can still be decided."""
        return self.state == "pending" and self.expires_ms > now_ms

    def approved(self) -> Approved:
        return Approved(by=self.decided_by, note=self.note, rows_at_most=self.rows_at_most, approval_id=self.approval_id)


def newest_says(newest: RequestStanding | None, query_id: str, now_ms: int) -> GateAnswer | None:
    """The answer to a query from the newest request for its write, which has no approval to claim. None if that request is over,
    or there is none, and a new one must be opened. The caller notes that an Expired was reported to this query."""
    if newest is None or newest.claimed_by is not None:
        return None
    if newest.state == "denied":
        denied = GateDenied(by=newest.decided_by, note=newest.note, approval_id=newest.approval_id)
        return denied if newest.expires_ms > now_ms else None
    if newest.expires_ms > now_ms:
        return Pending(approval_id=newest.approval_id, expires_at=newest.expires_ms)
    return Expired(approval_id=newest.approval_id) if newest.expiry_told_to in (None, query_id) else None


def status_of(request: RequestStanding | None, now_ms: int) -> Status:
    """The answer to a poll. Claims nothing. `request` is None if the poller has no such request."""
    if request is None:
        return Status("not_found")
    if request.claimed_by is not None:
        return Status("executed" if request.outcome == "executed" else "consumed")
    if request.state == "denied":
        return Status("denied", by=request.decided_by, note=request.note)
    if request.expires_ms <= now_ms:
        return Status("expired")
    if request.state == "approved":
        return Status("approved", by=request.decided_by, note=request.note)
    return Status("pending", expires_at=request.expires_ms)
