"""What one replica holds of its gateways' requests: polls that wait, bodies that are being read, batches that are being stored.

Nothing here is needed by another replica. A publication that is made anywhere is seen within TICK_S.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec
import trio

from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction
from gatewayd.control.store.waiting import Waiting

TICK_S: Final = 0.5
BATCHES_AT_ONCE: Final = 2
BATCHES_WAITING: Final = 32
BODIES_BYTES: Final = 128 * 1024 * 1024
_ASKED_AT_ONCE: Final = 500
_STATEMENTS: Final = 20_000

HEADS: Final = Statement("SELECT project_id, version FROM bundle_heads WHERE project_id = ANY($1)")
STANDINGS: Final = Statement(
    "SELECT gateway_id, standing, run_n FROM gateways WHERE project_id = ANY($1) AND gateway_id = ANY($2)"
)
TRUST: Final = Statement("SELECT coalesce(max(version), 0) FROM trust_documents")


class Known(msgspec.Struct, frozen=True):
    """What a waiting poll knows; it wakes when the store says something else. `n` is its own number: a later one
    takes its place."""

    bundle: int
    trust: int
    standing: str
    n: int


class _Head(msgspec.Struct, frozen=True):
    project_id: str
    version: int


class _Standing(msgspec.Struct, frozen=True):
    gateway_id: str
    standing: str
    run_n: int


class _Waiter:
    def __init__(self, project_id: str, gateway_id: str, known: Known) -> None:
        self.project_id: Final = project_id
        self.gateway_id: Final = gateway_id
        self.known: Final = known
        self.news: Final = trio.Event()


class LinkTraffic:
    def __init__(self) -> None:
        self.batches: Final = trio.CapacityLimiter(BATCHES_AT_ONCE)
        self.body_bytes = 0
        self._waiting: Final[Waiting[_Waiter]] = Waiting(TICK_S)
        self._statements: dict[tuple[str, str], None] = {}

    @property
    def held_polls(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether another batch would wait for too long here."""
        return self.batches.statistics().tasks_waiting >= BATCHES_WAITING

    def knows(self, project_id: str, fingerprint: str) -> bool:
        """Whether the text of a statement is known to be kept."""
        return (project_id, fingerprint) in self._statements

    def learn(self, project_id: str, fingerprint: str) -> None:
        self._statements[project_id, fingerprint] = None
        if len(self._statements) > _STATEMENTS:
            del self._statements[next(iter(self._statements))]

    async def wait(self, project_id: str, gateway_id: str, known: Known, until: float) -> None:
        """Returns when the store says something else than `known`, and at `until` (trio's time)."""
        with self._waiting.joined(_Waiter(project_id, gateway_id, known)) as waiter, trio.move_on_at(until):
            await waiter.news.wait()

    async def run(self, store: Store) -> None:
        """The service: looks once a tick while a poll waits."""
        await self._waiting.run(partial(_look, store))


async def _look(store: Store, waiters: Sequence[_Waiter]) -> None:
    for start in range(0, len(waiters), _ASKED_AT_ONCE):
        some = waiters[start : start + _ASKED_AT_ONCE]

        async def look(tx: Transaction, some: Sequence[_Waiter] = some) -> tuple[list[_Head], list[_Standing], int]:
            projects = sorted({each.project_id for each in some})
            heads = await tx.rows(_Head, HEADS, projects)
            standings = await tx.rows(_Standing, STANDINGS, projects, sorted({each.gateway_id for each in some}))
            return heads, standings, int(await tx.value(TRUST))

        heads, standings, trust = await store.transaction(look)
        versions = {each.project_id: each.version for each in heads}
        gateways = {each.gateway_id: each for each in standings}
        for waiter in some:
            gateway = gateways.get(waiter.gateway_id)
            standing, n = (gateway.standing, gateway.run_n) if gateway is not None else ("retired", waiter.known.n)
            if Known(versions.get(waiter.project_id, 0), trust, standing, n) != waiter.known:
                waiter.news.set()
