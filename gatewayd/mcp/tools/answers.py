"""Answers of the pipeline as tool results: one JSON object in one text block (decision 5).

Rows are spliced in as the bytes PostgreSQL made; nothing here decodes them.
"""

import msgspec

from gatewayd.approvals.words import RESUME, iso
from gatewayd.corridor.answer import Answer, Answered, Broken, NotServed, OnHold, Refused, Unaudited
from gatewayd.mcp.dispatch import ToolResult


def rows_result(answered: Answered, key: str, *, counted: bool) -> ToolResult:
    """`{"allowed":true,"<key>":[rows],…}`; `counted` adds `rowCount`: rows returned, or affected by a write that returns none."""
    result = answered.result
    count = ""
    if counted:
        rows = result.rows_affected if result.rows_affected is not None else len(result.rows)
        count = f',"rowCount":{rows}'
    truncated = ',"truncated":true' if result.truncated else ""
    rows_text = b",".join(result.rows).decode()
    return ToolResult(f'{{"allowed":true,"{key}":[{rows_text}]{count}{truncated},"auditId":"{answered.audit_id}"}}')


def other_result(answer: Refused | Broken | Unaudited | OnHold | NotServed) -> ToolResult:
    """A tool error for every outcome without rows; its text says which."""
    content: dict[str, object]
    match answer:
        case Refused(denied, audit_id):
            content = {"allowed": False, "policy_rule": denied.policy_rule, "reason": denied.reason, "auditId": audit_id}
        case Broken(sqlstate, message, hint, position, audit_id):
            error: dict[str, object] = {"sqlstate": sqlstate, "message": message}
            if hint is not None:
                error["hint"] = hint
            if position is not None:
                error["position"] = position
            content = {"allowed": True, "error": error, "auditId": audit_id}
        case Unaudited(reason):
            content = {"allowed": False, "error": "audit_unavailable", "reason": reason, "auditId": None}
        case NotServed(reason):
            content = {"allowed": False, "error": "database_not_served", "reason": reason, "retryable": True}
        case OnHold():
            content = _on_hold(answer)
    return ToolResult(msgspec.json.encode(content).decode(), is_error=True)


def _on_hold(answer: OnHold) -> dict[str, object]:
    """The write is held: what to wait for, and how to ask again."""
    content: dict[str, object] = {"allowed": False, "status": "approval_unavailable"}
    pending = answer.pending
    if pending is not None:
        content = {
            "allowed": False,
            "status": "awaiting_approval",
            "approval_id": pending.approval_id,
            "expires_at": iso(pending.expires_at),
        }
        if pending.review_url is not None:
            content["review_url"] = pending.review_url
    content |= {"retryable": True, "reason": answer.reason}
    if answer.retry_after_s is not None:
        content["retry_after_s"] = answer.retry_after_s
    if pending is not None:
        content["resume"] = {"tool": "query", **dict(answer.resume), "instructions": RESUME}
    return content


def result_of(answer: Answer, key: str, *, counted: bool = False) -> ToolResult:
    """The tool result of any answer."""
    if isinstance(answer, Answered):
        return rows_result(answer, key, counted=counted)
    return other_result(answer)


def invalid_arguments(reason: str) -> ToolResult:
    """The arguments break the tool's schema. A result and not a protocol error, so that the agent can correct its call (decision
    5)."""
    content = {"allowed": False, "error": "invalid_arguments", "reason": reason}
    return ToolResult(msgspec.json.encode(content).decode(), is_error=True)
