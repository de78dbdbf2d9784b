"""The messages between a gateway and an approval gate, as values (docs/approvals.md, Protocol). Pure: both sides import this.

Requests let unknown keys pass, so that a newer gateway still speaks to an older gate; answers too, for the other way round.
What an answer must have is checked by `read_answer` and `read_status`: whatever fails here is no answer at all.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gatewayd.policy.decide.guardrails import WriteClass

TEXT_BYTES: Final = 16 * 1024
"""Of a note or a name, as UTF-8."""
ROWS_COUNTED: Final = 10_001
"""A preview counts no further: so many rows mean "more than 10 000"."""

ApprovalId = Annotated[str, Meta(pattern=r"\A[!-~]{1,64}\Z")]
GrantQueryId = Annotated[str, Meta(min_length=1, max_length=64)]
TokenId = Annotated[str, Meta(min_length=1, max_length=64)]
ShortText = Annotated[str, Meta(max_length=TEXT_BYTES)]
Milliseconds = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
"""Since the epoch, until the year 9999."""
RowCount = Annotated[int, Meta(ge=0, le=2**53)]
ReviewUrl = Annotated[str, Meta(pattern=r"\Ahttps?://[!-~]{1,2040}\Z")]

GrantState = Literal["pending", "approved", "executed", "consumed", "denied", "expired", "not_found"]
RunOutcome = Literal["executed", "failed", "unknown"]


class Preview(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a write would touch. `rows` None: it could not be counted, and `why` says so; with rows, `why` says how far they are
    to be trusted. `plan` is PostgreSQL's EXPLAIN, a line each."""

    rows: Annotated[int, Meta(ge=0, le=ROWS_COUNTED)] | None
    plan: tuple[str, ...] = ()
    counted_ms: int | None = None
    why: str | None = None


class GateAsk(msgspec.Struct, frozen=True):
    """One held write: what a person is asked to decide. The grant belongs to (database, sql, intent, mcp_token_id, effect)."""

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
    """How long the gateway would wait for this answer; one that is `pending` at once is waited for at `/wait`."""
    effect: str = ""
    """Stands for the relations that the names in it mean: another table or view under the same name has another one."""


class Wait(msgspec.Struct, frozen=True):
    """Wait for the decision on a request. The answer is as that to `GateAsk`, and claims like it."""

    approval_id: ApprovalId
    query_id: GrantQueryId
    mcp_token_id: TokenId | None = None
    wait_s: float = 0.0
    """After so many seconds `pending` is the answer. One that comes later finds nobody."""


class StatusAsked(msgspec.Struct, frozen=True):
    approval_id: ApprovalId
    mcp_token_id: TokenId | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What became of a claimed approval: `failed` means that nothing was written."""

    query_id: GrantQueryId
    outcome: RunOutcome
    rows: int | None = None


class _Answer(msgspec.Struct, frozen=True, tag_field="status", omit_defaults=True, kw_only=True):
    """`query_id` and `approval_id` may be said again; they must then be the ones that were meant."""

    query_id: GrantQueryId | None = None


class Approved(_Answer, frozen=True, tag="approved"):
    by: ShortText | None = None
    note: ShortText | None = None
    rows_at_most: RowCount | None = None
    approval_id: ApprovalId | None = None


class GateDenied(_Answer, frozen=True, tag="denied"):
    by: ShortText | None = None
    note: ShortText | None = None
    approval_id: ApprovalId | None = None


class Expired(_Answer, frozen=True, tag="expired"):
    approval_id: ApprovalId | None = None


class Pending(_Answer, frozen=True, tag="pending"):
    approval_id: ApprovalId
    expires_at: Milliseconds
    review_url: ReviewUrl | None = None


GateAnswer = Approved | GateDenied | Expired | Pending


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """`expires_at` is there for `pending`, `by` and `note` may be for `approved` and `denied`."""

    status: GrantState
    by: ShortText | None = None
    note: ShortText | None = None
    expires_at: Milliseconds | None = None


class BadMessage(Exception):
    """The text is none of these messages. `str()` says what is wrong with it, and quotes none of its values."""


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
    """Raises BadMessage."""
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
    """The decoder's words name types and paths, but for an unknown tag, whose value they quote."""
    text = str(error)
    return "its `status` is unknown" if text.startswith("Invalid") else text[:1].lower() + text[1:200]


def _check_texts(*texts: str | None) -> None:
    for text in texts:
        if text is not None and len(text.encode()) > TEXT_BYTES:
            raise BadMessage(f"a text of it is longer than {TEXT_BYTES} bytes")
