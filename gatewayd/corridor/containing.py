"""Which grants are tainted, and what that means for one statement (docs/policy.md, Containment).

A grant is an agent's token, or the whole gateway where agents have no tokens. `Taints` is the record of tainted grants. It is
read before an action that a tainted grant may not do, and written before rows of a source are sent. If it cannot be read, the
grant counts as tainted.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.events import Agent, Query
from gatewayd.corridor.known_statements import Known
from gatewayd.judge import Verdict
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied, Held
from gatewayd.policy.decide.reasons import bounded
from gatewayd.policy.file.model import Policy

if TYPE_CHECKING:
    from gatewayd.corridor.deciding import Deciding

ContainmentEvent = Literal["denied", "held", "unknown", "tainted", "not_recorded"]
"""A contained action was denied, was held, or was denied because the record could not be read; a read of a source was recorded,
or was refused because it could not be recorded."""
_WHOLE_GATEWAY: Final = "gateway"


class Tainted(msgspec.Struct, frozen=True):
    """What tainted a grant: the `source` (schema.table) of `database`, the time in milliseconds since the epoch, and the
    query."""

    source: str
    database: str
    since_ms: int
    query_id: str


class TaintUnknown(Exception):
    """The record of taints could not be read or written. `str()` says why, in words for an agent."""


class Taints(Protocol):
    """The record of tainted grants. `cleared_by` says who can clear one. Every call may raise TaintUnknown and ends within
    some seconds."""

    cleared_by: str

    @property
    def count(self) -> int:
        """The number of tainted grants in this record; 0 if the control plane keeps it."""

    async def of(self, grant: str, query: Query) -> Tainted | None:
        """What tainted the grant, or None for a clean grant."""

    async def mark(self, grant: str, tainted: Tainted) -> None:
        """Records that the grant is tainted; returns when that is durable."""

    def grant_of(self, agent: Agent) -> str:
        """The token's id, or "" where the grant is the whole gateway."""


class NowhereKept:
    """The record of a gateway without a state folder: the state of every grant is unknown."""

    cleared_by = "an operator who gives gatewayd a folder for it"
    count = 0

    async def of(self, grant: str, query: Query) -> Tainted | None:
        raise TaintUnknown("this gateway keeps no record of it")

    async def mark(self, grant: str, tainted: Tainted) -> None:
        raise TaintUnknown("this gateway keeps no record of it")

    def grant_of(self, agent: Agent) -> str:
        return ""


class Containing:
    """The containment of one gateway: its record of taints, whether it can be read, and counts since the start."""

    def __init__(self, taints: Taints) -> None:
        self.taints = taints
        self.counts: dict[ContainmentEvent, int] = dict.fromkeys(get_args(ContainmentEvent), 0)
        self._failed: str | None = None

    async def held_to(self, deciding: "Deciding", known: Known, verdict: Verdict, query: Query) -> Verdict:
        """`verdict`, or the stricter one of a tainted grant. The record is read only where the two differ."""
        allowed = verdict.allowed
        if deciding.enforced.policy.taint is None or allowed is None or verdict.refused is not None:
            return verdict
        if allowed.is_contained:  # it reads a source itself
            self._count(verdict.decision)
            return verdict
        stricter = await deciding.verdict(known, tainted=True)
        if _is_same(verdict.decision, stricter):
            return verdict
        try:
            with trio.CancelScope(shield=True):
                tainted = await self.taints.of(self.taints.grant_of(query.agent), query)
        except TaintUnknown as unknown:
            self._has_failed(str(unknown))
            self.counts["unknown"] += 1
            return _told(stricter, f"whether its agent has read one could not be found out ({unknown}); try again later")
        self._has_worked()
        if tainted is None:
            return verdict
        self._count(stricter.decision)
        when = datetime.fromtimestamp(tainted.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        what = f"its agent has read {tainted.source} of database {tainted.database}, a source of foreign text, at {when}"
        return _told(stricter, f"{what}; {self.taints.cleared_by} can clear that")

    async def holds(self, policy: Policy, allowed: Allowed, query: Query) -> bool:
        """Whether a held write is one that containment holds, too, whatever else does: a standing grant must not let it run."""
        if policy.taint is None:
            return False
        if allowed.is_contained:
            return True
        try:
            with trio.CancelScope(shield=True):
                tainted = await self.taints.of(self.taints.grant_of(query.agent), query)
        except TaintUnknown as unknown:
            self._has_failed(str(unknown))
            return True
        self._has_worked()
        return tainted is not None

    async def mark(self, allowed: Allowed, query: Query, now_ms: int) -> Denied | None:
        """Marks the grant as tainted before rows of the source are sent. Returns a denial if that could not be recorded."""
        source = allowed.reads_source
        if source is None:
            return None
        grant = self.taints.grant_of(query.agent)
        try:
            with trio.CancelScope(shield=True):
                await self.taints.mark(grant, Tainted(source, query.database, now_ms, query.query_id))
        except TaintUnknown as unknown:
            self._has_failed(str(unknown))
            self.counts["not_recorded"] += 1
            what = f"{source} is a source of foreign text, and that it is read could not be recorded"
            reason = f"{what} ({unknown}); try again later"
            return Denied("table_access", bounded(reason), allowed.statement.kind, allowed.tables, "taint:sources")
        self._has_worked()
        self.counts["tainted"] += 1
        return None

    def _count(self, decision: Decision) -> None:
        if isinstance(decision, Denied):
            self.counts["denied"] += 1
        elif isinstance(decision, Held):
            self.counts["held"] += 1

    def _has_failed(self, reason: str) -> None:
        if self._failed != reason:
            self._failed = reason
            log.error(log.TAINT_CHECK_FAILED, error=reason)

    def _has_worked(self) -> None:
        if self._failed is not None:
            self._failed = None
            log.info(log.TAINT_CHECK_WORKS)


def shown(grant: str) -> str:
    """The grant's name in logs and lists."""
    return grant or _WHOLE_GATEWAY


def _is_same(decision: Decision, stricter: Verdict) -> bool:
    """Whether a tainted grant may run it in the same way. The policy key that allowed it may differ. A shield may not, because it
    hides contained tables too."""
    allowed = stricter.allowed
    return allowed is not None and type(decision) is type(stricter.decision) and not allowed.needs_shield


def _told(verdict: Verdict, why: str) -> Verdict:
    denied = verdict.decision
    if not isinstance(denied, Denied):
        return verdict
    return msgspec.structs.replace(verdict, decision=msgspec.structs.replace(denied, reason=bounded(f"{denied.reason}; {why}")))
