"""The texts about approvals for agents (docs/approvals.md, What the agent sees). Pure.

Names and notes of reviewers are untrusted text: characters that could control a terminal or turn the direction of text are
escaped.
"""

from datetime import UTC, datetime
from typing import Final

from gatewayd.approvals.messages import GrantState

NOTE_CHARACTERS: Final = 500
BY_CHARACTERS: Final = 100
SOMEBODY: Final = "a reviewer"

NEXT: Final[dict[GrantState, str]] = {
    "pending": "Nobody has decided yet. Wait, then call check_approval again; do not run the statement again meanwhile.",
    "approved": "Approved and not run yet. Call query once, with exactly the same sql and intent.",
    "executed": "It was approved and has run. Do not run it again: that would do it twice.",
    "consumed": "The approval was used, and whether the write took effect is not known. Look at the data before anything else.",
    "denied": "A reviewer refused it. Do not send it again unchanged.",
    "expired": "Nobody decided in time. Running the statement again asks again.",
    "not_found": "No such request of yours. Use the approval_id that query gave you.",
}
RESUME: Final = (
    "Call check_approval with this approval_id. When it says approved, call query once more with exactly this sql and intent: "
    "one character of difference opens a new request."
)


def legible(text: str, at_most: int | None = None) -> str:
    """The text with control characters, direction marks and zero-width spaces escaped."""
    cut = text if at_most is None or len(text) <= at_most else text[:at_most] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def denied_reason(by: str | None, note: str | None) -> str:
    """Why a refused write did not run: the reviewer's name and note."""
    who = legible((by or "").strip(), BY_CHARACTERS) or SOMEBODY
    said = legible((note or "").strip(), NOTE_CHARACTERS)
    return f"{who} refused this write" + (f": {said}" if said else "; do not send it again unchanged")


EXPIRED_REASON: Final = "nobody decided about this write in time, so it did not run; running it again asks again"


def iso(ts_ms: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(ts_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
