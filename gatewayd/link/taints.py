"""Taints of a linked gateway: kept by the control plane, since other gateways serve the same agents (docs/link-protocol.md).

Nothing is remembered here. A clean answer may be old a moment later, and a person may have cleared what was tainted.
"""

from collections.abc import Callable
from typing import Final

from gatewayd.audit.events import Agent, Query
from gatewayd.corridor.containing import Tainted, TaintUnknown
from gatewayd.link.client import ControlPlane, RequestRefused, Unreachable
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.trust import Trust
from gatewayd.link.formats.verdicts import TaintAnswer, TaintBody, read_taint

WITHIN_S: Final = 5.0
"""How long a statement waits for an answer: the call is not cancelled meanwhile."""


class LinkTaints:
    """A `Taints`. `trust` is None until the gateway is enrolled; every call is unknown then."""

    cleared_by = "a person on the control plane"
    count = 0

    def __init__(self, control: ControlPlane, trust: Callable[[], Trust | None]) -> None:
        self._control = control
        self._trust = trust

    def grant_of(self, agent: Agent) -> str:
        """The token's id, or "" if the grant is the whole gateway."""
        return agent.token_id or ""

    async def of(self, grant: str, query: Query) -> Tainted | None:
        answer = await self._asked(TaintBody("ask", grant, query.query_id, query.database, ts=self._control.clock.now_ms()))
        if not answer.tainted:
            return None
        return Tainted(answer.source or "a source", answer.database or query.database, answer.since or answer.ts, answer.query_id)

    async def mark(self, grant: str, tainted: Tainted) -> None:
        body = TaintBody("mark", grant, tainted.query_id, tainted.database, tainted.source, tainted.since_ms)
        if not (await self._asked(body)).tainted:
            raise TaintUnknown("the control plane did not take it")

    async def _asked(self, body: TaintBody) -> TaintAnswer:
        """Raises TaintUnknown."""
        trust, control = self._trust(), self._control
        if trust is None:
            raise TaintUnknown("the gateway is not linked yet")
        sent = control.numbered("taint", body)
        try:
            answered = await control.send(sent, WITHIN_S, trust)
            return read_taint(
                answered.data,
                trust,
                control.clock.now_ms(),
                gateway=control.gateway,
                request=sent.digest,
                query_id=body.query_id,
                grant=body.grant,
            )
        except Unreachable as failure:
            raise TaintUnknown(f"the control plane could not be asked: {failure.reason}") from None
        except RequestRefused as refused:
            if refused.refusal.reason == "clock":
                control.clock.learn(refused.refusal.ts)
            raise TaintUnknown(f"the control plane refused the question: {refused.refusal.reason}") from None
        except DocumentRefused as refused:
            raise TaintUnknown(f"the control plane's answer does not verify: {refused.check}") from None
