"""Gateway: what a call needs: the databases with their policies, the audit, and the observers.

Owns references only. `daemon.py` opens and closes what stands behind them; `reload.py` swaps policies; `pipeline.py` reads.
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
"""`preview` is no tool: it stands for the gateway's own statements that count what a held write would touch."""


class Enforced(msgspec.Struct, frozen=True, gc=False):
    """The policy in force for one database. `revision` rises with every swap, so what was decided under another is not reused."""

    policy: Policy
    revision: int
    since_s: float
    """When it came into force, in seconds since the epoch."""
    under: Under
    """Which policy it is, for the audit."""


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
        """Why nothing runs here although a policy is in force: its own tests have not passed yet."""
        self._users = 0
        self._unused = trio.Event()

    @property
    def catalog(self) -> Catalog:
        return self.refresher.catalog

    def enforce(self, policy: Policy, bundle: int | None = None) -> None:
        """Every call that starts from now on is held to `policy`, which came in the bundle of that version."""
        self.enforced = Enforced(policy, self.enforced.revision + 1, time.time(), Under(policy_sha256(policy), bundle))
        self.pool.repin(policy.limits)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within the block a reload may remove this database, but its pool and catalog stay open."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def unused(self) -> None:
        """Returns when no call uses it; for a database that new calls cannot find any more."""
        while self._users:
            self._unused = trio.Event()
            await self._unused.wait()


class Masking(msgspec.Struct, frozen=True):
    """The settings of the process that masks need: GATEWAY_MASK_SALT and GATEWAY_MASK_SOURCE_REWRITE."""

    salt: Secret | None = None
    source_rewrite: bool = False


NO_MASKING: Final = Masking()


def _serving() -> None:
    return None


class Gateway:
    """`databases` is replaced as a whole by a reload, never changed in place. Observers must not block nor raise."""

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
        """Of every audit row from now on."""
        self.refusing: Callable[[], tuple[str, str] | None] = _serving
        """The error and reason that each call is answered with now; None while calls are served."""

    @property
    def is_multi(self) -> bool:
        return len(self.databases) > 1

    def observe(self, completed: Completed) -> None:
        for observer in self.observers:
            observer(completed)
