"""Gate: the interface through which the corridor asks for approvals (docs/approvals.md).

`http_gate.py` implements it for GATEWAY_APPROVAL_URL, `link/gate.py` for a linked gateway.
"""

from typing import Protocol

from gatewayd.approvals.messages import GateAnswer, GateAsk, Outcome, Status, StatusAsked, Wait


class Unavailable(Exception):
    """The gate gave no valid answer. This is never a denial. `reason` names no address and no secret.

    `is_lost`: the gate may have answered, so the same request may be sent once more. `retry_after_s` is set if the gate said when
    to try again.
    """

    def __init__(self, reason: str, *, is_lost: bool = False, retry_after_s: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_lost = is_lost
        self.retry_after_s = retry_after_s


class Gate(Protocol):
    """Each call returns or raises Unavailable within `within_s` seconds. If it is cancelled, the request may have reached the
    gate."""

    async def ask(self, ask: GateAsk, within_s: float) -> GateAnswer:
        """Claims an approval of exactly this write, or opens or joins a request for one."""

    async def wait(self, wait: Wait, within_s: float) -> GateAnswer | None:
        """As `ask`, once there is a decision, or Pending after `wait.wait_s`. None if this gate does not support waiting."""

    async def status(self, asked: StatusAsked, within_s: float) -> Status:
        """The state of a request. Claims nothing."""

    async def outcome(self, outcome: Outcome, within_s: float) -> None:
        """Reports the outcome of a claimed approval."""
