"""Tool `check_approval`: how a held write stands, without running anything (docs/approvals.md)."""

from typing import Final

import msgspec

from gatewayd.approvals.gate import Unavailable
from gatewayd.approvals.messages import GrantState, Status, StatusAsked
from gatewayd.approvals.words import NEXT, iso, legible
from gatewayd.corridor.hold import HeldWrites
from gatewayd.mcp.dispatch import Tool, ToolCall, ToolResult
from gatewayd.mcp.tools.answers import invalid_arguments
from gatewayd.mcp.tools.arguments import InvalidArguments, decode

STATUS_S: Final = 8.0
ID_CHARACTERS: Final = 64
_EXECUTED: Final[dict[GrantState, bool | None]] = {
    "executed": True,
    "consumed": None,
}  # whether the write took effect; others: False
_DECIDED: Final = ("approved", "denied")


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of `check_approval`."""

    approval_id: str


def check_approval_tool(approvals: HeldWrites) -> Tool:
    """The tool; it exists only if there is an approval gate."""

    async def call(call: ToolCall) -> ToolResult:
        try:
            approval_id = _approval_id(decode(call.arguments, Arguments).approval_id)
        except InvalidArguments as error:
            return invalid_arguments(str(error))
        if approval_id is None:
            return _result(Status("not_found"))
        try:
            status = await approvals.gate.status(StatusAsked(approval_id, call.agent.token_id), STATUS_S)
        except Unavailable as failure:
            return _unavailable(failure)
        return _result(status)

    return Tool(
        name="check_approval",
        title="Check a held write",
        description=(
            "How a write that waits for a person's approval stands. Runs nothing and uses nothing up; safe to repeat. "
            "`approval_id` is the one that query answered with."
        ),
        input_schema={
            "type": "object",
            "properties": {"approval_id": {"type": "string", "minLength": 1, "maxLength": ID_CHARACTERS}},
            "required": ["approval_id"],
            "additionalProperties": False,
        },
        annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        call=call,
    )


def _approval_id(text: str) -> str | None:
    """None: an id that no gate can have given."""
    if not 1 <= len(text) <= ID_CHARACTERS:
        raise InvalidArguments(f"`approval_id` has {len(text)} characters; expected 1 to {ID_CHARACTERS}")
    return text if all("!" <= c <= "~" for c in text) else None


def _result(status: Status) -> ToolResult:
    is_decided = status.status in _DECIDED
    is_pending = status.status == "pending" and status.expires_at is not None
    content = {
        "status": status.status,
        "executed": _EXECUTED.get(status.status, False),
        "next": NEXT[status.status],
        "expires_at": iso(status.expires_at) if is_pending and status.expires_at is not None else None,
        "by": legible(status.by) if is_decided and status.by else None,
        "note": legible(status.note) if is_decided and status.note else None,
    }
    return ToolResult(msgspec.json.encode(content).decode())


def _unavailable(failure: Unavailable) -> ToolResult:
    content: dict[str, object] = {
        "allowed": False,
        "error": "approval_unavailable",
        "reason": f"the approval service is unavailable ({legible(failure.reason, 300)}); how the write stands is not known",
        "retryable": True,
    }
    if failure.retry_after_s is not None:
        content["retry_after_s"] = failure.retry_after_s
    return ToolResult(msgspec.json.encode(content).decode(), is_error=True)
