"""The thread that does what may wait for a disk: commits that sync, checkpoints, deletion, recovery (decision 4).

`writer.py` is its Trio side. Calls come over a SimpleQueue, the work over deques; results go back once per batch.
"""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final, Literal, TypeVar

import trio

from gatewayd.audit.batch import BatchOutcome
from gatewayd.audit.committer import Committer
from gatewayd.audit.store import AuditFile

_REST_S: Final = 1.0  # a checkpoint at rest is one that nobody waits for

_Call = Literal["work", "await rest", "stop"]
_Told = TypeVar("_Told")


class Chore:
    """A call that needs the file, run between two batches; `done` is called in the Trio thread with its result."""

    __slots__ = ("call", "done")

    def __init__(self, call: Callable[[AuditFile], object], done: Callable[[object], None]) -> None:
        self.call = call
        self.done = done


class WriterThread:
    """Works for `committer` when woken; `stop()` lets it write what waits, checkpoint and close the file.

    `deliver(outcome)`, `crashed(exception)` and each Chore's `done` run in the Trio thread. After `crashed` nothing is written.
    """

    def __init__(
        self, committer: Committer, deliver: Callable[[BatchOutcome], None], crashed: Callable[[BaseException], None]
    ) -> None:
        self._committer = committer
        self._deliver = deliver
        self._crashed = crashed
        self._chores: deque[Chore] = deque()
        self._chore_in_hand: Chore | None = None
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._is_called = False
        self._awaits_rest = False
        self._trio = trio.lowlevel.current_trio_token()
        # A daemon thread: a disk that never answers must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="gatewayd-audit", daemon=True)
        self._thread.start()

    # the Trio thread's side

    def wake(self) -> None:
        """Has it commit what waits."""
        if not self._is_called:
            self._is_called = True
            self._calls.put("work")

    def await_rest(self) -> None:
        """Has it make a checkpoint once nothing was committed for a second."""
        if not self._awaits_rest:
            self._awaits_rest = True
            self._calls.put("await rest")

    def do(self, chore: Chore) -> None:
        self._chores.append(chore)
        self.wake()

    def stop(self) -> None:
        self._calls.put("stop")

    def join(self) -> None:
        self._thread.join()

    def abandon(self) -> list[Chore]:
        """Takes away the chores that a thread which crashed left undone."""
        left = [self._chore_in_hand] if self._chore_in_hand is not None else []
        left += self._chores
        self._chore_in_hand = None
        self._chores.clear()
        return left

    # the thread's side

    def _run(self) -> None:
        committer = self._committer
        call: _Call = "await rest"
        try:
            while call != "stop":
                self._awaits_rest = False  # before looking: who commits after the look calls
                self._awaits_rest = committer.owes_checkpoint
                try:
                    call = self._calls.get(timeout=_REST_S if self._awaits_rest else None)
                except queue.Empty:
                    if monotonic() - committer.committed_at >= _REST_S:
                        with committer.owner:
                            committer.checkpoint()
                    continue
                if call != "await rest":
                    self._is_called = False  # before looking: who appends after the look calls again
                    self._work()
        except BaseException as failure:  # told, not swallowed: `crashed` ends the daemon
            self._tell(self._crashed, failure)
        finally:
            with committer.owner:
                committer.close()

    def _work(self) -> None:
        """Commits all that waits, with a chore between each two things that sync: the watchdog waits for the end of one."""
        committer = self._committer
        while committer or self._chores:
            self._do_a_chore()
            # Told without being the owner: who hears of it shall find the file free.
            with committer.owner:
                outcome = committer.commit() if committer else None
            if outcome is not None:
                self._tell(self._deliver, outcome)
            self._do_a_chore()
            if committer.log_is_long:
                with committer.owner:
                    committer.checkpoint()

    def _do_a_chore(self) -> None:
        if self._chores:
            self._chore_in_hand = chore = self._chores.popleft()
            with self._committer.owner:
                result = self._committer.call(chore.call)
            self._tell(chore.done, result)
            self._chore_in_hand = None

    def _tell(self, receiver: Callable[[_Told], None], value: _Told) -> None:
        with contextlib.suppress(trio.RunFinishedError):  # nobody is left to tell
            self._trio.run_sync_soon(receiver, value)
