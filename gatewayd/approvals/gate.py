"""Gate: who decides about held writes, as the corridor sees it (docs/approvals.md).

`http_gate.py` is the one behind GATEWAY_APPROVAL_URL. Another way to a gate implements the same four calls.
"""

from typing import Protocol

from gatewayd.approvals.messages import GateAnswer, GateAsk, Outcome, Status, StatusAsked, Wait


class Unavailable(Exception):
    """The gate gave no answer that counts. It is never a denial. `reason` names no address and no secret.

    `is_lost`: the answer may have been given and not arrived, so the same question may be asked once more. `retry_after_s` is
    there where the gate said when to come back.
    """

    def __init__(self, reason: str, *, is_lost: bool = False, retry_after_s: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_lost = is_lost
        self.retry_after_s = retry_after_s


class Gate(Protocol):
    """Each call raises Unavailable at the latest after `within_s`. Cancelled, the question may have reached the gate."""

    async def ask(self, ask: GateAsk, within_s: float) -> GateAnswer:
        """Claims an approval that is there for this very write, else opens or joins a request for one."""

    async def wait(self, wait: Wait, within_s: float) -> GateAnswer | None:
        """As `ask`, once there is a decision, or Pending after `wait.wait_s`. None: this gate knows no such call."""

    async def status(self, asked: StatusAsked, within_s: float) -> Status:
        """How a request stands. Claims nothing."""

    async def outcome(self, outcome: Outcome, within_s: float) -> None:
        """Tells what became of a claimed approval."""
