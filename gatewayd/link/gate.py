"""The approval gate of a linked gateway: the four calls of a `Gate` as signed requests, answered by signed verdicts
(docs/link-protocol.md, Approvals).

A verdict names this request, this query and the digest of this very grant key; whatever does not fit is no answer, never a
denial.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, assert_never

import msgspec

from gatewayd import log
from gatewayd.approvals.gate import Unavailable
from gatewayd.approvals.messages import (
    Approved,
    Expired,
    GateAnswer,
    GateAsk,
    GateDenied,
    Outcome,
    Pending,
    Status,
    StatusAsked,
    Wait,
)
from gatewayd.link.client import ControlPlane, RequestRefused, Unreachable
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.requests import RequestKind
from gatewayd.link.formats.trust import Trust
from gatewayd.link.formats.verdicts import ApprovalVerdict, grant_sha256, read_verdict

GRANTS_REMEMBERED: Final = 4096


class LinkGate:
    """A `Gate`. `trust` is None until the gateway is enrolled; every call is unavailable then."""

    def __init__(self, control: ControlPlane, trust: Callable[[], Trust | None]) -> None:
        self._control = control
        self._trust = trust
        self._grants: OrderedDict[str, str] = OrderedDict()  # query_id -> grant, for those who wait
        self._is_reachable = True

    async def ask(self, ask: GateAsk, within_s: float) -> GateAnswer:
        """As `Gate.ask`."""
        grant = grant_sha256(sql=ask.sql, intent=ask.intent or "", database=ask.database, token_id=ask.mcp_token_id)
        self._grants[ask.query_id] = grant
        while len(self._grants) > GRANTS_REMEMBERED:
            self._grants.popitem(last=False)
        return _answer(await self._verdict("approval", ask, within_s, query_id=ask.query_id, grant=grant))

    async def wait(self, wait: Wait, within_s: float) -> GateAnswer | None:
        """As `Gate.wait`."""
        grant = self._grants.get(wait.query_id)
        if grant is None:
            return None
        # Pending may name another request than was waited for: an identical write has spent the approval meanwhile.
        return _answer(await self._verdict("approval_wait", wait, within_s, query_id=wait.query_id, grant=grant))

    async def status(self, asked: StatusAsked, within_s: float) -> Status:
        """As `Gate.status`."""
        verdict = await self._verdict("approval_status", asked, within_s, query_id="", grant="")
        if verdict.approval_id != asked.approval_id:
            raise Unavailable("its verdict names another request")
        if verdict.status == "unavailable" or verdict.status == "noted":  # `in` would not narrow the type
            raise Unavailable("it gives no status now")
        if verdict.status == "pending" and verdict.expires_at is None:
            raise Unavailable("its verdict is pending without a deadline")
        return Status(verdict.status, verdict.by, verdict.note, verdict.expires_at)

    async def outcome(self, outcome: Outcome, within_s: float) -> None:
        """As `Gate.outcome`."""
        verdict = await self._verdict("approval_outcome", outcome, within_s, query_id=outcome.query_id, grant="")
        if verdict.status != "noted":
            raise Unavailable("it did not note the outcome")

    async def _verdict(
        self, kind: RequestKind, body: msgspec.Struct, within_s: float, *, query_id: str, grant: str
    ) -> ApprovalVerdict:
        """Raises Unavailable."""
        trust, control = self._trust(), self._control
        if trust is None:
            raise Unavailable("the gateway is not linked yet")
        sent = control.numbered(kind, body)
        try:
            answered = await control.send(sent, within_s, trust)
            verdict = read_verdict(
                answered.data,
                trust,
                control.clock.now_ms(),
                gateway=control.gateway,
                request=sent.digest,
                query_id=query_id,
                grant=grant,
            )
        except Unreachable as failure:
            retry_after_s = round(failure.retry_after_s) if failure.retry_after_s is not None else None
            raise self._unavailable(failure.reason, is_lost=failure.status is None, retry_after_s=retry_after_s) from None
        except RequestRefused as refused:
            if refused.refusal.reason == "clock":
                control.clock.learn(refused.refusal.ts)
            raise self._unavailable(f"the request was refused ({refused.refusal.reason})") from None
        except DocumentRefused as refused:
            raise self._unavailable(f"its verdict does not verify ({refused.check})") from None
        if not self._is_reachable:
            self._is_reachable = True
            log.info(log.APPROVAL_GATE_REACHABLE)
        return verdict

    def _unavailable(self, reason: str, *, is_lost: bool = False, retry_after_s: int | None = None) -> Unavailable:
        if self._is_reachable and retry_after_s is None:
            self._is_reachable = False
            log.warning(log.APPROVAL_GATE_UNREACHABLE, reason=reason)
        return Unavailable(reason, is_lost=is_lost, retry_after_s=retry_after_s)


def _answer(verdict: ApprovalVerdict) -> GateAnswer:
    """Raises Unavailable where the verdict is not the answer to a question for approval."""
    match verdict.status:
        case "approved":
            return Approved(by=verdict.by, note=verdict.note, rows_at_most=verdict.rows_at_most, approval_id=verdict.approval_id)
        case "denied":
            return GateDenied(by=verdict.by, note=verdict.note, approval_id=verdict.approval_id)
        case "expired":
            return Expired(approval_id=verdict.approval_id)
        case "pending":
            if verdict.approval_id is None or verdict.expires_at is None:
                raise Unavailable("its verdict is pending without a name or a deadline")
            return Pending(approval_id=verdict.approval_id, expires_at=verdict.expires_at, review_url=verdict.review_url)
        case "executed" | "consumed" | "not_found" | "noted":
            raise Unavailable("its verdict is no answer to a question for approval")
        case "unavailable":
            seconds = None if verdict.expires_at is None else max(1, round((verdict.expires_at - verdict.ts) / 1000))
            raise Unavailable(verdict.note or "it gives no answer now", retry_after_s=seconds)
        case _ as unreachable:
            assert_never(unreachable)
