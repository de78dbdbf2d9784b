"""Former values of CONTROL_TOKEN_PEPPER: kept in the store, sealed with the current one, so that the ring may lose them.

Tokens and keys are stored as hashes, which cannot be made anew without their texts. What a former value still serves is to know
them; it makes none. Only a value that has been current is kept so: the next one, which stands in the ring ahead of its time, must
not be sealed with what it is to replace.
"""

from typing import Final

import msgspec

from gatewayd import log
from gatewayd.control.keyring.ring import Key, Ring, key_of
from gatewayd.control.keyring.sealing import Unsealable, key_id, seal, unseal
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

ALL: Final = Statement("SELECT key_id, sealed FROM former_peppers ORDER BY used_ms, key_id LIMIT 100")
NOTE_USED: Final = Statement("INSERT INTO former_peppers (key_id, used_ms) VALUES ($1, $2) ON CONFLICT (key_id) DO NOTHING")
KEEP: Final = Statement("UPDATE former_peppers SET sealed = $2 WHERE key_id = $1")
MOST: Final = 100
_PURPOSE: Final = "former pepper"


class FormerRow(msgspec.Struct, frozen=True):
    """`sealed` is None while the value has not been replaced."""

    key_id: str
    sealed: bytes | None


async def with_former_values(store: Store, ring: Ring, now_ms: int, nonces: list[bytes]) -> Ring:
    """The ring, and after its own values those that it has lost. Keeps what it may lose from now on.

    `nonces`: as many fresh ones of 12 random bytes as the ring and the store may have values, MOST.
    """

    async def work(tx: Transaction) -> Ring:
        await tx.run(NOTE_USED, ring.current.key_id, now_ms)
        keys = list(ring.keys)
        for row, nonce in zip(await tx.rows(FormerRow, ALL), nonces, strict=False):
            key = ring.by_id(row.key_id) or _opened(ring, row)
            if key is None or key == ring.current:
                continue
            if key not in keys:
                keys.append(key)
            if row.sealed is None or key_id(row.sealed) != ring.current.key_id:
                await tx.run(KEEP, key.key_id, seal(ring, _PURPOSE, key.value, nonce, key.key_id))
        return Ring(tuple(keys))

    return await store.transaction(work)


def _opened(ring: Ring, row: FormerRow) -> Key | None:
    try:
        return key_of(unseal(ring, _PURPOSE, row.sealed or b"", row.key_id))
    except Unsealable as problem:
        detail = (
            f"CONTROL_TOKEN_PEPPER: its former value {row.key_id} cannot be opened ({problem}): tokens made with it are unknown"
        )
        log.warning(log.CONFIGURATION_DOUBTFUL, detail=detail)
        return None
