"""The queue: what is due, who sends it now, and what came of it.

Whoever sends a delivery has claimed it: in one conditional UPDATE its next try was moved to the end of the claim. So nobody else
sends it meanwhile, and when the sender dies it is tried again after that. A receiver may so get it twice, with the same id.
"""

from typing import Final, Literal

import msgspec

from gatewayd.control.notifications.kinds import Kind
from gatewayd.control.notifications.outbox import WAKE
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

CLAIM_MS: Final = 120_000
TOGETHER: Final = 4
"""Deliveries of one channel that are claimed at once; they are sent one after the other."""
PAUSES_MS: Final = tuple(
    1000 * seconds for seconds in (5, 30, 120, 600, 1800, 3600, 7200, 3 * 3600, 4 * 3600, 6 * 3600, 6 * 3600)
)
"""After the first failed try, the second …: the last is tried about 23 hours after the first."""
KEPT_MS: Final = 30 * 86_400_000
DISABLED: Final = "the webhook is disabled"

State = Literal["waiting", "delivered", "failed"]

DUE: Final = Statement("SELECT org_id FROM notification_due WHERE next_ms <= $1 ORDER BY next_ms LIMIT 100")
VERSION: Final = Statement("SELECT version FROM notification_due WHERE org_id = $1")
NEXT: Final = Statement("SELECT min(next_ms) FROM notification_deliveries WHERE org_id = $1 AND next_ms IS NOT NULL")
MOVE_DUE: Final = Statement("UPDATE notification_due SET next_ms = $3 WHERE org_id = $1 AND version = $2")
DROP_DUE: Final = Statement("DELETE FROM notification_due WHERE org_id = $1 AND version = $2")
DUE_OF_CHANNEL: Final = Statement(
    "SELECT delivery_id, channel_id, project_id, kind, body, made_ms, tries, next_ms, state, answer, tried_ms"
    " FROM notification_deliveries WHERE org_id = $1 AND channel_id = $2 AND next_ms <= $3 ORDER BY next_ms LIMIT $4"
)
CLAIM: Final = Statement(
    "UPDATE notification_deliveries SET next_ms = $4"
    " WHERE org_id = $1 AND delivery_id = $2 AND state = 'waiting' AND next_ms = $3"
)
SETTLE: Final = Statement(
    "UPDATE notification_deliveries SET state = $4, next_ms = $5, answer = $6, tried_ms = $7, tries = tries + 1"
    " WHERE org_id = $1 AND delivery_id = $2 AND next_ms = $3 AND state = 'waiting'"
)
GIVE_UP: Final = Statement(
    "UPDATE notification_deliveries SET state = 'failed', next_ms = NULL, answer = $3"
    " WHERE org_id = $1 AND channel_id = $2 AND state = 'waiting'"
)
OF_CHANNEL: Final = Statement(
    "SELECT delivery_id, channel_id, project_id, kind, body, made_ms, tries, next_ms, state, answer, tried_ms"
    " FROM notification_deliveries WHERE org_id = $1 AND channel_id = $2 AND delivery_id < $3 ORDER BY delivery_id DESC LIMIT $4"
)
REMOVE_OF: Final = Statement("DELETE FROM notification_deliveries WHERE org_id = $1 AND channel_id = $2")
# A notice that was queued while its channel was removed has nobody to go to.
DROP_ORPHANS: Final = Statement(
    "DELETE FROM notification_deliveries WHERE org_id = $1 AND next_ms <= $2 AND NOT EXISTS (SELECT 1 FROM notification_channels"
    " AS c WHERE c.org_id = $1 AND c.channel_id = notification_deliveries.channel_id)"
)
FORGET: Final = Statement("DELETE FROM notification_deliveries WHERE org_id = $1 AND delivery_id < $2")


class Delivery(msgspec.Struct, frozen=True):
    delivery_id: str
    channel_id: str
    project_id: str | None
    kind: Kind
    body: str
    made_ms: int
    tries: int
    next_ms: int | None
    state: State
    answer: str | None
    tried_ms: int | None

    @property
    def message_id(self) -> str:
        """The same for every try."""
        return f"msg_{self.delivery_id}"


async def claim(tx: Transaction, org_id: str, channel_id: str, now_ms: int) -> list[Delivery]:
    """What is due for one channel, ours until the claim ends."""
    until_ms = now_ms + CLAIM_MS
    due = await tx.rows(Delivery, DUE_OF_CHANNEL, org_id, channel_id, now_ms, TOGETHER)
    return [
        msgspec.structs.replace(each, next_ms=until_ms)
        for each in due
        if await tx.run(CLAIM, org_id, each.delivery_id, each.next_ms, until_ms)
    ]


async def move_on(tx: Transaction, org_id: str, version: int) -> None:
    """The organisation is due when its next delivery is. `version`: as it was read before the look; newer ones stay due."""
    next_ms = await tx.value(NEXT, org_id)
    if next_ms is None:
        await tx.run(DROP_DUE, org_id, version)
    else:
        await tx.run(MOVE_DUE, org_id, version, next_ms)


async def settle(
    tx: Transaction, org_id: str, delivery: Delivery, *, works: bool, answer: str, now_ms: int, jitter: float
) -> State:
    """What came of a try that was claimed. `jitter` from 0 to 1 spreads tries that failed together."""
    state: State = "delivered" if works else "failed" if delivery.tries >= len(PAUSES_MS) else "waiting"
    next_ms = now_ms + round(PAUSES_MS[delivery.tries] * (0.9 + 0.2 * jitter)) if state == "waiting" else None
    await tx.run(SETTLE, org_id, delivery.delivery_id, delivery.next_ms, state, next_ms, answer, now_ms)
    if next_ms is not None:
        await tx.run(WAKE, org_id, next_ms)
    return state
