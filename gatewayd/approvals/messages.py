"""The messages between a gateway and an approval gate, as values (docs/approvals.md, Protocol). Pure: both sides import this.

Unknown keys are ignored in requests and in answers, so that a gateway and a gate of different versions work together.
`read_answer` and `read_status` check that an answer is complete and valid.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gatewayd.policy.decide.guardrails import WriteClass

TEXT_BYTES: Final = 16 * 1024
"""The largest note or name, in bytes of UTF-8."""
ROWS_COUNTED: Final = 10_001
"""A preview stops counting here: this number means "more than 10 000"."""

ApprovalId = Annotated[str, Meta(pattern=r"\A[!-~]{1,64}\Z")]
GrantQueryId = Annotated[str, Meta(min_length=1, max_length=64)]
TokenId = Annotated[str, Meta(min_length=1, max_length=64)]
ShortText = Annotated[str, Meta(max_length=TEXT_BYTES)]
Milliseconds = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
"""Milliseconds since the epoch, until the year 9999."""
RowCount = Annotated[int, Meta(ge=0, le=2**53)]
ReviewUrl = Annotated[str, Meta(pattern=r"\Ahttps?://[!-~]{1,2040}\Z")]

GrantState = Literal["pending", "approved", "executed", "consumed", "denied", "expired", "not_found"]
RunOutcome = Literal["executed", "failed", "unknown"]


class Preview(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a write would change. Without `rows`, `why` says why they could not be counted; with them, in what way the count is
    inexact. `plan` has the lines of PostgreSQL's EXPLAIN."""

    rows: Annotated[int, Meta(ge=0, le=ROWS_COUNTED)] | None
    plan: tuple[str, ...] = ()
    counted_ms: int | None = None
    why: str | None = None


class GateAsk(msgspec.Struct, frozen=True):
    """One held write, for a person to decide. An approval is valid for (database, sql, intent, mcp_token_id, effect)."""

    query_id: GrantQueryId
    database: str
    sql: str
    intent: str | None
    statement_type: str
    tables_touched: tuple[str, ...]
    tenant_id: str
    agent_name: str | None
    agent_version: str | None
    mcp_token_id: TokenId | None
    fingerprint: str
    write_class: WriteClass
    policy_hash: str
    preview: Preview | None = None
    hold_s: float = 0.0
    """How many seconds the gateway waits for a decision. A gate that answers `pending` at once is then asked at `/wait`."""
    effect: str = ""
    """A digest of the relations that the statement's names stand for: another table or view of the same name has another one."""
    contained: bool = False
    """Held for containment, too: the agent has read foreign text, or that could not be found out (docs/policy.md)."""


class Wait(msgspec.Struct, frozen=True):
    """Waits for the decision about a request. Answered as GateAsk is, and claims an approval as GateAsk does."""

    approval_id: ApprovalId
    query_id: GrantQueryId
    mcp_token_id: TokenId | None = None
    wait_s: float = 0.0
    """After this many seconds the gate answers `pending`. The gateway no longer reads a later answer."""


class StatusAsked(msgspec.Struct, frozen=True):
    """A poll for the state of a request. Claims nothing."""

    approval_id: ApprovalId
    mcp_token_id: TokenId | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a claimed approval. `failed` means that nothing was written."""

    query_id: GrantQueryId
    outcome: RunOutcome
    rows: int | None = None


class _Answer(msgspec.Struct, frozen=True, tag_field="status", omit_defaults=True, kw_only=True):
    """An answer may repeat `query_id` and `approval_id`; they must then equal those of the request."""

    query_id: GrantQueryId | None = None


class Approved(_Answer, frozen=True, tag="approved"):
    """An approval, claimed by this query. The write may change at most `rows_at_most` rows, if that is set."""

    by: ShortText | None = None
    note: ShortText | None = None
    rows_at_most: RowCount | None = None
    approval_id: ApprovalId | None = None


class GateDenied(_Answer, frozen=True, tag="denied"):
    """A person's denial, with a name and a note if there are any."""

    by: ShortText | None = None
    note: ShortText | None = None
    approval_id: ApprovalId | None = None


class Expired(_Answer, frozen=True, tag="expired"):
    """Nobody decided before the request expired."""

    approval_id: ApprovalId | None = None


class Pending(_Answer, frozen=True, tag="pending"):
    """No decision yet. `expires_at` is in milliseconds since the epoch."""

    approval_id: ApprovalId
    expires_at: Milliseconds
    review_url: ReviewUrl | None = None


GateAnswer = Approved | GateDenied | Expired | Pending


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a request. `pending` has `expires_at`; `approved` and `denied` may have `by` and `note`."""

    status: GrantState
    by: ShortText | None = None
    note: ShortText | None = None
    expires_at: Milliseconds | None = None


class BadMessage(Exception):
    """The text is not a valid message. `str()` says what is wrong and quotes no value of it."""


_answers = msgspec.json.Decoder(GateAnswer)
_statuses = msgspec.json.Decoder(Status)


def read_answer(body: bytes, query_id: str) -> GateAnswer:
    """The answer to the GateAsk or Wait of `query_id`. Raises BadMessage."""
    answer = _read(_answers, body)
    assert isinstance(answer, Approved | GateDenied | Expired | Pending)
    if answer.query_id not in (None, query_id):
        raise BadMessage("it speaks of another query")
    if isinstance(answer, Approved | GateDenied):
        _check_texts(answer.by, answer.note)
    return answer


def read_status(body: bytes) -> Status:
    """The answer to a StatusAsked. Raises BadMessage."""
    status = _read(_statuses, body)
    assert isinstance(status, Status)
    if status.status == "pending" and status.expires_at is None:
        raise BadMessage("it is pending without `expires_at`")
    _check_texts(status.by, status.note)
    return status


def _read(decoder: "msgspec.json.Decoder[Any]", body: bytes) -> object:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise BadMessage(_shape(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadMessage("it is no JSON") from None


def _shape(error: msgspec.ValidationError) -> str:
    """The decoder's message, which names types and paths. For an unknown tag it would quote the value, so it is replaced."""
    text = str(error)
    return "its `status` is unknown" if text.startswith("Invalid") else text[:1].lower() + text[1:200]


def _check_texts(*texts: str | None) -> None:
    for text in texts:
        if text is not None and len(text.encode()) > TEXT_BYTES:
            raise BadMessage(f"a text of it is longer than {TEXT_BYTES} bytes")
