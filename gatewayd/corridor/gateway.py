"""Gateway: everything that a call needs: the databases with their policies, the audit, and the observers.

It owns references only. `daemon.py` opens and closes the services, `reload.py` swaps policies, `pipeline.py` reads.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal

import msgspec
import trio

from gatewayd.audit.events import SELF_HOST_TENANT, Query
from gatewayd.audit.service import Audit, Under
from gatewayd.catalog import Catalog
from gatewayd.config.credentials import Secret
from gatewayd.corridor.containing import Containing, NowhereKept
from gatewayd.corridor.hold import HeldWrites
from gatewayd.corridor.known_statements import KnownStatements
from gatewayd.policy.decide.outcomes import Denied
from gatewayd.policy.file.model import Policy
from gatewayd.policy.replacement import policy_sha256
from gatewayd.postgres.catalog.refresher import CatalogRefresher
from gatewayd.postgres.pool import Pool

ToolName = Literal["query", "list_tables", "describe_table", "preview"]
"""`preview` is not a tool: it marks the gateway's own statements that count the rows of a held write."""


class Enforced(msgspec.Struct, frozen=True, gc=False):
    """The policy in force for one database. `revision` rises with every swap, so that no cached decision outlives its policy."""

    policy: Policy
    revision: int
    since_s: float
    """When it came into force, in seconds since the epoch."""
    under: Under
    """The policy's identity, for the audit."""


class Completed(msgspec.Struct, frozen=True, gc=False):
    """One finished call, for the observers: metrics, telemetry, the deny webhook. Durations in seconds."""

    query: Query
    tool: ToolName
    audit_id: str | None  # None: audit unavailable
    decision: Literal["ALLOW", "DENY", "HELD", "UNAUDITED"]
    sql: str
    denied: Denied | None
    statement_type: str | None
    tables: tuple[str, ...]
    parse_s: float
    decide_s: float
    audit_s: float
    exec_s: float | None  # None: nothing ran
    mask_s: float
    rows: int
    rows_bytes: int
    truncated: bool
    error_class: str | None


_COUNTING: Final = 2  # previews of held writes at once

Observer = Callable[[Completed], None]


class Database:
    """One database as the pipeline uses it. A call takes `enforced` and `catalog` once, at its start (docs/architecture.md)."""

    def __init__(self, name: str, pool: Pool, refresher: CatalogRefresher, policy: Policy) -> None:
        self.name = name
        self.pool = pool
        self.refresher = refresher
        self.enforced = Enforced(policy, 1, time.time(), Under(policy_sha256(policy)))
        self.known_statements = KnownStatements()
        self.counting = trio.CapacityLimiter(_COUNTING)
        self.withheld: str | None = None
        """The reason why no statement runs although a policy is in force: the policy's own tests have not passed yet."""
        self._users = 0
        self._unused = trio.Event()

    @property
    def catalog(self) -> Catalog:
        return self.refresher.catalog

    def enforce(self, policy: Policy, bundle: int | None = None) -> None:
        """Applies `policy` to every call that starts from now on. `bundle` is the version of the bundle that contains it."""
        self.enforced = Enforced(policy, self.enforced.revision + 1, time.time(), Under(policy_sha256(policy), bundle))
        self.pool.repin(policy.limits)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keeps the pool and the catalog open within the block, even if a reload removes this database."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def unused(self) -> None:
        """Returns when no call uses the database. To be awaited once new calls can no longer find it."""
        while self._users:
            self._unused = trio.Event()
            await self._unused.wait()


class Masking(msgspec.Struct, frozen=True):
    """The settings for masks: GATEWAY_MASK_SALT and GATEWAY_MASK_SOURCE_REWRITE."""

    salt: Secret | None = None
    source_rewrite: bool = False


NO_MASKING: Final = Masking()


def _serving() -> None:
    return None


class Gateway:
    """What calls share. A reload replaces `databases` as a whole and never changes it in place. Observers must neither block nor
    raise."""

    def __init__(
        self,
        audit: Audit,
        databases: Mapping[str, Database],
        *,
        masking: Masking = NO_MASKING,
        approvals: HeldWrites | None = None,
        containing: Containing | None = None,
    ) -> None:
        self.audit = audit
        self.databases = databases
        self.masking = masking
        self.approvals = approvals
        self.containing = containing if containing is not None else Containing(NowhereKept())
        self.observers: tuple[Observer, ...] = ()
        self.tenant_id = SELF_HOST_TENANT
        """The tenant of every audit row from now on."""
        self.refusing: Callable[[], tuple[str, str] | None] = _serving
        """Returns (error, reason) while every call is refused; None while calls are served."""

    @property
    def is_multi(self) -> bool:
        return len(self.databases) > 1

    def observe(self, completed: Completed) -> None:
        """Passes a finished call to each observer."""
        for observer in self.observers:
            observer(completed)
