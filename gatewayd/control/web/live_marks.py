"""What live pages wait for: a mark of each project and topic that changes when what the page shows does.

Nothing here is needed by another replica: each looks at the store for the pages that it serves.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal

import msgspec
import trio

from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction

TICK_S: Final = 0.5
_ASKED_AT_ONCE: Final = 500

Topic = Literal["audit", "approvals"]

AUDIT: Final = Statement(
    "SELECT project_id, sum(size)::text AS mark FROM audit_heads WHERE project_id = ANY($1) GROUP BY project_id"
)
APPROVALS: Final = Statement("SELECT project_id, version::text AS mark FROM approval_heads WHERE project_id = ANY($1)")
_STATEMENTS: Final[dict[Topic, Statement]] = {"audit": AUDIT, "approvals": APPROVALS}


class _Mark(msgspec.Struct, frozen=True):
    project_id: str
    mark: str


class Listener:
    """One stream. The first mark is told, too: what has changed since the page was made is not lost."""

    def __init__(self, project_id: str, topic: Topic) -> None:
        self.project_id: Final = project_id
        self.topic: Final = topic
        self._mark: str | None = None
        self._news = trio.Event()
        self._changes = 0

    async def next(self) -> int:
        """Returns when the mark is another than the last one that was told: how many there have been."""
        await self._news.wait()
        self._news = trio.Event()
        return self._changes

    def tell(self, mark: str) -> None:
        if mark != self._mark:
            self._mark = mark
            self._changes += 1
            self._news.set()


class LiveMarks:
    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._arrived = trio.Event()

    @property
    def streams(self) -> int:
        return len(self._listeners)

    @contextmanager
    def listening(self, project_id: str, topic: Topic) -> Iterator[Listener]:
        listener = Listener(project_id, topic)
        self._listeners.add(listener)
        self._arrived.set()
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def run(self, store: Store) -> None:
        """The service: looks once a tick while a page is live."""
        while True:
            if not self._listeners:
                self._arrived = trio.Event()
                await self._arrived.wait()
            with suppress(StoreUnavailable):  # told by readiness; the pages wait on
                await self._look(store)
            await trio.sleep(TICK_S)

    async def _look(self, store: Store) -> None:
        for topic, statement in _STATEMENTS.items():
            listeners = [each for each in self._listeners if each.topic == topic]
            projects = sorted({each.project_id for each in listeners})
            for start in range(0, len(projects), _ASKED_AT_ONCE):
                some = projects[start : start + _ASKED_AT_ONCE]
                marks = await _marks(store, statement, some)
                for listener in listeners:
                    if listener.project_id in some:
                        listener.tell(marks.get(listener.project_id, ""))


async def _marks(store: Store, statement: Statement, projects: list[str]) -> dict[str, str]:
    async def look(tx: Transaction) -> list[_Mark]:
        return await tx.rows(_Mark, statement, projects)

    return {each.project_id: each.mark for each in await store.transaction(look)}
