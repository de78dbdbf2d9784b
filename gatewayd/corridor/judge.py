"""Steps one and two of the corridor, and what masks make of what is allowed (decisions 3 and 10).

The pipeline asks here before it runs a statement, dry-run instead of running it, so both get the same decision, also while the
catalog is not read yet."""

from collections.abc import Callable, Hashable
from functools import partial
from time import perf_counter
from typing import Final, Literal, TypeVar

import trio

from gatewayd import log
from gatewayd.corridor.gateway import Database, Masking
from gatewayd.corridor.known_statements import Known
from gatewayd.fairness import large_texts
from gatewayd.masking.plan import UNMASKED, Plan, Withheld
from gatewayd.policy.decide.decision import decide, decide_unknown, unknown_names
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied
from gatewayd.policy.decide.unknown_names import Unknown
from gatewayd.shields.whole_plan import plan
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement

T = TypeVar("T")

MASKING: Final = "column_masking"


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
        self.unknown: Unknown | None = None
        """What does not exist, where that is all that is wrong with what was decided last: it may be parsed, and must not run."""
        self.refused: Denied | None = None
        """What it would be told if it did exist."""
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
                known = known_statements.add(sql, await large_texts.in_thread(partial(analyze, sql), self.caller))
            else:
                known = known_statements.add(sql, analyze(sql))
            self.parse_s = perf_counter() - began
        return known

    async def decide(self, known: Known) -> Decision:
        """The decision; it is remembered while policy and catalog stay the same. Any exception inside it denies (decision 3)."""
        self.unknown = self.refused = None
        decision = known.decision(self.enforced.revision, self.catalog.revision)
        if decision is not None:
            return decision
        try:
            statement = known.statement
            policy, unknown = self.enforced.policy, None
            if isinstance(statement, Statement):
                if not self.catalog.is_read or await self._unknown(statement) is not None:
                    await self._wait_for_catalog()
                    unknown = await self._unknown(statement)
                decision = await self._asked(statement, partial(decide, statement, policy, self.catalog))
                if unknown is not None and isinstance(decision, Denied):
                    ask = partial(decide_unknown, statement, unknown, policy, self.catalog)
                    parsed = await self._asked(statement, ask)
                    if parsed is not None:
                        self.unknown, self.refused = unknown, decision
                        return parsed
            else:
                decision = decide(statement, policy, self.catalog)
        except Exception as bug:
            log.error(log.DECISION_FAILED, query_id=self._query_id, **log.places(bug))
            return Denied("internal_error", "the gateway failed to decide this statement, so it did not run")
        if unknown is None:  # otherwise the same text must ask again: what it names may have been created meanwhile
            known.keep(decision, self.enforced.revision, self.catalog.revision)
        return decision

    async def plan(self, known: Known, allowed: Allowed) -> Plan:
        """What runs in place of the statement; remembered like the decision. After any exception inside nothing runs."""
        if self.unknown is not None or not (allowed.needs_shield or self.enforced.policy.column_masks):
            return UNMASKED
        revisions = self.enforced.revision, self.catalog.revision
        made = known.plan(*revisions)
        if made is not None:
            return made
        began = perf_counter()
        policy, masking = self.enforced.policy, self._masking
        rewriting = masking.source_rewrite if policy.mask_source_rewrite is None else policy.mask_source_rewrite
        salt = masking.salt.reveal().encode() if masking.salt is not None else None
        ask = partial(plan, allowed, policy, self.catalog, salt=salt, rewriting=rewriting)
        try:
            made = await self._asked(allowed.statement, ask)
        except Exception as bug:
            log.error(log.DECISION_FAILED, query_id=self._query_id, **log.places(bug))
            return Withheld(
                "rewrite", "the gateway failed to mask this statement, so it did not run", "masking failed; see the log"
            )
        known.keep_plan(made, *revisions)
        self.mask_s = perf_counter() - began
        return made

    async def _unknown(self, statement: Statement) -> Unknown | None:
        return await self._asked(statement, partial(unknown_names, statement, self.catalog))

    async def _asked(self, statement: Statement, ask: Callable[[], T]) -> T:
        """What `ask` returns; of a large text in the thread for these, and not cancelled there."""
        if large_texts.is_large(statement.sql):
            return await large_texts.in_thread(ask, self.caller, shielded=True)
        return ask()

    async def _wait_for_catalog(self) -> None:
        if not self._waited:
            self._waited = True
            with trio.CancelScope(shield=True):
                await self.database.refresher.unknown()
            self.catalog = self.database.catalog


def refused_by_masks(allowed: Allowed, reason: str, rule: Literal["column_masking", "table_access"] = MASKING) -> Denied:
    """What a statement that the policy allows is told where its masks keep it from running, or its result from being shown."""
    return Denied(rule, reason, allowed.statement.kind, allowed.tables, rule)
