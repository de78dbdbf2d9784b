"""A cancellation at a chosen step of a task."""

import trio


class CancelAt(trio.abc.Instrument):
    """Cancels `scope` while its task waits for the `step`-th time; 0 is before it does anything."""

    def __init__(self, step: int) -> None:
        self.scope = trio.CancelScope()
        self.waited = 0
        self.task: trio.lowlevel.Task | None = None
        self._step = step

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self.task:
            self.waited += 1
            if self.waited == self._step:
                self.scope.cancel()
