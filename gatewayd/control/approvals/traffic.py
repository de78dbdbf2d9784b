"""Who waits here for a decision. One that is made anywhere is seen within TICK_S."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio

from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store
from gatewayd.control.store.waiting import Waiting

TICK_S: Final = 0.25
_ASKED_AT_ONCE: Final = 500

DECIDED: Final = Statement(
    "SELECT approval_id FROM approvals WHERE project_id = ANY($1) AND approval_id = ANY($2)"
    " AND (state <> 'pending' OR expires_ms <= $3)"
)


class _Decided(msgspec.Struct, frozen=True):
    approval_id: str


class _Waiter:
    def __init__(self, project_id: str, approval_id: str) -> None:
        self.project_id: Final = project_id
        self.approval_id: Final = approval_id
        self.news: Final = trio.Event()


class ApprovalTraffic:
    def __init__(self) -> None:
        self._waiting: Final[Waiting[_Waiter]] = Waiting(TICK_S)

    async def wait(self, project_id: str, approval_id: str, until: float, stop: trio.Event) -> None:
        """Returns when the request is decided or has expired, at `until` (trio's time), and when `stop` is set."""
        with self._waiting.joined(_Waiter(project_id, approval_id)) as waiter, trio.move_on_at(until):
            async with trio.open_nursery() as nursery:

                async def end() -> None:
                    await stop.wait()
                    nursery.cancel_scope.cancel()

                nursery.start_soon(end)
                await waiter.news.wait()
                nursery.cancel_scope.cancel()

    async def run(self, store: Store, now_ms: Callable[[], int]) -> None:
        """The service: looks once a tick while somebody waits."""

        async def look(waiters: Sequence[_Waiter]) -> None:
            for start in range(0, len(waiters), _ASKED_AT_ONCE):
                await _look(store, waiters[start : start + _ASKED_AT_ONCE], now_ms())

        await self._waiting.run(look)


async def _look(store: Store, waiters: Sequence[_Waiter], now_ms: int) -> None:
    projects, ids = {each.project_id for each in waiters}, {each.approval_id for each in waiters}
    decided = {each.approval_id for each in await store.rows(_Decided, DECIDED, sorted(projects), sorted(ids), now_ms)}
    for waiter in waiters:
        if waiter.approval_id in decided:
            waiter.news.set()
