"""One statement from arrival to answer, the five steps in their order (docs/architecture.md).

parse → decide → audit → execute → audit; the first two are in `deciding.py`, with what masks make of the statement. A write
that a person must approve waits before the third and is decided again (`hold.py`). Every tool that reaches a database comes
through `run()`. Which rows a cancelled call leaves is told in `audit/service.py`; an allowed one always ends with its closing
row, written in a short shield of its own.
"""

import os
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from time import perf_counter, time_ns
from typing import Final, Literal

import msgspec
import trio

from gatewayd import log
from gatewayd.approvals import messages, words
from gatewayd.approvals.messages import Approved, Outcome, Preview
from gatewayd.audit.events import Agent, Attempted, AuditId, Executed, Failed, Query, QueryId
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.service import AuditUnavailable
from gatewayd.corridor import approval_answers as answers
from gatewayd.corridor import preview
from gatewayd.corridor.answer import Answer, Answered, Broken, NotServed, OnHold, Refused, Unaudited, closing_row
from gatewayd.corridor.deciding import Deciding
from gatewayd.corridor.gateway import Completed, Database, Gateway, ToolName
from gatewayd.corridor.hold import NOBODY, Client, GateSilent, StillUndecided
from gatewayd.corridor.known_statements import Known
from gatewayd.fairness import large_texts
from gatewayd.judge import Verdict, refused_by_masks
from gatewayd.masking.plan import UNMASKED, Plan, Rewritten, Withheld
from gatewayd.masking.results.post_exec import PostExec
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied, Held, Permit
from gatewayd.policy.decide.reasons import shown
from gatewayd.policy.decide.unknown_names import UNKNOWN_NAME, nearest
from gatewayd.policy.file.model import Policy
from gatewayd.postgres.execute.error_words import told_less
from gatewayd.postgres.execute.evidence import evidence
from gatewayd.postgres.execute.failure import OUTCOME_UNKNOWN
from gatewayd.postgres.execute.result import UNMASKABLE, CatalogChanged, ExecutionFailed, Result
from gatewayd.postgres.execute.run import execute
from gatewayd.postgres.execute.run_parse import parse

CLOSING_ROW_S: Final = 30.0
"""How long a cancelled or finished call waits for its closing row before `audit write after execution failed`: a batch under way
and its own, with a checkpoint between, are up to five fsyncs, which on a bad day take 5 s each."""

_CANCELLED: Final = "57014"  # query_canceled
_CONNECTION_LOST: Final = ("08", "57")  # classes: connection exception, operator intervention
_MASKING: Final = "column_masking"
_INTERNAL: Final = "XX000"  # internal_error
_NO_SUCH: Final = ("42P01", "42883")  # undefined_table, undefined_function
_NO_PRIVILEGE: Final = "42501"  # insufficient_privilege


async def run(
    gateway: Gateway,
    database: Database,
    tool: ToolName,
    sql: str,
    intent: str | None,
    agent: Agent,
    caller: Hashable = None,
    client: Client = NOBODY,
) -> Answer:
    """Take one statement through the corridor. Raises nothing but Cancelled, and bugs (after their closing row).

    `caller` is with whom others share sessions of the pool and the thread for large texts in turns; None takes what is free.
    `client` is who waits while a write is held.
    """
    if database.withheld is not None:
        return NotServed(database.withheld)
    with database.in_use():
        query = Query(query_id=_new_id(), database=database.name, agent=agent, intent=intent, tenant_id=gateway.tenant_id)
        deciding = Deciding(database, gateway.masking, query.query_id, caller)
        return await _Call(gateway, tool, sql, query, deciding, client).walk()


def _new_id() -> QueryId:
    return QueryId(new_ulid(_now_ms(), os.urandom))


def _now_ms() -> int:
    return time_ns() // 1_000_000


class _Call:
    """One walk through the corridor. Policy and catalog are taken by `deciding`: once, and once more after a hold."""

    def __init__(
        self, gateway: Gateway, tool: ToolName, sql: str, query: Query, deciding: Deciding, client: Client = NOBODY
    ) -> None:
        self.began = perf_counter()
        self.gateway = gateway
        self.database = deciding.database
        self.tool: ToolName = tool
        self.sql = sql
        self.query = query
        self.deciding = deciding
        self.client = client
        self.verdict: Verdict | None = None
        self.approved: Approved | None = None
        self.effect = ""  # what was approved
        self.outcome = Outcome(query.query_id, "failed")
        self.decide_s = self.audit_s = self.held_s = 0.0

    @property
    def _plan(self) -> Plan:
        return self.verdict.plan if self.verdict is not None else UNMASKED

    @property
    def _policy(self) -> Policy:
        """What the verdict was made by."""
        contained = self.verdict.contained_by if self.verdict is not None else None
        return contained if contained is not None else self.deciding.enforced.policy

    async def walk(self) -> Answer:
        try:
            return await self._walk()
        finally:
            if self.approved is not None and self.gateway.approvals is not None:
                self.gateway.approvals.reporter.report(self.outcome)

    async def _walk(self) -> Answer:
        # Deciding is short and bounded. Where it waits it is shielded (most never do, and a scope is not free), so it leaves no
        # ATTEMPTED without its DECIDED.
        deciding = self.deciding
        known = await deciding.known(self.sql)
        try:
            await self.gateway.audit.attempted(self.query, Attempted(self.sql, known.statement.fingerprint))
            began = perf_counter()
            decision = await self._decide(known)
            decided = perf_counter()
            self.decide_s = decided - began - deciding.mask_s
            if isinstance(decision, Held):
                held = await self._hold(decision)
                if isinstance(held, OnHold):
                    self._observe(None, "HELD")
                    return held
                decision = held
                decided = perf_counter()
            if isinstance(decision, Allowed) and self.tool != "preview" and not isinstance(self._plan, Withheld):
                decision = await self.gateway.containing.mark(decision, self.query, _now_ms()) or decision
            match decision:
                case Denied():
                    try:
                        audit_id = await self.gateway.audit.decided(self.query, decision, self.deciding.enforced.under)
                    except trio.Cancelled:  # its row is on its way
                        self._observe(None, "DENY", denied=decision)
                        raise
                    self.audit_s = perf_counter() - decided
                    self._observe(audit_id, "DENY", denied=decision)
                    return Refused(decision, audit_id)
            permit = await self._permit(decision)
            self.audit_s = perf_counter() - decided
        except AuditUnavailable as failure:
            self._observe(None, "UNAUDITED")
            return Unaudited(failure.reason)
        return await self._execute(permit)

    async def _decide(self, known: Known) -> Decision:
        """The decision. What masks keep from running is not held: nobody is asked in vain."""
        self.verdict = verdict = await self._verdict(self.deciding, known)
        if isinstance(verdict.plan, Withheld) and verdict.allowed is not None:
            return verdict.allowed
        return verdict.decision

    async def _verdict(self, deciding: Deciding, known: Known) -> Verdict:
        """As strict as containment makes it. What a preview reads goes to a reviewer, and steers no agent."""
        verdict = await deciding.verdict(known)
        if self.tool == "preview":
            return verdict
        return await self.gateway.containing.held_to(deciding, known, verdict, self.query)

    async def _hold(self, held: Held) -> Allowed | Denied | OnHold:
        """Asks for the approval of a write, and decides again once it is there. Cancelled: the request stays with the gate."""
        approvals, policy = self.gateway.approvals, self.deciding.enforced.policy
        if approvals is None or self.tool != "query":
            return answers.NO_GATE
        count = partial(self._preview, held) if policy.approvals.preview else None
        ask = answers.asked(self.query, held, policy, self.deciding.catalog)
        began = perf_counter()
        try:
            await self.gateway.audit.recorded(self.query)
            found = await approvals.decided(ask, policy.approvals.hold_s, self.client, count)
        except trio.Cancelled:
            self.gateway.audit.undecided(self.query)
            self._observe(None, "HELD")
            raise
        finally:
            self.held_s = perf_counter() - began
        match found:
            case messages.Approved():
                self.approved, self.effect = found, ask.effect
                return await self._decide_again(held)
            case messages.GateDenied(by=by, note=note):
                return answers.refused(held, "approval_denied", words.denied_reason(by, note))
            case messages.Expired():
                return answers.refused(held, "approval_expired", words.EXPIRED_REASON)
            case StillUndecided() | GateSilent():
                self.gateway.audit.undecided(self.query)
                hold_s = policy.approvals.hold_s
                return answers.undecided(found, self.query, self.sql, hold_s, is_multi=self.gateway.is_multi)

    async def _decide_again(self, held: Held) -> Allowed | Denied:
        """By the policy and the catalog that are in force now: they may have changed while a person thought."""
        if self.gateway.databases.get(self.query.database) is not self.database:
            return Denied("table_access", answers.GONE, held.allowed.statement.kind, held.allowed.tables, "table_access")
        self.deciding = Deciding(self.database, self.gateway.masking, self.query.query_id, self.deciding.caller)
        decision = await self._decide(await self.deciding.known(self.sql))
        allowed = decision.allowed if isinstance(decision, Held) else decision
        if isinstance(allowed, Allowed) and answers.effect_of(allowed.statement, self.deciding.catalog) != self.effect:
            return answers.refused(held, "approval_expired", answers.CHANGED)
        return allowed

    async def _preview(self, held: Held) -> Preview:
        """Counts what the write would touch, as a reviewer is to see it."""
        query, deciding = self.query, self.deciding

        async def ask(sql: str) -> Answer:
            own = msgspec.structs.replace(query, query_id=_new_id(), preview_of=query.query_id)
            by = Deciding(self.database, self.gateway.masking, own.query_id, deciding.caller)
            return await _Call(self.gateway, "preview", sql, own, by).walk()

        async with self.database.counting:
            return await preview.preview(held.allowed.statement, deciding.catalog, ask)

    def _approved_by(self) -> str | None:
        return None if self.approved is None else words.legible(self.approved.by or words.SOMEBODY, words.BY_CHARACTERS)

    async def _permit(self, allowed: Allowed) -> Permit:
        """Step three. DECIDED is on its way as soon as this waits: cancelled then, the call owes its closing row."""
        try:
            return await self.gateway.audit.decided(
                self.query, allowed, self.deciding.enforced.under, approved_by=self._approved_by()
            )
        except trio.Cancelled:
            waited_ms = round((perf_counter() - self.began) * 1000)
            await self._unclosed(Failed(0, waited_ms, _CANCELLED, "the call was cancelled"))
            self._observe(None, "ALLOW", error_class=_CANCELLED)
            raise

    async def _withhold(self, permit: Permit, withheld: Withheld) -> Answer:
        """Step five of a statement that masks keep from running."""
        waited_ms = round((perf_counter() - self.began) * 1000)
        by_masks = withheld.rule == _MASKING
        error_class = _MASKING if by_masks else _NO_PRIVILEGE
        stage = withheld.stage if by_masks else None
        unwritten = await self._unclosed(Failed(0, waited_ms, error_class, withheld.reason_audit, stage))
        if unwritten:
            log.error(log.AUDIT_WRITE_AFTER_EXECUTION_FAILED, query_id=permit.query_id, error=unwritten)
        self._observe(permit.audit_id, "ALLOW", permit=permit, error_class=error_class)
        return Refused(refused_by_masks(permit.allowed, withheld.reason_agent, withheld.rule), AuditId(permit.audit_id))

    async def _execute(self, permit: Permit) -> Answer:
        """Steps four and five."""
        if isinstance(self._plan, Withheld):
            return await self._withhold(permit, self._plan)
        result: Result | None = None
        failure: ExecutionFailed | None = None
        began = perf_counter()
        try:
            result = await self._run(permit)
        except ExecutionFailed as failed:
            failure = told_less(failed) if failed.is_inner and self._policy.hides_something else failed
            if failed.sqlstate[:2] in _CONNECTION_LOST:
                self.database.refresher.suspect()
        except BaseException as stopped:
            cancelled = isinstance(stopped, trio.Cancelled)
            sqlstate, message = (_CANCELLED, "the call was cancelled") if cancelled else (_INTERNAL, "the gateway failed")
            await self._close(permit, began, None, ExecutionFailed(sqlstate, message))
            if not cancelled:
                log.error(log.UNEXPECTED_FAILURE, query_id=permit.query_id, **log.places(stopped))
            raise
        await self._close(permit, began, result, failure)
        audit_id = AuditId(permit.audit_id)
        withheld = failure.message if failure is not None and failure.sqlstate == UNMASKABLE else result and result.withheld
        if withheld:
            return Refused(refused_by_masks(permit.allowed, withheld), audit_id)
        if failure is not None:
            return Broken(failure.sqlstate, failure.message, failure.hint, failure.position, audit_id)
        assert result is not None
        return Answered(result, audit_id)

    async def _run(self, permit: Permit) -> Result:
        """Once more where the database was changed under the statement, if it is decided again as it was (and so was audited)."""
        try:
            return await self._once(permit)
        except CatalogChanged:
            if not await self._is_decided_again(permit, self.database.refresher.changed):
                raise
        return await self._once(permit)

    async def _parsed(self, permit: Permit, verdict: Verdict, refused: Denied) -> Result:
        """A statement that names what does not exist: PostgreSQL's words about it, and the name that may be meant. Where it does
        exist after all, it is decided with a newer catalog."""
        deciding = self.deciding
        policy, catalog = deciding.enforced.policy, deciding.catalog
        try:
            await parse(self.database.pool, permit, policy.limits, deciding.caller)
        except ExecutionFailed as failure:
            unknown = verdict.unknown if failure.sqlstate in _NO_SUCH else None
            near = nearest(unknown, policy, catalog) if unknown is not None else None
            if near is not None:
                failure.hint = f"There is {shown(near)}."
            raise
        if await self._is_decided_again(permit, self.database.refresher.unknown):
            return await self._once(permit)
        raise ExecutionFailed(_NO_PRIVILEGE, refused.reason)

    async def _once(self, permit: Permit) -> Result:
        deciding, statement = self.deciding, permit.allowed.statement
        if self.verdict is not None and self.verdict.refused is not None:
            return await self._parsed(permit, self.verdict, self.verdict.refused)
        policy, catalog = self._policy, deciding.catalog
        limits = preview.limits(policy.limits) if self.tool == "preview" else policy.limits
        ask = partial(evidence, statement, policy, catalog)
        rests_on = await large_texts.in_thread(ask, deciding.caller) if large_texts.is_large(statement.sql) else ask()
        masking = self._plan if isinstance(self._plan, Rewritten | PostExec) else None
        return await execute(
            self.database.pool,
            permit,
            limits,
            catalog,
            masking,
            deciding.caller,
            rows_at_most=self.approved.rows_at_most if self.approved is not None else None,
            evidence=rests_on,
        )

    async def _is_decided_again(self, permit: Permit, refresh: Callable[[], Awaitable[None]]) -> bool:
        """Whether a newer catalog allows what was permitted, so that its DECIDED row stays true; then that one counts."""
        await refresh()
        again = Deciding(self.database, self.gateway.masking, permit.query_id, self.deciding.caller)
        known = await again.known(self.sql)
        verdict = await self._verdict(again, known)
        decision = verdict.allowed if self.approved is not None else verdict.decision
        if not isinstance(decision, Allowed) or verdict.refused is not None:
            return False
        rule = decision.matched_rule if permit.allowed.matched_rule == UNKNOWN_NAME else permit.allowed.matched_rule
        if decision != msgspec.structs.replace(permit.allowed, matched_rule=rule) or isinstance(verdict.plan, Withheld):
            return False
        if self.approved is not None and answers.effect_of(decision.statement, again.catalog) != self.effect:
            return False
        self.deciding, self.verdict = again, verdict
        return True

    async def _close(self, permit: Permit, began: float, result: Result | None, failure: ExecutionFailed | None) -> None:
        """The closing row. When it cannot be written the answer is given all the same: the statement did run (decision 4)."""
        statement = permit.allowed.statement
        now = perf_counter()
        exec_ms = round((now - began) * 1000)
        overhead_ms = round((began - self.began - self.held_s) * 1000)
        self.outcome = _run_outcome(self.query.query_id, result, failure)
        outcome = closing_row(result, failure, self._plan, exec_ms, overhead_ms)
        if result is not None and statement.category != "read":
            self.database.refresher.wrote(ddl=statement.category == "relation write")
        if unwritten := await self._unclosed(outcome):
            log.error(log.AUDIT_WRITE_AFTER_EXECUTION_FAILED, query_id=permit.query_id, error=unwritten)
        self._observe(
            permit.audit_id,
            "ALLOW",
            permit=permit,
            exec_s=now - began,
            result=result,
            error_class=failure.sqlstate if failure else None,
        )

    async def _unclosed(self, outcome: Executed | Failed) -> str:
        """Writes the closing row even when the call is cancelled. Returns why it failed, or ""."""
        try:
            with trio.move_on_after(CLOSING_ROW_S, shield=True):
                await self.gateway.audit.closed(self.query, outcome)
                return ""
        except AuditUnavailable as failure:
            return failure.reason
        return "the audit file does not answer"

    def _observe(
        self,
        audit_id: str | None,
        decision: Literal["ALLOW", "DENY", "HELD", "UNAUDITED"],
        *,
        denied: Denied | None = None,
        permit: Permit | None = None,
        exec_s: float | None = None,
        result: Result | None = None,
        error_class: str | None = None,
    ) -> None:
        if not self.gateway.observers:
            return
        statement_type: str | None = None
        tables: tuple[str, ...] = ()
        if denied is not None:
            statement_type, tables = denied.statement_type, denied.tables
        elif permit is not None:
            statement_type, tables = permit.allowed.statement.kind, permit.allowed.tables
        self.gateway.observe(
            Completed(
                query=self.query,
                tool=self.tool,
                audit_id=audit_id,
                decision=decision,
                sql=self.sql,
                denied=denied,
                statement_type=statement_type,
                tables=tables,
                parse_s=self.deciding.parse_s,
                mask_s=self.deciding.mask_s,
                decide_s=self.decide_s,
                audit_s=self.audit_s,
                exec_s=exec_s,
                rows=len(result.rows) if result else 0,
                rows_bytes=sum(map(len, result.rows)) if result else 0,
                truncated=bool(result and result.truncated),
                error_class=error_class,
            )
        )


def _run_outcome(query_id: QueryId, result: Result | None, failure: ExecutionFailed | None) -> Outcome:
    """What the gate is told of a claimed approval. Where COMMIT may have happened, nobody says that it did not."""
    if failure is None:
        assert result is not None
        rows = result.rows_affected if result.rows_affected is not None else result.rows_returned
        return Outcome(query_id, "executed", rows)
    return Outcome(query_id, "unknown" if failure.sqlstate in (OUTCOME_UNKNOWN, _INTERNAL) else "failed")
