"""A call cancelled after a given number of steps."""

from typing import Any

import trio


async def cancelled_after(steps: int, ask: Any, sql: str) -> bool:
    """Cancel the call when it gives way to others for the `steps`th time. Returns whether it had finished by then."""

    class Steps(trio.abc.Instrument):
        task: trio.lowlevel.Task | None = None
        left = steps

        def after_task_step(self, task: Any) -> None:
            if task is self.task:
                self.left -= 1
                if self.left == 0:
                    scope.cancel()

    scope = trio.CancelScope()
    counter = Steps()
    finished = False

    async def call() -> None:
        nonlocal finished
        counter.task = trio.lowlevel.current_task()
        with scope:
            await ask(sql)
            finished = counter.left > 0

    trio.lowlevel.add_instrument(counter)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
    finally:
        trio.lowlevel.remove_instrument(counter)
    return finished
