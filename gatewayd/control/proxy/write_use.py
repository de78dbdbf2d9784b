"""What tokens have used, written every few seconds in one transaction, not at each call.

A control plane that is killed forgets the last seconds of it; the audit has every call.
"""

import contextlib
from typing import Final

import trio

from gatewayd.control.console import Console
from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.token import USED

WRITE_S: Final = 5.0
_LAST_S: Final = 2.0

ADD_CALLS: Final = Statement(
    "INSERT INTO token_use (project_id, token_id, day, calls, rows_read) VALUES ($1, $2, $3, $4, 0)"
    " ON CONFLICT (project_id, token_id, day) DO UPDATE SET calls = token_use.calls + excluded.calls"
)


async def write_token_use(console: Console) -> None:
    """The service: writes every WRITE_S, and once more when it is cancelled."""
    try:
        while True:
            await trio.sleep(WRITE_S)
            with contextlib.suppress(StoreUnavailable):  # told by readiness; it stays counted
                await write_use(console)
    finally:
        with trio.move_on_after(_LAST_S, shield=True), contextlib.suppress(StoreUnavailable):
            await write_use(console)


async def write_use(console: Console) -> None:
    """Raises StoreUnavailable."""
    counted = console.agents.use.counted()
    if not counted.used_ms:
        return

    async def work(tx: Transaction) -> None:
        for (project_id, token_id, day), calls in sorted(counted.calls.items()):
            await tx.run(ADD_CALLS, project_id, token_id, day, calls)
        for (project_id, token_id), used_ms in sorted(counted.used_ms.items()):
            await tx.run(USED, project_id, token_id, used_ms)

    await console.store.transaction(work)
    console.agents.written(counted)
