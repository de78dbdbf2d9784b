"""Steps one and two of the corridor (decisions 3 and 10): the judge's verdict, masks included, asked for and remembered.

The pipeline asks here before it runs a statement, dry-run instead of running it, so both get the same verdict, also while the
catalog is not read yet."""

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
from gatewayd.sql.facts.analyze import analyze


class Deciding:
    """Decides by the policy and the catalog that were in force when it was made (docs/architecture.md).

    The catalog is waited for once at most, however many texts are decided; `catalog` is the new one from then on.
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

    async def known(self, sql: str) -> Known:
        """The text's facts; they are remembered. A large text is parsed in a thread, so that it does not delay other calls."""
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
        """It is remembered while policy and catalog stay the same. Any exception inside it denies (decision 3).

        `tainted`: as for a grant that has read a source of foreign text. A statement that reads one itself is decided so anyway.
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
        if verdict.unknown is None:  # otherwise the same text must ask again: what it names may have been created meanwhile
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
