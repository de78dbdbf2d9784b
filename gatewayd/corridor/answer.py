"""How a call ends: the answers for the tools, and the closing row for the audit."""

from typing import Literal

import msgspec

from gatewayd.approvals.messages import Pending
from gatewayd.audit.events import AuditId, Executed, Failed
from gatewayd.masking.plan import Plan, Rewritten
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.outcomes import Denied
from gatewayd.postgres.execute.result import UNMASKABLE, ExecutionFailed, Result


class Answered(msgspec.Struct, frozen=True, gc=False):
    """The statement ran, and its EXECUTED row is committed."""

    result: Result
    audit_id: AuditId


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Denied by the policy, or refused by its masks before or after it ran: no row of it is shown."""

    denied: Denied
    audit_id: AuditId


class Broken(msgspec.Struct, frozen=True, gc=False):
    """Allowed, but the database reported an error or the connection was lost."""

    sqlstate: str
    message: str
    hint: str | None
    position: int | None
    audit_id: AuditId


class Unaudited(msgspec.Struct, frozen=True, gc=False):
    """The audit rows could not be written: nothing ran."""

    reason: str


class OnHold(msgspec.Struct, frozen=True, gc=False):
    """A write that is not approved yet. Nothing ran, nothing was refused, and there is no DECIDED row. `pending` is None when no
    gate answers."""

    reason: str
    pending: Pending | None = None
    resume: tuple[tuple[str, str], ...] = ()  # arguments of `query` that request the same write again: (name, value)
    retry_after_s: int | None = None


class NotServed(msgspec.Struct, frozen=True, gc=False):
    """The database accepts no calls now: nothing was attempted."""

    reason: str


Answer = Answered | Refused | Broken | Unaudited | OnHold | NotServed


def closing_row(
    result: Result | None, failure: ExecutionFailed | None, plan: Plan, exec_ms: int, overhead_ms: int
) -> Executed | Failed:
    """EXECUTED for a result, FAILED for a failure; exactly one of the two is given."""
    if failure is not None:
        stage: Literal["gate"] | None = "gate" if failure.sqlstate == UNMASKABLE else None
        return Failed(exec_ms, overhead_ms, failure.sqlstate, failure.message, stage)
    assert result is not None
    planned = plan if isinstance(plan, Rewritten | PostExec) else None
    masked = planned.columns if planned is not None and result.withheld is None else ()
    path: Literal["source_rewrite", "post_exec"] = "post_exec" if isinstance(plan, PostExec) else "source_rewrite"
    return Executed(
        exec_ms,
        overhead_ms,
        result.rows_affected,
        result.rows_returned,
        truncated=True if result.truncated else None,
        columns_masked=masked or None,
        masking_path=path if masked or result.withheld else None,
        masking_rejected=True if result.withheld else None,
        masking_reason=result.withheld,
    )
