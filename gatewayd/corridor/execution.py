"""Step four of the corridor: an audited statement runs on its database.

Where the catalog turns out to be out of date, the statement is decided again with a newer one. It runs only if the decision is
the one that was audited.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from gatewayd.approvals.messages import Approved
from gatewayd.corridor import approval_answers, preview
from gatewayd.corridor.deciding import Deciding
from gatewayd.corridor.gateway import ToolName
from gatewayd.corridor.known_statements import Known
from gatewayd.fairness import large_texts
from gatewayd.judge import Verdict
from gatewayd.masking.plan import Rewritten, Withheld
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.outcomes import Allowed, Denied, Permit
from gatewayd.policy.decide.reasons import shown
from gatewayd.policy.decide.unknown_names import UNKNOWN_NAME, nearest
from gatewayd.postgres.execute.evidence import evidence
from gatewayd.postgres.execute.result import CatalogChanged, ExecutionFailed, Result
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.execute.run_parse import parse

NO_PRIVILEGE: Final = "42501"  # insufficient_privilege
_NO_SUCH: Final = ("42P01", "42883")  # undefined_table, undefined_function


class ApprovedWrite(msgspec.Struct, frozen=True):
    """A write that a person approved, and its effect (`approval_answers.effect_of`) at the time of the approval."""

    answer: Approved
    effect: str


class Execution:
    """The execution of one permitted statement. `deciding` and `verdict` are what it last ran by.

    `decide` makes the verdict of a newer catalog, containment included.
    """

    def __init__(
        self,
        permit: Permit,
        tool: ToolName,
        deciding: Deciding,
        verdict: Verdict,
        decide: Callable[[Deciding, Known], Awaitable[Verdict]],
        approved: ApprovedWrite | None,
    ) -> None:
        self.deciding = deciding
        self.verdict = verdict
        self._permit = permit
        self._tool = tool
        self._decide = decide
        self._approved = approved
        self._database = deciding.database

    async def run(self) -> Result:
        """Runs the statement; once more if the catalog changed meanwhile and the statement is decided as before.

        Raises ExecutionFailed. Cancelled: the statement may or may not have run.
        """
        try:
            return await self._run_once()
        except CatalogChanged:
            if not await self._is_decided_as_before(self._database.refresher.changed):
                raise
        return await self._run_once()

    async def _run_once(self) -> Result:
        deciding, statement = self.deciding, self._permit.allowed.statement
        if self.verdict.refused is not None:
            return await self._run_unknown_name(self.verdict.refused)
        policy, catalog = deciding.policy_of(self.verdict), deciding.catalog
        limits = preview.limits(policy.limits) if self._tool == "preview" else policy.limits
        collect = partial(evidence, statement, policy, catalog)
        is_large = large_texts.is_large(statement.sql)
        rests_on = await large_texts.in_thread(collect, deciding.caller) if is_large else collect()
        plan = self.verdict.plan
        return await execute(
            self._database.pool,
            self._permit,
            limits,
            catalog,
            plan if isinstance(plan, Rewritten | PostExec) else None,
            deciding.caller,
            rows_at_most=self._approved.answer.rows_at_most if self._approved is not None else None,
            evidence=rests_on,
        )

    async def _run_unknown_name(self, refused: Denied) -> Result:
        """A statement with a name that the catalog does not have. PostgreSQL only parses it and so words the error; a similar
        name is suggested. If the name exists after all, the statement is decided with a newer catalog."""
        deciding = self.deciding
        policy, catalog = deciding.enforced.policy, deciding.catalog
        try:
            await parse(self._database.pool, self._permit, policy.limits, deciding.caller)
        except ExecutionFailed as failure:
            unknown = self.verdict.unknown if failure.sqlstate in _NO_SUCH else None
            near = nearest(unknown, policy, catalog) if unknown is not None else None
            if near is not None:
                failure.hint = f"There is {shown(near)}."
            raise
        if await self._is_decided_as_before(self._database.refresher.unknown):
            return await self._run_once()
        raise ExecutionFailed(NO_PRIVILEGE, refused.reason)

    async def _is_decided_as_before(self, refresh: Callable[[], Awaitable[None]]) -> bool:
        """Whether a newer catalog allows what was permitted, so that the DECIDED row stays true. Its verdict then counts."""
        await refresh()
        allowed = self._permit.allowed
        again = self.deciding.renewed()
        verdict = await self._decide(again, await again.known(allowed.statement.sql))
        decision = verdict.allowed if self._approved is not None else verdict.decision
        if not isinstance(decision, Allowed) or verdict.refused is not None or isinstance(verdict.plan, Withheld):
            return False
        rule = decision.matched_rule if allowed.matched_rule == UNKNOWN_NAME else allowed.matched_rule
        if decision != msgspec.structs.replace(allowed, matched_rule=rule):
            return False
        if self._approved is not None and self._approved.effect != approval_answers.effect_of(decision.statement, again.catalog):
            return False
        self.deciding, self.verdict = again, verdict
        return True
