"""Which project an agent's token opens, and how that stands: asked of the store, and believed for a moment.

A revoked token, a paused project, another address: known to the next call after FRESH_S, on every replica. While the store does
not answer, what it said last holds for KEPT_S: nobody can revoke anything there meanwhile.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, final

import msgspec
import trio

from gatewayd.control.engines.engine import Wanted
from gatewayd.control.proxy.use import Counted, TokenUse
from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.tokens.text import is_token

FRESH_S: Final = 2.0
KEPT_S: Final = 60.0
_TOKENS: Final = 10_000
_LOOKED_UP_AT_ONCE: Final = 4
"""Guesses cost a look-up each; they must not take the store's sessions from everybody else."""


class ProjectNow(msgspec.Struct, frozen=True):
    """As the store said it to a look-up that began at `asked_s`, in trio's time.

    `wanted`: what the project's engine is to run with, opened from `sealed`; None where no database has an address.
    """

    asked_s: float
    is_paused: bool
    is_cut: bool
    is_unsealable: bool
    sealed: tuple[tuple[str, bytes], ...]
    wanted: Wanted | None


class Admission(msgspec.Struct, frozen=True):
    """A token that is valid. `calls_left`: of this day, as the store has counted them; None where it may make any number.
    `has_read_all`: the rows of this day, as the audit of the project's gateways has told them so far."""

    token_id: str
    project_id: str
    day: int
    calls_left: int | None
    has_read_all: bool


Look = Callable[[float], Awaitable[Admission | None]]
"""Asks the store at that time, and tells `Agents.learn` of the project."""


@final
class _Held:
    def __init__(self, admission: Admission, asked_s: float) -> None:
        self.admission: Final = admission
        self.believed_from_s = asked_s
        self.kept_until_s: Final = asked_s + KEPT_S

    def is_fresh(self, now_s: float, written_s: float) -> bool:
        """What a token had left before its calls were written is not what it has left now."""
        is_of_before = self.admission.calls_left is not None and self.believed_from_s <= written_s
        return now_s < self.believed_from_s + FRESH_S and not is_of_before


@final
class Agents:
    """`use` counts what they do."""

    def __init__(self) -> None:
        self.use: Final = TokenUse()
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._projects: dict[str, ProjectNow] = {}
        self._looking: Final = trio.CapacityLimiter(_LOOKED_UP_AT_ONCE)
        self._written_s = float("-inf")

    async def admit(self, text: str, look: Look) -> Admission | None:
        """The token's admission; None for one that is unknown, over or revoked. Raises StoreUnavailable."""
        held = self._held.get(text)
        if held is not None and held.is_fresh(trio.current_time(), self._written_s):
            return held.admission
        if not is_token(text):
            return None
        async with self._looking:
            held = self._held.get(text)
            now_s = trio.current_time()
            if held is not None and held.is_fresh(now_s, self._written_s):  # somebody else has looked meanwhile
                return held.admission
            try:
                found = await look(now_s)
            except StoreUnavailable:
                if held is None or now_s >= held.kept_until_s:
                    raise
                held.believed_from_s = trio.current_time()
                return held.admission
            self._keep(text, found, now_s)
        return found

    def written(self, counted: Counted) -> None:
        """The store knows of these calls now, so nothing that it said before holds for tokens that have a bound."""
        self.use.written(counted)
        self._written_s = trio.current_time()

    def project(self, project_id: str) -> ProjectNow:
        """How the project of an admission stands: one value for all its tokens, so that they agree about its addresses."""
        return self._projects[project_id]

    def known(self, project_id: str) -> ProjectNow | None:
        return self._projects.get(project_id)

    def learn(self, project_id: str, now: ProjectNow) -> None:
        """Look-ups may end in another order than they began: the one that began last is right."""
        known = self._projects.get(project_id)
        if known is None or known.asked_s <= now.asked_s:
            self._projects[project_id] = now

    def _keep(self, text: str, found: Admission | None, now_s: float) -> None:
        """What is unknown is forgotten: guesses must not take the place of tokens."""
        if found is None:
            self._held.pop(text, None)
            return
        self._held[text] = _Held(found, now_s)
        self._held.move_to_end(text)
        if len(self._held) > _TOKENS:
            self._held.popitem(last=False)
