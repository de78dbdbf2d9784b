"""Slows guessing per account and per address: each try is counted before it is made, so that many at once gain nothing.

The first tries are free; then each next one has to wait twice as long as the former, up to MOST_MS. A day without tries forgets.
"""

import hashlib
from typing import Final

import msgspec

from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

FREE_TRIES: Final = {"account": 5, "address": 30, "link": 30}
MOST_MS: Final = 15 * 60_000
FORGOTTEN_MS: Final = 24 * 3_600_000

ENTER: Final = Statement(
    "INSERT INTO throttles (throttle_key, failures, free_ms, seen_ms) VALUES ($1, 0, 0, $2) ON CONFLICT (throttle_key) DO NOTHING"
)
FIND: Final = Statement("SELECT failures, free_ms, seen_ms FROM throttles WHERE throttle_key = $1 FOR UPDATE")
COUNT: Final = Statement("UPDATE throttles SET failures = $2, free_ms = $3, seen_ms = $4 WHERE throttle_key = $1")
CLEAR: Final = Statement("DELETE FROM throttles WHERE throttle_key = $1")
SWEEP: Final = Statement("DELETE FROM throttles WHERE seen_ms < $1")


class Throttled(Exception):
    """Too many tries; `wait_s` until the next one is looked at."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"too many tries; try again in {wait_s} s")
        self.wait_s = wait_s


class _Count(msgspec.Struct, frozen=True):
    failures: int
    free_ms: int
    seen_ms: int


def pause_ms(failures: int, free: int) -> int:
    """How long nothing is looked at after so many tries that failed."""
    return 0 if failures < free else min(1000 * 2 ** min(failures - free, 20), MOST_MS)


async def count_try(store: Store, now_ms: int, **what: str) -> None:
    """Count one try for each of `account=…`, `address=…`, `link=…`. Raises Throttled, and then counts none."""

    async def work(tx: Transaction) -> int:
        counts: list[tuple[bytes, int, int]] = []
        wait_ms = 0
        for kind, value in sorted(what.items()):
            key = _key(kind, value)
            await tx.run(ENTER, key, now_ms)
            found = await tx.row(_Count, FIND, key)
            assert found is not None
            failures = 0 if found.seen_ms < now_ms - FORGOTTEN_MS else found.failures
            if failures and found.free_ms > now_ms:
                wait_ms = max(wait_ms, found.free_ms - now_ms)
            pause = pause_ms(failures + 1, FREE_TRIES[kind])
            counts.append((key, failures + 1, now_ms + pause if pause else 0))
        if not wait_ms:
            for key, failures, free_ms in counts:
                await tx.run(COUNT, key, failures, free_ms, now_ms)
        return wait_ms

    if wait_ms := await store.transaction(work):
        raise Throttled(-(-wait_ms // 1000))


async def succeeded(store: Store, **what: str) -> None:
    """The try was right: what it stood for starts anew."""

    async def work(tx: Transaction) -> None:
        for kind, value in sorted(what.items()):
            await tx.run(CLEAR, _key(kind, value))

    await store.transaction(work)


def _key(kind: str, value: str) -> bytes:
    return hashlib.sha256(f"{kind}\n{value}".encode()).digest()
