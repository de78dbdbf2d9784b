"""Progress on stderr for work that takes longer than a second, on terminals only (decision 14)."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Any, Final

import trio

AFTER_S: Final = 1.0
_REFRESH_S: Final = 0.1  # a step may take less than drawing it


class ProgressLine:
    """Counts work that is done in a loop; the bar appears with the first step after a second."""

    def __init__(self, what: str, total: int | None, after_s: float) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._is_terminal = sys.stderr.isatty()
        self._next = monotonic() + after_s
        self._bar: Any = None
        self._task: Any = None

    def advance(self, steps: int = 1) -> None:
        """Counts steps; redraws the line from time to time."""
        self._done += steps
        if not self._is_terminal or monotonic() < self._next:
            return
        self._next = monotonic() + _REFRESH_S
        if self._bar is None:
            self._show()
        self._bar.update(self._task, completed=self._done)

    def close(self) -> None:
        """Removes the line."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        words = TextColumn("{task.description}")
        counted = (words, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        columns = counted if self._total is not None else (SpinnerColumn(), words)
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._what, total=self._total, completed=self._done)
        self._bar.start()


@contextmanager
def progress(what: str, total: int | None = None, *, after_s: float = AFTER_S) -> Iterator[ProgressLine]:
    """`total` is how many steps there will be, None when that is not known. Nothing is shown before `after_s` seconds."""
    shown = ProgressLine(what, total, after_s)
    try:
        yield shown
    finally:
        shown.close()


@asynccontextmanager
async def waiting(what: str, *, after_s: float = AFTER_S) -> AsyncIterator[None]:
    """For a block that awaits something outside this process, which has no steps to count."""
    if not sys.stderr.isatty():
        yield
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_spin, what, after_s)
        yield
        nursery.cancel_scope.cancel()


async def _spin(what: str, after_s: float) -> None:
    await trio.sleep(after_s)
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        await trio.sleep_forever()
