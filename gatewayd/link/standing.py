"""How a linked gateway stands: the one place that changes its state, and says so once for each change (docs/link-protocol.md).

What bundles ask for is the base; a stale or cut link may halt above it. Every message here has its recovery line.
"""

from collections.abc import Callable
from typing import Literal, assert_never

from gatewayd import log
from gatewayd.link.formats.states import Enforcing, Halted, LinkState, Paused, Waiting, name_of, tool_error
from gatewayd.link.formats.status import NotEnforced, StateName

OnStale = Literal["keep", "halt"]
STALE_REASON = "the control plane has not confirmed the policy for longer than it allows"
CUT_REASON = "the control plane has cut this gateway off"


class Standing:
    """`state` is the effective one. `on_change` is called after each change of it."""

    def __init__(self) -> None:
        self.state: LinkState = Waiting()
        self.base: LinkState = Waiting()
        self.is_cut = False
        self.is_stale = False
        self.problem: NotEnforced | None = None
        """Why the newest bundle that was delivered is not in force."""
        self.refused_calls = 0
        self.on_change: list[Callable[[LinkState], None]] = []
        self._on_stale: OnStale = "keep"
        self._told: LinkState | None = None
        self._unreachable: str | None = None
        self._status_refused = False

    def __str__(self) -> str:
        """For the service manager's status line: `enforcing version 7`, `halted: …`."""
        state = self.state
        match state:
            case Enforcing(version=version) | Paused(version=version):
                words = f"{name_of(state)} version {version}"
            case Halted(reason=reason):
                words = f"halted: {reason}"
            case _:
                words = "waiting for a first bundle"
        return f"{words}, link cut" if self.is_cut else words

    @property
    def name(self) -> StateName:
        return name_of(self.state)

    def refusing(self) -> tuple[str, str] | None:
        """The error and the reason that every call is answered with now; None while calls are served."""
        found = tool_error(self.state)
        if found is not None:
            self.refused_calls += 1
        return found

    # -- what happens

    def begun(self) -> None:
        """The start is over: a gateway that still waits says so."""
        self._settle()

    def took(self, state: LinkState, on_stale: OnStale) -> None:
        """A bundle is in force."""
        self._on_stale = on_stale
        self.problem = None
        self.base = state
        self._settle()

    def cannot_enforce(
        self, reason: str, cause: Literal["bundle", "ratchet", "tests"], problem: NotEnforced | None = None
    ) -> None:
        """Halts: an authentic bundle cannot be enforced, or the ratchet cannot be read."""
        self.base = Halted(reason, cause)
        self.problem = problem
        self._settle()

    def cut(self, reason: str, *, elsewhere: bool) -> None:
        """The control plane refuses this gateway. `elsewhere`: because its identity is in use on another machine."""
        if elsewhere and not self.is_cut:
            log.error(log.IDENTITY_ELSEWHERE)
        if not self.is_cut:
            self.is_cut = True
            log.error(log.LINK_CUT, reason=reason)
            self._settle()

    def restored(self) -> None:
        """The control plane accepts this gateway again."""
        if self.is_cut:
            self.is_cut = False
            log.info(log.LINK_RESTORED)
            self._settle()

    def stale(self, version: int, age_s: int) -> None:
        """The bundle in force was not confirmed for longer than it allows."""
        if not self.is_stale:
            self.is_stale = True
            log.warning(log.POLICY_STALE, version=version, age_s=age_s)
            self._settle()

    def fresh(self, version: int) -> None:
        """The bundle in force was confirmed."""
        if self.is_stale:
            self.is_stale = False
            log.info(log.POLICY_FRESH, version=version)
            self._settle()

    def unreachable(self, error: str) -> None:
        """Said again only when the failure differs."""
        if self._unreachable != error:
            self._unreachable = error
            log.warning(log.CONTROL_PLANE_UNREACHABLE, error=error)

    def reachable(self) -> None:
        """The control plane answered."""
        if self._unreachable is not None:
            self._unreachable = None
            log.info(log.CONTROL_PLANE_REACHABLE)

    def status_refused(self, message: str) -> None:
        """The control plane does not understand the status that this gateway reports."""
        if not self._status_refused:
            self._status_refused = True
            log.error(log.STATUS_REFUSED, reason=message)

    def status_taken(self) -> None:
        """The control plane accepted the status."""
        if self._status_refused:
            self._status_refused = False
            log.info(log.STATUS_TAKEN)

    def _settle(self) -> None:
        self.state = self._effective()
        if self.state == self._told:
            return
        self._told = self.state
        match self.state:
            case Waiting():
                log.info(log.GATEWAY_WAITING)
            case Enforcing(version=version):
                log.info(log.GATEWAY_ENFORCING, version=version)
            case Paused(version=version):
                log.warning(log.GATEWAY_PAUSED, version=version)
            case Halted(reason=reason):
                log.error(log.GATEWAY_HALTED, reason=reason)
            case _ as unreachable:
                assert_never(unreachable)
        for changed in self.on_change:
            changed(self.state)

    def _effective(self) -> LinkState:
        if isinstance(self.base, Waiting | Halted) or self._on_stale == "keep":
            return self.base
        if self.is_cut:
            return Halted(CUT_REASON, "cut")
        if self.is_stale:
            return Halted(STALE_REASON, "stale")
        return self.base
