"""The engines of this control plane, by project. What starts them is given by the service that runs them (`service.py`)."""

from typing import Final, final

import trio

from gatewayd.control.engines.engine import IDLE_S, Engine, EngineUnavailable, Serving, Start, Wanted


@final
class Engines:
    """Before `opened` and after `closed` there are none."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self.replica: str | None = None
        """The name under which engines are enrolled here; None while there are none."""
        self.problem = "the control plane is stopping or starting"
        """Why there are none."""
        self.leave: Final = trio.Event()
        """Set when the control plane stops: calls in progress end, no new ones begin."""
        self.ended: Final = trio.Event()
        """Set once no process is left, for this run."""
        self._idle_s: Final = idle_s
        self._by_project: dict[str, Engine] = {}
        self._nursery: trio.Nursery | None = None
        self._start: Start | None = None
        self._grace_s = 0.0

    def opened(self, replica: str, start: Start, nursery: trio.Nursery, *, grace_s: float) -> None:
        self.replica, self._start, self._nursery, self._grace_s = replica, start, nursery, grace_s

    def closed(self) -> None:
        self._nursery = None

    async def serving(self, wanted: Wanted) -> Serving:
        """The project's engine, ready to be called. Raises EngineUnavailable."""
        if self._nursery is None or self._start is None:
            raise EngineUnavailable(self.problem)
        engine = self._by_project.get(wanted.project_id)
        if engine is None:
            engine = self._by_project[wanted.project_id] = Engine(self._start, idle_s=self._idle_s, grace_s=self._grace_s)
        return await engine.serving(wanted, self._nursery)
