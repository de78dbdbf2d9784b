"""Reports the outcome of each claimed approval to the gate: after the closing row, in the background, best effort.

With it a gate that cannot read the audit file can tell `executed` from `consumed`. A call never waits for this.
"""

from typing import Final

import trio

from gatewayd.approvals.gate import Gate, Unavailable
from gatewayd.approvals.messages import Outcome

QUEUE: Final = 1024
_POST_S: Final = 5.0
_PAUSES_S: Final = (0.5, 2.0)
_AT_ONCE: Final = 4
_LAST_S: Final = 1.0


class OutcomeReporter:
    """Start `run`, call `report`. An outcome is dropped if the queue is full: the gate then says `consumed`, which is also
    true."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._send, self._receive = trio.open_memory_channel[Outcome](QUEUE)

    def report(self, outcome: Outcome) -> None:
        """Never waits and never fails."""
        try:
            self._send.send_nowait(outcome)
        except (trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            return

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """The service. When cancelled it accepts no more outcomes and sends the queued ones for one more second."""
        async with trio.open_nursery() as nursery:
            tellers = await nursery.start(self._tell_all)
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._send.close()
                tellers.deadline = trio.current_time() + _LAST_S

    async def _tell_all(self, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        with trio.CancelScope(shield=True) as scope:
            async with self._receive, trio.open_nursery() as nursery:
                for _ in range(_AT_ONCE):
                    nursery.start_soon(self._tell_each, self._receive.clone())
                task_status.started(scope)

    async def _tell_each(self, outcomes: trio.MemoryReceiveChannel[Outcome]) -> None:
        async with outcomes:
            async for outcome in outcomes:
                await self._tell(outcome)

    async def _tell(self, outcome: Outcome) -> None:
        for pause_s in (*_PAUSES_S, None):
            try:
                await self._gate.outcome(outcome, _POST_S)
                return
            except Unavailable:
                if pause_s is not None:
                    await trio.sleep(pause_s)
