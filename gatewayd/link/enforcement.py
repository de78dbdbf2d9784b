"""From the bytes of a bundle to a policy in force: every check in its order, the ratchet before all else (docs/link-protocol.md).

What fails before a bundle is authentic changes nothing. What fails after it halts: an authentic bundle is enforced whole or not
at all. The swap itself is the reload's.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.service import AuditUnavailable
from gatewayd.catalog import Catalog
from gatewayd.config.settings import Settings
from gatewayd.corridor.gateway import Database, Gateway
from gatewayd.corridor.reload import Reloader
from gatewayd.link import bundle_tests
from gatewayd.link.formats import checks
from gatewayd.link.formats.agent_tokens import AgentTable, problems
from gatewayd.link.formats.bundle import Bundle, Seen, address_variable
from gatewayd.link.formats.documents import BundleCheck, DocumentRefused, digest
from gatewayd.link.formats.states import Halted, state_under
from gatewayd.link.formats.status import NotEnforced
from gatewayd.link.formats.trust import Trust
from gatewayd.link.kept import BUNDLE, RATCHET, Kept, KeptBundle
from gatewayd.link.standing import Standing
from gatewayd.policy.file.load import PolicyErrors, load_policies
from gatewayd.policy.file.model import Policies, Policy
from gatewayd.policy.tools.expect import Case, load_cases

_REASON_CHARACTERS: Final = 1000

Tests = Mapping[str, tuple[Case, ...]]
"""The cases of each database."""


class Enforcement:
    """One bundle at a time. `bundle` is the one in force, None before the first."""

    def __init__(
        self, settings: Settings, gateway: Gateway, reloader: Reloader, kept: Kept, standing: Standing, seen: Seen
    ) -> None:
        self.bundle: Bundle | None = None
        self.sha256 = ""
        self.agents: AgentTable | None = None
        self.seen = seen
        self.newest: bytes | None = None
        """The envelope of the newest authentic bundle."""
        self.rejected: dict[str, int] = {}
        self._settings = settings
        self._gateway = gateway
        self._reloader = reloader
        self._kept = kept
        self._standing = standing
        self._authentic: checks.Authentic | None = None
        self._tests = trio.CancelScope()
        self._changes = trio.Lock()
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Holds the tests of bundles that wait for a catalog."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    async def resume(self, trust: Trust) -> None:
        """Enforces what the cache holds, through all the checks; a damaged cache is no cache."""
        cached = self._kept.bundle()
        if cached is None:
            return
        try:
            found = checks.authentic(cached.envelope.encode(), trust, self.seen, cached.accepted_ms)
        except (DocumentRefused, UnicodeEncodeError) as refused:
            self._reject(refused if isinstance(refused, DocumentRefused) else DocumentRefused("envelope", "it is damaged"), "")
            return
        async with self._changes:
            await self._enforce(found, cached.envelope.encode())

    async def take(self, data: bytes, trust: Trust, now_ms: int) -> bool:
        """A bundle that arrived: False when it can only be tried later. What becomes of it, `standing` tells."""
        try:
            found = await trio.to_thread.run_sync(checks.authentic, data, trust, self.seen, now_ms)
        except DocumentRefused as refused:
            name = digest(data)
            again = self._standing.problem is not None and self._standing.problem.envelope == name
            self._reject(refused, name)
            return not again
        async with self._changes:
            try:
                await trio.to_thread.run_sync(self._keep, found.seen, KeptBundle(data.decode(), now_ms))
            except OSError as failure:
                error = f"the state folder cannot be written ({(failure.strerror or 'input/output error').lower()})"
                log.error(log.POLICY_RELOAD_FAILED, source="bundle", error=error)
                self._standing.problem = NotEnforced("enforceable", error)
                return False
            await self._enforce(found, data)
        return True

    async def again(self) -> None:
        """Tries the newest bundle once more where it is not in force: what kept it from that may have been mended here."""
        found, newest = self._authentic, self.newest
        base = self._standing.base
        is_due = (
            self.bundle is None
            or self.bundle.version != self.seen.version
            or (isinstance(base, Halted) and base.cause == "bundle")
        )
        if found is not None and newest is not None and is_due:
            async with self._changes:
                await self._enforce(found, newest)

    async def accepted(self, version: int) -> None:
        """Moves the ratchet to below `version`, as somebody on this machine asked, once the audit says so."""
        async with self._changes:
            await self._reloader.note("accept_version", version)
            seen = msgspec.structs.replace(self.seen, version=max(0, version - 1), sha256="")
            await trio.to_thread.run_sync(self._kept.keep, RATCHET, seen)
            log.warning(log.VERSION_ACCEPTED, version=version, highest_seen=self.seen.version)
            self.seen = seen
            self._authentic = self.newest = None
            self._standing.problem = None  # what was refused as too old may be sent again

    def _keep(self, seen: Seen, bundle: KeptBundle) -> None:
        """The ratchet is on the disk before anything else happens to the bundle, its caching among it."""
        if seen != self.seen:
            self._kept.keep(RATCHET, seen)
            self.seen = seen
        self._kept.keep(BUNDLE, bundle)

    def _reject(self, refused: DocumentRefused, envelope: str) -> None:
        self.rejected[refused.check] = self.rejected.get(refused.check, 0) + 1
        log.error(log.BUNDLE_REJECTED, check=refused.check, reason=refused.reason)
        self._standing.problem = NotEnforced(refused.check, refused.reason, None, envelope)

    async def _enforce(self, found: checks.Authentic, data: bytes) -> None:
        self._authentic, self.newest = found, data
        version = found.head.version
        try:
            bundle, policies, cases = await trio.to_thread.run_sync(self._readied, found)
        except DocumentRefused as refused:
            self._halt(refused.check, refused.reason, version)
            return
        failing = await self._test(policies, cases)
        if failing is not None:
            self._halt("enforceable", failing, version, cause="tests")
            return
        self._gateway.tenant_id = bundle.tenant_id

        def swapped() -> None:
            self._tests.cancel()
            self._withhold(cases)
            self.bundle, self.sha256 = bundle, found.seen.sha256
            self.agents = AgentTable(bundle.agents) if bundle.agents is not None else None
            self._standing.took(state_under(bundle), bundle.on_stale)

        try:
            await self._reloader.enforce(policies, version, swapped)
        except PolicyErrors as errors:
            self._halt("enforceable", str(errors), version)
            return
        except AuditUnavailable as unavailable:  # nothing runs meanwhile in any case; `again` tries once more
            self._standing.problem = NotEnforced("enforceable", f"audit file cannot be written: {unavailable.reason}", version)
            return
        self._test_later(cases, version)

    def _halt(self, check: BundleCheck, reason: str, version: int, *, cause: str = "bundle") -> None:
        reason = reason[:_REASON_CHARACTERS]
        problem = NotEnforced(check, reason, version)
        self._standing.cannot_enforce(reason, "tests" if cause == "tests" else "bundle", problem)

    # -- what is made of a bundle, in a thread

    def _readied(self, found: checks.Authentic) -> tuple[Bundle, Policies, Tests]:
        """The bundle, its policies with this machine's addresses, its tests. Raises DocumentRefused."""
        bundle = checks.enforceable(found)
        settings = self._settings
        try:
            policies = load_policies(
                bundle.policy,
                settings.variables,
                approval_gate=True,
                mask_salt=settings.mask_salt is not None,
                addresses=self._address,
            )
            cases = load_cases(bundle.tests.encode()) if bundle.tests is not None else ()
        except PolicyErrors as errors:
            raise DocumentRefused("enforceable", str(errors)) from None
        for problem in problems(bundle.agents) if bundle.agents is not None else ():
            raise DocumentRefused("enforceable", problem)
        names = [named.name for named in policies.databases or ()]
        return bundle, policies, {name: bundle_tests.of(cases, name, len(names)) for name in names}

    def _address(self, name: str, databases: int) -> str:
        """The address of a database that the bundle names. Raises ValueError."""
        variable = address_variable(name)
        value = self._settings.variables.get(variable)
        if value:
            return value
        if databases == 1 and self._settings.database_url is not None:
            return self._settings.database_url.reveal()
        raise ValueError(f"found no address of it; expected {variable} to be set")

    # -- the bundle's own tests

    async def _test(self, policies: Policies, cases: Tests) -> str | None:
        """The first failing test of the databases whose catalogs are read, in words."""
        for named in policies.databases or ():
            database = self._gateway.databases.get(named.name)
            if database is None or not database.catalog.is_read or not cases[named.name]:
                continue
            failing = await self._failing(cases[named.name], named.name, named.policy, database.catalog)
            if failing is not None:
                return failing
        return None

    async def _failing(self, cases: tuple[Case, ...], name: str, policy: Policy, catalog: Catalog) -> str | None:
        rewriting = self._gateway.masking.source_rewrite
        return await trio.to_thread.run_sync(partial(bundle_tests.failing, cases, name, policy, catalog, rewriting=rewriting))

    def _withhold(self, cases: Tests) -> None:
        """Until its catalog is read, a database with tests of its own runs nothing."""
        for name, database in self._gateway.databases.items():
            waits = bool(cases[name]) and not database.catalog.is_read
            database.withheld = bundle_tests.WAITING if waits else None

    def _test_later(self, cases: Tests, version: int) -> None:
        self._tests = trio.CancelScope()
        assert self._nursery is not None, "run() is the first"
        for database in self._gateway.databases.values():
            if database.withheld is not None:
                self._nursery.start_soon(self._test_when_read, database, cases[database.name], version, self._tests)

    async def _test_when_read(self, database: Database, cases: tuple[Case, ...], version: int, scope: trio.CancelScope) -> None:
        with scope:
            await database.refresher.read_once()
            policy, catalog = database.enforced.policy, database.catalog
            failing = await self._failing(cases, database.name, policy, catalog)
            if failing is None:
                database.withheld = None
            else:
                self._halt("enforceable", failing, version, cause="tests")
