"""What a change needs of the outside, made before its transaction, which may run several times: the time, ids and randomness."""

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import SALT_BYTES, Act, record


class Moment(msgspec.Struct, frozen=True):
    """`fresh_id` is for one thing that the change makes. One act is recorded with one moment."""

    now_ms: int
    event_id: str
    salt: bytes
    fresh_id: str

    async def record(self, tx: Transaction, org_id: str, act: Act) -> None:
        """Append the act to what people did in the organisation."""
        await record(tx, org_id, act, self.event_id, self.salt, self.now_ms)


def moment(console: Console) -> Moment:
    return Moment(console.now_ms(), console.new_id(), console.entropy(SALT_BYTES), console.new_id())
