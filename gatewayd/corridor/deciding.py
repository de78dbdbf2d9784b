"""Steps one and two of the corridor (decisions 3 and 10): the judge's verdict, masks included, and the cache of verdicts.

The pipeline and the dry run both ask here, so they get the same verdict, even while the catalog has not been read yet.
"""

from collections.abc import Hashable
from functools import partial
from time import perf_counter

import trio

from gatewayd import log
from gatewayd.corridor.gateway import Database, Masking
from gatewayd.corridor.known_statements import Known
from gatewayd.fairness import large_texts
from gatewayd.judge import Verdict, is_light, judge
from gatewayd.policy.decide.outcomes import Denied
from gatewayd.policy.file.model import Policy
from gatewayd.sql.facts.analyze import analyze


class Deciding:
    """Decides by the policy and the catalog that were in force when it was created (docs/architecture.md).

    It waits for a newer catalog at most once, however many texts it decides; from then on `catalog` is the new one.
    """

    def __init__(self, database: Database, masking: Masking, query_id: str, caller: Hashable = None) -> None:
        self.database = database
        self.caller = caller
        self.enforced = database.enforced
        self.catalog = database.catalog
        self.parse_s = self.mask_s = 0.0
        self._masking = masking
        self._query_id = query_id
        self._waited = False

    def renewed(self, query_id: str | None = None) -> "Deciding":
        """A new one for the policy and the catalog in force now, and for another query if one is named."""
        return Deciding(self.database, self._masking, query_id or self._query_id, self.caller)

    def policy_of(self, verdict: Verdict) -> Policy:
        """The policy by which `verdict` was made: containment's stricter one, or the one in force."""
        return verdict.contained_by if verdict.contained_by is not None else self.enforced.policy

    async def known(self, sql: str) -> Known:
        """The text's facts, from the cache if they are there. A large text is parsed in a thread and so delays no other call."""
        known_statements = self.database.known_statements
        known = known_statements.get(sql)
        if known is None:
            began = perf_counter()
            if large_texts.is_large(sql):
                statement = await large_texts.in_thread(partial(analyze, sql), self.caller)
            else:
                statement = analyze(sql)
            known = known_statements.add(sql, statement)
            self.parse_s = perf_counter() - began
        return known

    async def verdict(self, known: Known, *, tainted: bool = False) -> Verdict:
        """The verdict, from the cache while policy and catalog stay the same. An exception while deciding denies (decision 3).

        `tainted` decides as for a grant that has read untrusted text (docs/policy.md); a statement that reads such a source
        itself is always decided that way.
        """
        known = known.under_taint() if tainted else known
        revision = self.enforced.revision
        remembered = known.verdict(revision, self.catalog.revision)
        if remembered is not None:
            return remembered
        try:
            verdict = await self._judged(known, tainted)
            if verdict.unknown is not None or not self.catalog.is_read:
                catalog = self.catalog
                await self._wait_for_catalog()
                if self.catalog is not catalog:
                    verdict = await self._judged(known, tainted)
        except Exception as bug:
            log.error(log.DECISION_FAILED, query_id=self._query_id, **log.places(bug))
            return Verdict(
                known.statement, Denied("internal_error", "the gateway failed to decide this statement, so it did not run")
            )
        if verdict.unknown is None:  # an unknown name may exist by the next call, so that verdict is not cached
            known.keep(verdict, revision, self.catalog.revision)
        return verdict

    async def _judged(self, known: Known, tainted: bool) -> Verdict:
        masking = self._masking
        salt = masking.salt.reveal().encode() if masking.salt is not None else None
        policy, rewriting = self.enforced.policy, masking.source_rewrite
        ask = partial(
            judge, known.statement, policy, self.catalog, salt=salt, rewriting=rewriting, tainted=tainted, clock=perf_counter
        )
        if is_light(known.statement, policy, self.catalog):
            verdict = ask()
        else:
            verdict = await large_texts.in_thread(ask, self.caller, shielded=True)
        self.mask_s += verdict.mask_s
        return verdict

    async def _wait_for_catalog(self) -> None:
        if not self._waited:
            self._waited = True
            with trio.CancelScope(shield=True):
                await self.database.refresher.unknown()
            self.catalog = self.database.catalog
