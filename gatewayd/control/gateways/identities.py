"""The identities of a gateway over time: one in force, the earlier ones kept for what they have signed
(docs/link-protocol.md, Rotation)."""

from typing import Final

from gatewayd.control.gateways.gateway import Gateway
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.keys.ed25519 import PublicKey

# A key that was in force before would make a request of that time valid again: there is no store of nonces.
REPLACE: Final = Statement(
    "UPDATE gateways SET public_key = $4, key_id = $5 WHERE project_id = $1 AND gateway_id = $2 AND public_key = $3"
    " AND standing = 'active' AND NOT EXISTS (SELECT 1 FROM gateway_keys AS k WHERE k.project_id = $1 AND k.gateway_id = $2"
    " AND k.key_id = $5)"
)
END: Final = Statement(
    "INSERT INTO gateway_keys (project_id, gateway_id, key_id, public_key, ended_ms) VALUES ($1, $2, $3, $4, $5)"
)
ENDED_SINCE: Final = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM gateway_keys WHERE project_id = $1 AND gateway_id = $2 AND ended_ms > $3 LIMIT $4)"
    " AS few"
)
LAST_ENDED: Final = Statement("SELECT max(ended_ms) FROM gateway_keys WHERE project_id = $1 AND gateway_id = $2")
EARLIER: Final = Statement("SELECT public_key FROM gateway_keys WHERE project_id = $1 AND gateway_id = $2 AND key_id = $3")


ROTATIONS_A_DAY: Final = 24
"""Of one gateway. Each is kept for ever, as a key and in the organisation's record, so a stolen key must not fill either."""
DAY_MS: Final = 86_400_000


class TooManyRotations(Exception):
    """The gateway has changed its identity as often as it may in 24 hours."""


async def replace(tx: Transaction, gateway: Gateway, following: PublicKey, now_ms: int) -> bool:
    """Puts `following` in the place of the key that `gateway` was read with. False: that key is not in force any more, the
    gateway is not active, or `following` was its key before. Raises TooManyRotations."""
    place = (gateway.project_id, gateway.gateway_id)
    if int(await tx.value(ENDED_SINCE, *place, now_ms - DAY_MS, ROTATIONS_A_DAY)) >= ROTATIONS_A_DAY:
        raise TooManyRotations
    if not await tx.run(REPLACE, *place, gateway.public_key, following.raw, following.key_id):
        return False
    await tx.run(END, *place, gateway.key_id, gateway.public_key, now_ms)
    return True


async def identity(tx: Transaction, gateway: Gateway, key_id: str) -> PublicKey | None:
    """The key of this name that the gateway has or had."""
    if key_id == gateway.key_id:
        return gateway.key
    earlier = await tx.value(EARLIER, gateway.project_id, gateway.gateway_id, key_id)
    return PublicKey(earlier) if earlier is not None else None
