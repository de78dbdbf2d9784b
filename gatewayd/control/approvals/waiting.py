"""A gateway waits for the decision on its write, for as long as it says."""

from typing import Final

import trio

from gatewayd.approvals.messages import GateAnswer, Pending, Wait
from gatewayd.control.approvals.answer import wait_answer
from gatewayd.control.approvals.requests import Asker
from gatewayd.control.console import Console
from gatewayd.control.gateways.exchanges import Presence

WAIT_MOST_S: Final = 60.0


async def waited(console: Console, asker: Asker, wait: Wait, presence: Presence) -> GateAnswer:
    """The answer to the write once there is one; Pending after `wait_s`, and when this replica ends. Raises as `answer`.

    Nothing is claimed for a gateway that has left: its connection is looked at before each claim.
    """
    until = trio.current_time() + min(max(wait.wait_s, 0.0), WAIT_MOST_S)
    while True:
        await presence.check()
        found = await wait_answer(console, asker, wait)
        if not isinstance(found, Pending) or trio.current_time() >= until or presence.stop.is_set():
            return found
        await console.approvals.wait(asker.project_id, found.approval_id, until, presence.stop)
