"""Leases: rows that say who does a job, until when, and for the how-many-th time (the fence). No advisory locks.

The store's clock decides, so replicas need not agree on the time. Whoever writes on behalf of a lease can put its fence into the
WHERE of that write: a holder that was away for too long then changes nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

LEASE_S: Final = 15.0

NOW_MS: Final = Statement("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
ENTER: Final = Statement("INSERT INTO leases (name, owner, until_ms, fence) VALUES ($1, $2, 0, 0) ON CONFLICT (name) DO NOTHING")
TAKE: Final = Statement(
    "UPDATE leases SET owner = $2, fence = fence + CASE WHEN owner = $2 AND until_ms > $3 THEN 0 ELSE 1 END, until_ms = $4"
    " WHERE name = $1 AND (until_ms <= $3 OR owner = $2) RETURNING fence"
)
RELEASE: Final = Statement("UPDATE leases SET until_ms = 0 WHERE name = $1 AND owner = $2")


async def take(store: Store, name: str, owner: str, for_s: float = LEASE_S) -> int | None:
    """Take or renew the lease; its fence, or None while somebody else holds it. `owner` is a ULID of this process."""

    async def work(tx: Transaction) -> int | None:
        now_ms: int = await tx.value(NOW_MS)
        await tx.run(ENTER, name, owner)
        fence: int | None = await tx.value(TAKE, name, owner, now_ms, now_ms + round(for_s * 1000))
        return fence

    return await store.transaction(work)


async def release(store: Store, name: str, owner: str) -> None:
    """Let somebody else take it at once."""
    await store.run(RELEASE, name, owner)


async def run_leased(store: Store, name: str, owner: str, work: Callable[[int], Awaitable[None]], for_s: float = LEASE_S) -> None:
    """A service: whenever this process can have the lease, run `work(fence)` until it returns or the lease is lost; for ever.

    `work` is cancelled when the lease could not be renewed in time. After it has returned, the lease is let go and a third of
    its time is waited: so a job that runs to its end runs about every `for_s` / 3 somewhere. A failing store ends no service.
    """
    while True:
        try:
            fence = await take(store, name, owner, for_s)
            if fence is not None:
                await _held(store, name, owner, fence, work, for_s)
        except* StoreUnavailable:  # `work` fails inside of a nursery
            pass  # told by readiness; the next round asks again
        await trio.sleep(for_s / 3)


async def _held(store: Store, name: str, owner: str, fence: int, work: Callable[[int], Awaitable[None]], for_s: float) -> None:
    async with trio.open_nursery() as nursery:

        async def renew() -> None:
            until = trio.current_time() + for_s
            while True:
                await trio.sleep(for_s / 3)
                with trio.move_on_at(until):
                    try:
                        if await take(store, name, owner, for_s) != fence:
                            break
                        until = trio.current_time() + for_s
                        continue
                    except StoreUnavailable:
                        if trio.current_time() + for_s / 3 < until:
                            continue
                break
            nursery.cancel_scope.cancel()

        nursery.start_soon(renew)
        await work(fence)
        nursery.cancel_scope.cancel()
    await release(store, name, owner)
