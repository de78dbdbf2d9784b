"""One statement from arrival to answer, in five steps (docs/architecture.md).

The steps are parse, decide, audit, execute, audit. The first two, with the masks, are in `deciding.py`, the fourth is in
`execution.py`. A write that a person must approve waits before the third step (`hold.py`) and is then decided again. Every tool
that reaches a database calls `run()`. `audit/service.py` says which rows a cancelled call leaves; an allowed one always ends with
its closing row, written in a short shield of its own.
"""

import os
from collections.abc import Hashable
from functools import partial
from time import perf_counter, time_ns
from typing import Final, Literal

import msgspec
import trio

from gatewayd import log
from gatewayd.approvals import messages, words
from gatewayd.approvals.messages import Outcome, Preview
from gatewayd.audit.events import Agent, Attempted, AuditId, Executed, Failed, Query, QueryId
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.service import AuditUnavailable
from gatewayd.corridor import approval_answers as answers
from gatewayd.corridor import preview
from gatewayd.corridor.answer import Answer, Answered, Broken, NotServed, OnHold, Refused, Unaudited, closing_row
from gatewayd.corridor.deciding import Deciding
from gatewayd.corridor.execution import NO_PRIVILEGE, ApprovedWrite, Execution
from gatewayd.corridor.gateway import Completed, Database, Gateway, ToolName
from gatewayd.corridor.hold import NOBODY, Client, GateSilent, StillUndecided
from gatewayd.corridor.known_statements import Known
from gatewayd.judge import Verdict, refused_by_masks
from gatewayd.masking.plan import UNMASKED, Plan, Withheld
from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied, Held, Permit
from gatewayd.postgres.execute.error_words import told_less
from gatewayd.postgres.execute.failure import OUTCOME_UNKNOWN
from gatewayd.postgres.execute.result import UNMASKABLE, ExecutionFailed, Result

CLOSING_ROW_S: Final = 30.0
"""How long a call waits for its closing row before it logs `audit write after execution failed`. A batch in progress, a
checkpoint and the row's own batch need up to five fsyncs, and a slow disk takes 5 s for each."""

_CANCELLED: Final = "57014"  # query_canceled
_CONNECTION_LOST: Final = ("08", "57")  # classes: connection exception, operator intervention
_MASKING: Final = "column_masking"
_INTERNAL: Final = "XX000"  # internal_error


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
    """Takes one statement through the five steps and returns its answer.

    `caller` is the key by which sessions of the pool and the thread for large texts are shared fairly; None takes what is free.
    `client` is the client that waits while a write is held.

    *Raises* Cancelled, and bugs once their closing row is written.
    """
    if database.withheld is not None:
        return NotServed(database.withheld)
    with database.in_use():
        query = Query(query_id=_new_id(), database=database.name, agent=agent, intent=intent, tenant_id=gateway.tenant_id)
        deciding = Deciding(database, gateway.masking, query.query_id, caller)
        return await _Call(gateway, tool, sql, query, deciding, client).answer()


def _new_id() -> QueryId:
    return QueryId(new_ulid(_now_ms(), os.urandom))


def _now_ms() -> int:
    return time_ns() // 1_000_000


class _Call:
    """One call. `deciding` takes the policy and the catalog when it is made: at the start, and again after a hold."""

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
        self.approved: ApprovedWrite | None = None
        self.outcome = Outcome(query.query_id, "failed")
        self.decide_s = self.audit_s = self.held_s = 0.0

    @property
    def _plan(self) -> Plan:
        return self.verdict.plan if self.verdict is not None else UNMASKED

    @property
    def _hides_something(self) -> bool:
        return self.verdict is not None and self.deciding.policy_of(self.verdict).hides_something

    async def answer(self) -> Answer:
        try:
            return await self._answer()
        finally:
            if self.approved is not None and self.gateway.approvals is not None:
                self.gateway.approvals.reporter.report(self.outcome)

    async def _answer(self) -> Answer:
        # Deciding is short and bounded. It shields only its own waits, because most calls have none and a scope costs time. So a
        # cancelled call never leaves ATTEMPTED without DECIDED.
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
                    except trio.Cancelled:  # the audit has the row already
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
        """The decision. A write that its masks refuse is not held: an approval could not make it run."""
        self.verdict = verdict = await self._verdict(self.deciding, known)
        if isinstance(verdict.plan, Withheld) and verdict.allowed is not None:
            return verdict.allowed
        return verdict.decision

    async def _verdict(self, deciding: Deciding, known: Known) -> Verdict:
        """The verdict with containment applied. A preview is exempt: its result goes to a reviewer and not to the agent."""
        verdict = await deciding.verdict(known)
        if self.tool == "preview":
            return verdict
        return await self.gateway.containing.held_to(deciding, known, verdict, self.query)

    async def _hold(self, held: Held) -> Allowed | Denied | OnHold:
        """Asks the gate for the approval of a write and decides again after it. Cancelled: the request stays with the gate."""
        approvals, policy = self.gateway.approvals, self.deciding.enforced.policy
        if approvals is None or self.tool != "query":
            return answers.NO_GATE
        count = partial(self._preview, held) if policy.approvals.preview else None
        contained = await self.gateway.containing.holds(policy, held.allowed, self.query)
        ask = answers.gate_request(self.query, held, policy, self.deciding.catalog, contained=contained)
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
                self.approved = ApprovedWrite(found, ask.effect)
                return await self._decide_again(held, ask.effect)
            case messages.GateDenied(by=by, note=note):
                return answers.refused(held, "approval_denied", words.denied_reason(by, note))
            case messages.Expired():
                return answers.refused(held, "approval_expired", words.EXPIRED_REASON)
            case StillUndecided() | GateSilent():
                self.gateway.audit.undecided(self.query)
                hold_s = policy.approvals.hold_s
                return answers.undecided(found, self.query, self.sql, hold_s, is_multi=self.gateway.is_multi)

    async def _decide_again(self, held: Held, effect: str) -> Allowed | Denied:
        """Decides by the policy and the catalog in force now, which may have changed while the write waited."""
        if self.gateway.databases.get(self.query.database) is not self.database:
            return Denied("table_access", answers.GONE, held.allowed.statement.kind, held.allowed.tables, "table_access")
        self.deciding = self.deciding.renewed()
        decision = await self._decide(await self.deciding.known(self.sql))
        allowed = decision.allowed if isinstance(decision, Held) else decision
        if isinstance(allowed, Allowed) and answers.effect_of(allowed.statement, self.deciding.catalog) != effect:
            return answers.refused(held, "approval_expired", answers.CHANGED)
        return allowed

    async def _preview(self, held: Held) -> Preview:
        """Counts the rows that the write would touch, for the reviewer."""
        query, deciding = self.query, self.deciding

        async def ask(sql: str) -> Answer:
            own = msgspec.structs.replace(query, query_id=_new_id(), preview_of=query.query_id)
            return await _Call(self.gateway, "preview", sql, own, deciding.renewed(own.query_id)).answer()

        async with self.database.counting:
            return await preview.preview(held.allowed.statement, deciding.catalog, ask)

    def _approved_by(self) -> str | None:
        return None if self.approved is None else words.legible(self.approved.answer.by or words.SOMEBODY, words.BY_CHARACTERS)

    async def _permit(self, allowed: Allowed) -> Permit:
        """Step three. The audit has the DECIDED row as soon as this waits: a call that is cancelled here writes a closing row."""
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
        """Step five of a statement that its masks refuse."""
        waited_ms = round((perf_counter() - self.began) * 1000)
        by_masks = withheld.rule == _MASKING
        error_class = _MASKING if by_masks else NO_PRIVILEGE
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
            failure = told_less(failed) if failed.is_inner and self._hides_something else failed
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
        assert self.verdict is not None
        execution = Execution(permit, self.tool, self.deciding, self.verdict, self._verdict, self.approved)
        try:
            return await execution.run()
        finally:
            self.deciding, self.verdict = execution.deciding, execution.verdict

    async def _close(self, permit: Permit, began: float, result: Result | None, failure: ExecutionFailed | None) -> None:
        """Writes the closing row. If that fails the client still gets its answer, because the statement did run (decision 4)."""
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
        """Writes the closing row, even if the call is cancelled. Returns the reason of a failure, or ""."""
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
    """The outcome reported to the gate for a claimed approval: `unknown` wherever the statement may have been committed."""
    if failure is None:
        assert result is not None
        rows = result.rows_affected if result.rows_affected is not None else result.rows_returned
        return Outcome(query_id, "executed", rows)
    return Outcome(query_id, "unknown" if failure.sqlstate in (OUTCOME_UNKNOWN, _INTERNAL) else "failed")
