"""What every request of the control plane is served from: settings, store, secrets, clock and randomness, in one value."""

import secrets as randomness
import time
from collections.abc import Callable
from typing import Final, final

import trio

from gatewayd.audit.ids import new_ulid
from gatewayd.control.approvals.traffic import ApprovalTraffic
from gatewayd.control.bounds import CONTROL_BOUNDS, ControlBounds
from gatewayd.control.engines.engines import Engines
from gatewayd.control.gateways.traffic import LinkTraffic
from gatewayd.control.people.passwords import Hashes
from gatewayd.control.policies.held_catalogs import HeldCatalogs
from gatewayd.control.proxy.agents import Agents
from gatewayd.control.settings import ControlSettings, Secrets
from gatewayd.control.store.store import Store
from gatewayd.control.web.live_marks import LiveMarks


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@final
class Console:
    """One replica's. `replica` names this process in leases and rows."""

    def __init__(
        self,
        settings: ControlSettings,
        store: Store,
        *,
        clock: Callable[[], int] = now_ms,
        entropy: Callable[[int], bytes] = randomness.token_bytes,
        bounds: ControlBounds = CONTROL_BOUNDS,
    ) -> None:
        assert settings.secrets is not None, "with_secrets comes first"
        self.settings: Final = settings
        self.secrets: Final[Secrets] = settings.secrets
        self.store: Final = store
        self.bounds: Final = bounds
        self.hashes: Final = Hashes()
        self.link: Final = LinkTraffic()
        self.live: Final = LiveMarks()
        self.approvals: Final = ApprovalTraffic()
        self.catalogs: Final = HeldCatalogs()
        self.judging: Final = trio.CapacityLimiter(1)
        """Policies that are tried on what was recorded take a core for seconds: one at a time."""
        self.engines: Final = Engines()
        self.agents: Final = Agents()
        self.entropy: Final = entropy
        self._clock: Final = clock
        self.replica: Final = self.new_id()

    def now_ms(self) -> int:
        return self._clock()

    def new_id(self) -> str:
        """A fresh ULID."""
        return new_ulid(self._clock(), self.entropy)
