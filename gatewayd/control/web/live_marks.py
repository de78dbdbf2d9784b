"""What live pages wait for: a mark of each project and topic that changes when what the page shows does."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, Literal

import msgspec
import trio

from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store, Transaction
from gatewayd.control.store.waiting import Waiting

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
        self._waiting: Final[Waiting[Listener]] = Waiting(TICK_S)

    @property
    def streams(self) -> int:
        return len(self._waiting)

    def listening(self, project_id: str, topic: Topic) -> AbstractContextManager[Listener]:
        return self._waiting.joined(Listener(project_id, topic))

    async def run(self, store: Store) -> None:
        """The service: looks once a tick while a page is live."""
        await self._waiting.run(partial(_look, store))


async def _look(store: Store, waiting: Sequence[Listener]) -> None:
    for topic, statement in _STATEMENTS.items():
        listeners = [each for each in waiting if each.topic == topic]
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
