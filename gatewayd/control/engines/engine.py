"""One project's engine here: at most one process at a time, started by the first call, kept, replaced, stopped when idle.

    stopped → starting → serving → ending → stopped        nobody has called for IDLE_S
                 ↑           ├──→ ending → starting        addresses have changed: calls in progress end, new ones wait
                 └── holding off ←── it has ended by itself: again after 0, 1, 2 … 60 s
    starting → stopped                                     it did not become ready: calls until the next try are refused

Each start is an `Attempt`, which all calls share that wait for it. One task (`run`) makes all changes, so two processes never
hold one folder: its audit file has one writer, and two runs of one identity are what a stolen one looks like.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Literal, final

import msgspec
import trio

from gatewayd import log
from gatewayd.control.engines.process import EngineProcess, StartFailed
from gatewayd.control.engines.upstream import Upstream

IDLE_S: Final = 30 * 60.0
PAUSES_S: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
LASTED_S: Final = 60.0
"""An engine that has run for so long has not failed because of its start."""
PATIENCE_S: Final = 2.0
"""A call waits for so long for an engine that is held off; beyond it is told when to try again."""

Ending = Literal["idle", "replaced", "ended"]


class EngineUnavailable(Exception):
    """The engine cannot be started now. The text is for the agent's operator and names no secret."""

    def __init__(self, text: str, retry_after_s: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after_s: Final = retry_after_s


class Wanted(msgspec.Struct, frozen=True):
    """What an engine is started for. Another one with other addresses takes its place; policies come over its link."""

    org_id: str
    project_id: str
    addresses: dict[str, str]

    def __repr__(self) -> str:
        return f"Wanted({self.project_id})"


Start = Callable[[Wanted], Awaitable[EngineProcess]]


@final
class Serving:
    """A process that answers. Use as `with serving:` around each call: `calls` are in progress, and keep it from being idle."""

    def __init__(self, process: EngineProcess, now_s: float) -> None:
        self.upstream: Final[Upstream] = process.upstream
        self.pid: Final = process.pid
        self.calls = 0
        self.used_s = now_s

    def __enter__(self) -> "Serving":
        self.calls += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.calls -= 1
        self.used_s = trio.current_time()


@final
class Attempt:
    """One start, from when it is wanted until its process has ended. `serving` is None until then, and where it failed."""

    def __init__(self, wanted: Wanted, due_s: float) -> None:
        self.wanted: Final = wanted
        self.due_s: Final = due_s
        self.settled: Final = trio.Event()
        self.replaced: Final = trio.Event()
        self.serving: Serving | None = None
        self.problem = ""


@final
class Engine:
    """`start` makes a process that is not ready yet."""

    def __init__(self, start: Start, *, idle_s: float = IDLE_S, grace_s: float) -> None:
        self.starts = 0
        self._start: Final = start
        self._idle_s: Final = idle_s
        self._grace_s: Final = grace_s
        self._attempt: Attempt | None = None
        self._failures = 0
        self._next_s = 0.0
        self._is_running = False

    async def serving(self, wanted: Wanted, nursery: trio.Nursery) -> Serving:
        """The process to call, started in `nursery` where there is none. Raises EngineUnavailable.

        `wanted` is what is known now. Who waits while another one takes its place gets that: it is newer.
        """
        if self._attempt is not None and self._attempt.wanted is not wanted and self._attempt.wanted != wanted:
            self._replace(self._attempt, wanted)
        while True:
            attempt = self._attempt or self._begin(wanted, nursery)
            if attempt.serving is None and not attempt.settled.is_set():
                self._check_due(attempt.due_s)
                await attempt.settled.wait()
            if attempt.serving is not None:
                return attempt.serving
            if attempt.problem:
                raise EngineUnavailable(attempt.problem)

    def _begin(self, wanted: Wanted, nursery: trio.Nursery) -> Attempt:
        self._check_due(self._next_s)
        self._attempt = Attempt(wanted, self._next_s)
        if not self._is_running:
            self._is_running = True
            nursery.start_soon(self.run)
        return self._attempt

    def _check_due(self, due_s: float) -> None:
        wait_s = due_s - trio.current_time()
        if wait_s > PATIENCE_S:
            raise EngineUnavailable("the engine has failed; it is started again soon", wait_s)

    def _replace(self, old: Attempt, wanted: Wanted) -> None:
        self._attempt = Attempt(wanted, old.due_s)
        old.replaced.set()

    async def run(self) -> None:
        """Every process of this engine, one after the other, while one is wanted."""
        try:
            while self._attempt is not None:
                attempt = self._attempt
                try:
                    await self._once(attempt)
                except trio.Cancelled:
                    attempt.problem = "the control plane is stopping"
                    raise
                finally:
                    self._take_back(attempt)
                    attempt.settled.set()
        finally:
            self._is_running = False

    async def _once(self, attempt: Attempt) -> None:
        await trio.sleep_until(attempt.due_s)
        if attempt.replaced.is_set():
            return
        self.starts += 1
        began_s = trio.current_time()
        try:
            process = await self._start(attempt.wanted)
        except StartFailed as failed:
            self._failed(attempt, str(failed))
            return
        how: Ending | None = None
        try:
            try:
                await process.ready()
            except StartFailed as failed:
                self._failed(attempt, str(failed))
                return
            log.info(log.ENGINE_STARTED, project=attempt.wanted.project_id, pid=process.pid)
            attempt.serving = Serving(process, trio.current_time())
            attempt.settled.set()
            how = await self._until_it_ends(attempt, attempt.serving, process, began_s)
        finally:
            self._take_back(attempt)
            await process.end(self._grace_s)
        project = attempt.wanted.project_id
        if how == "ended":
            log.error(log.ENGINE_ENDED, project=project, pid=process.pid, exit_code=await process.wait())
        else:
            self._failures, self._next_s = 0, 0.0
            log.info(log.ENGINE_STOPPED, project=project, pid=process.pid, reason=how)

    async def _until_it_ends(self, attempt: Attempt, serving: Serving, process: EngineProcess, began_s: float) -> Ending:
        how: Ending = "idle"
        async with trio.open_nursery() as nursery:

            async def replaced() -> None:
                nonlocal how
                await attempt.replaced.wait()
                how = "replaced"
                self._take_back(attempt)
                nursery.cancel_scope.cancel()

            async def ended() -> None:
                nonlocal how
                await process.wait()
                how = "ended"
                self._hold_off(lasted_s=trio.current_time() - began_s)
                # Started again without being asked: what its last calls did is still owed to the control plane.
                self._take_back(attempt, Attempt(attempt.wanted, self._next_s))
                nursery.cancel_scope.cancel()

            nursery.start_soon(replaced)
            nursery.start_soon(ended)
            await self._until_idle(serving)
            self._take_back(attempt)
            nursery.cancel_scope.cancel()
        return how

    def _take_back(self, attempt: Attempt, following: Attempt | None = None) -> None:
        """No call gets this process any more. At once with the decision to end it: a checkpoint between would let one in."""
        attempt.serving = None
        if self._attempt is attempt:
            self._attempt = following

    async def _until_idle(self, serving: Serving) -> None:
        while True:
            wait_s = self._idle_s if serving.calls else serving.used_s + self._idle_s - trio.current_time()
            if wait_s <= 0:
                return
            await trio.sleep(wait_s)

    def _failed(self, attempt: Attempt, problem: str) -> None:
        attempt.problem = problem
        self._hold_off()
        self._take_back(attempt)
        log.error(log.ENGINE_FAILED, project=attempt.wanted.project_id, error=problem)

    def _hold_off(self, *, lasted_s: float = 0.0) -> None:
        if lasted_s >= LASTED_S:
            self._failures = 0
        self._next_s = trio.current_time() + PAUSES_S[min(self._failures, len(PAUSES_S) - 1)]
        self._failures += 1
