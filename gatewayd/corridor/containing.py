"""Which grants are tainted, and what that means for one statement (docs/policy.md, Containment).

A grant is an agent's token, or the whole gateway where agents have none. `Taints` remembers; here it is asked before an action
that a tainted grant may not do, and told before rows of a source leave. No answer counts as tainted.
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

if TYPE_CHECKING:
    from gatewayd.corridor.deciding import Deciding

ContainmentEvent = Literal["denied", "held", "unknown", "tainted", "not_recorded"]
"""A contained action was denied, held, or denied because nothing is known; a read of a source was recorded, or refused because
it could not be."""
_WHOLE_GATEWAY: Final = "gateway"


class Tainted(msgspec.Struct, frozen=True):
    """What a grant has read: `source` as schema.table of `database`, in milliseconds since the epoch, by a query."""

    source: str
    database: str
    since_ms: int
    query_id: str


class TaintUnknown(Exception):
    """Whether a grant is tainted, or that it is from now on, could not be settled. `str()` says why, in words for an agent."""


class Taints(Protocol):
    """`cleared_by` says who can clear a grant. Every call raises TaintUnknown, and ends within some seconds."""

    cleared_by: str

    @property
    def count(self) -> int:
        """How many grants are known here to be tainted; 0 where they are kept elsewhere."""

    async def of(self, grant: str, query: Query) -> Tainted | None:
        """What has tainted the grant; None: nothing has."""

    async def mark(self, grant: str, tainted: Tainted) -> None:
        """Returns when it is kept that the grant is tainted."""

    def grant_of(self, agent: Agent) -> str:
        """The token's id, or "" where the grant is the whole gateway."""


class NowhereKept:
    """Taints of a gateway that has no place for them: nothing is known of any grant."""

    cleared_by = "an operator who gives gatewayd a folder for it"
    count = 0

    async def of(self, grant: str, query: Query) -> Tainted | None:
        raise TaintUnknown("this gateway keeps no record of it")

    async def mark(self, grant: str, tainted: Tainted) -> None:
        raise TaintUnknown("this gateway keeps no record of it")

    def grant_of(self, agent: Agent) -> str:
        return ""


class Containing:
    """The containment of one gateway: the taints, whether they can be asked, and what it has done since the start."""

    def __init__(self, taints: Taints) -> None:
        self.taints = taints
        self.counts: dict[ContainmentEvent, int] = dict.fromkeys(get_args(ContainmentEvent), 0)
        self._failed: str | None = None

    async def held_to(self, deciding: "Deciding", known: Known, verdict: Verdict, query: Query) -> Verdict:
        """`verdict`, or the stricter one that a tainted grant gets. A clean grant is asked about only where that differs."""
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

    async def mark(self, allowed: Allowed, query: Query, now_ms: int) -> Denied | None:
        """Taints the grant before rows of the source leave. Why they may not leave, where that could not be kept."""
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
    """The grant in logs and lists."""
    return grant or _WHOLE_GATEWAY


def _is_same(decision: Decision, stricter: Verdict) -> bool:
    """Whether a tainted grant may do it in the same way. Which key allowed it makes no difference; a shield does, for it hides
    what is contained as well."""
    allowed = stricter.allowed
    return allowed is not None and type(decision) is type(stricter.decision) and not allowed.needs_shield


def _told(verdict: Verdict, why: str) -> Verdict:
    denied = verdict.decision
    if not isinstance(denied, Denied):
        return verdict
    return msgspec.structs.replace(verdict, decision=msgspec.structs.replace(denied, reason=bounded(f"{denied.reason}; {why}")))
