"""The writer's thread: everything that may wait for the disk: commits that sync, checkpoints, deletion, recovery (decision 4).

`queue.py` is its Trio side. Wake-ups arrive over a SimpleQueue, work over deques; results are returned once per batch.
"""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Literal, TypeVar

import trio

from gatewayd.audit.batch import BatchOutcome
from gatewayd.audit.committer import Committer
from gatewayd.audit.file import AuditFile

_Call = Literal["work", "await rest", "stop"]
_Told = TypeVar("_Told")


class Chore:
    """A call that needs the file, run between two batches; `done` is called in the Trio thread with its result."""

    __slots__ = ("call", "done")

    def __init__(self, call: Callable[[AuditFile], object], done: Callable[[object], None]) -> None:
        self.call = call
        self.done = done


class WriterThread:
    """Works for `committer` when woken. `stop()` makes it write the queued rows, checkpoint and close the file.

    `deliver(outcome)`, `headed(note)`, `crashed(exception)` and each Chore's `done` run in the Trio thread. After `crashed`
    nothing is written.
    """

    def __init__(
        self,
        committer: Committer,
        deliver: Callable[[BatchOutcome], None],
        headed: Callable[[str], None],
        crashed: Callable[[BaseException], None],
    ) -> None:
        self._committer = committer
        self._deliver = deliver
        self._headed = headed
        self._crashed = crashed
        self._chores: deque[Chore] = deque()
        self._chore_in_hand: Chore | None = None
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._is_called = False
        self._awaits_rest = False
        # A daemon thread: a disk that never answers must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="gatewayd-audit", daemon=True)

    # the Trio thread's side

    def start(self) -> None:
        """Starts the thread."""
        self._trio = trio.lowlevel.current_trio_token()
        self._thread.start()

    def wake(self) -> None:
        """Makes the thread commit the queued rows."""
        if not self._is_called:
            self._is_called = True
            self._calls.put("work")

    def await_rest(self) -> None:
        """Makes the thread checkpoint once nothing was committed for a second."""
        if not self._awaits_rest:
            self._awaits_rest = True
            self._calls.put("await rest")

    def do(self, chore: Chore) -> None:
        """Queues a chore."""
        self._chores.append(chore)
        self.wake()

    def stop(self) -> None:
        """Makes the thread finish its work and end."""
        self._calls.put("stop")

    def join(self) -> None:
        """Waits, blocking, until the thread has ended."""
        self._thread.join()

    def abandon(self) -> list[Chore]:
        """Removes and returns the chores that a crashed thread has not done."""
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
                self._awaits_rest = False  # reset before the check: a commit after the check wakes the thread again
                self._awaits_rest = committer.owes_checkpoint
                with committer.owner:
                    head_due_s = committer.head_due_s()
                waits = [committer.pace.rest_s] if self._awaits_rest else []
                waits += [head_due_s] if head_due_s is not None else []
                try:
                    call = self._calls.get(timeout=min(waits) if waits else None)
                except queue.Empty:
                    if committer.owes_checkpoint and monotonic() - committer.committed_at >= committer.pace.rest_s:
                        with committer.owner:
                            committer.checkpoint()
                    self._make_head_if_due()
                    continue
                if call != "await rest":
                    self._is_called = False  # reset before the check: an append after the check wakes the thread again
                    self._work()
                self._make_head_if_due()
            self._make_head()
        except BaseException as failure:  # not swallowed: `crashed` ends the daemon
            self._tell(self._crashed, failure)
        finally:
            with committer.owner:
                committer.close()

    def _make_head_if_due(self) -> None:
        with self._committer.owner:
            due_s = self._committer.head_due_s()
        if due_s == 0:
            self._make_head()

    def _make_head(self) -> None:
        """Syncs the log and signs a head over the committed rows. Commits continue meanwhile."""
        committer = self._committer
        with committer.owner:
            drafted = committer.draft_head()
        if drafted is None:
            return
        file, draft = drafted
        try:
            file.sync_log()
        except OSError:  # no head: if a power cut lost rows that were signed, that would look like a forgery
            return
        with committer.owner:
            note = committer.keep_head(file, draft)
        if note is not None:
            self._tell(self._headed, note)

    def _work(self) -> None:
        """Commits all queued rows, with a chore between any two syncs, because the watchdog waits for a chore."""
        committer = self._committer
        while committer or self._chores:
            self._do_a_chore()
            # Reported without owning the file, so that the receiver finds it free.
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
        with contextlib.suppress(trio.RunFinishedError):  # Trio has ended
            self._trio.run_sync_soon(receiver, value)
