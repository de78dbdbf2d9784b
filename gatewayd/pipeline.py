"""One statement from arrival to answer, the five steps in their order (spec: What the service does; design: The corridor).

parse → decide → audit → execute → audit, with what masks make of the statement (contract 10) between the decision and its
execution. Every tool that reaches a database comes through `run()`. Which rows a cancelled call leaves is told in
`audit/writer.py`; an allowed one always ends with its closing row, written in a short shield of its own.
"""

import os
from collections.abc import Hashable
from functools import partial
from time import perf_counter, time_ns
from typing import Final, Literal

import trio

from gatewayd import large_texts, log
from gatewayd.answer import Answer, Answered, Broken, OnHold, Refused, Unaudited, closing_row
from gatewayd.audit.events import Agent, Attempted, AuditId, Executed, Failed, Query, QueryId
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.writer import AuditUnavailable
from gatewayd.gateway import Completed, Database, Gateway, ToolName
from gatewayd.masking.plan import UNMASKED, Plan, Rewritten, Withheld, plan
from gatewayd.masking.results import PostExec
from gatewayd.policy.decide import decide, names_unknown
from gatewayd.policy.decision import Allowed, Decision, Denied, Held, Permit
from gatewayd.postgres.execute import execute
from gatewayd.postgres.meaning import told_less
from gatewayd.postgres.result import UNMASKABLE, ExecutionFailed, Result
from gatewayd.recall import Known
from gatewayd.sql.analyze import analyze
from gatewayd.sql.parse import is_large
from gatewayd.sql.statement import Statement

CLOSING_ROW_S: Final = 30.0
"""How long a cancelled or finished call waits for its closing row before `audit write after execution failed`: a batch under way
and its own, with a checkpoint between, are up to five fsyncs, which on a bad day take 5 s each."""

_CANCELLED: Final = "57014"  # query_canceled
_CONNECTION_LOST: Final = ("08", "57")  # classes: connection exception, operator intervention
_INTERNAL: Final = "XX000"  # internal_error
_MASKING: Final = "column_masking"


async def run(
    gateway: Gateway,
    database: Database,
    tool: ToolName,
    sql: str,
    intent: str | None,
    agent: Agent,
    caller: Hashable = None,
) -> Answer:
    """Take one statement through the corridor. Raises nothing but Cancelled, and bugs (after their closing row).

    `caller` is with whom others share sessions of the pool and the thread for large texts in turns; None takes what is free.
    """
    with database.in_use():
        return await _Call(gateway, database, tool, sql, intent, agent, caller).walk()


class _Call:
    """One walk through the corridor. Policy and catalog are taken once, here (design: The corridor)."""

    def __init__(
        self,
        gateway: Gateway,
        database: Database,
        tool: ToolName,
        sql: str,
        intent: str | None,
        agent: Agent,
        caller: Hashable,
    ) -> None:
        self.began = perf_counter()
        self.gateway = gateway
        self.database = database
        self.enforced = database.enforced
        self.catalog = database.catalog
        self.tool: ToolName = tool
        self.sql = sql
        self.caller = caller
        self.query = Query(
            query_id=QueryId(new_ulid(time_ns() // 1_000_000, os.urandom)), database=database.name, agent=agent, intent=intent
        )
        self.plan: Plan = UNMASKED
        self.parse_s = self.decide_s = self.audit_s = self.mask_s = 0.0

    async def walk(self) -> Answer:
        # Deciding is short and bounded. Where it waits it is shielded (most never do, and a scope is not free), so it leaves no
        # ATTEMPTED without its DECIDED.
        known = await self._known()
        try:
            await self.gateway.audit.attempted(self.query, Attempted(self.sql, known.statement.fingerprint))
            began = perf_counter()
            decision = await self._decide(known)
            if isinstance(decision, Allowed) and self.enforced.policy.column_masks:
                self.plan = await self._plan(known, decision.statement)
            decided = perf_counter()
            self.decide_s = decided - began - self.mask_s
            match decision:
                case Held():
                    self._observe(None, "HELD")
                    return OnHold("this write needs a human's approval and no approval service answers; nothing ran")
                case Denied():
                    try:
                        audit_id = await self.gateway.audit.decided(self.query, decision)
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

    async def _permit(self, allowed: Allowed) -> Permit:
        """Step three. DECIDED is on its way as soon as this waits: cancelled then, the call owes its closing row."""
        try:
            return await self.gateway.audit.decided(self.query, allowed)
        except trio.Cancelled:
            waited_ms = round((perf_counter() - self.began) * 1000)
            await self._unclosed(Failed(0, waited_ms, _CANCELLED, "the call was cancelled"))
            self._observe(None, "ALLOW", error_class=_CANCELLED)
            raise

    async def _known(self) -> Known:
        """The text's facts, from memory when it came before. A large text is parsed in a thread: it must not stall the others."""
        recall = self.database.recall
        known = recall.get(self.sql)
        if known is None:
            if is_large(self.sql):
                known = recall.add(self.sql, await large_texts.in_thread(partial(analyze, self.sql), self.caller))
            else:
                known = recall.add(self.sql, analyze(self.sql))
            self.parse_s = perf_counter() - self.began
        return known

    async def _decide(self, known: Known) -> Decision:
        """The decision, from memory when nothing changed since. Any exception inside it denies (contract 3)."""
        decision = known.decision(self.enforced.revision, self.catalog.revision)
        if decision is not None:
            return decision
        try:
            statement = known.statement
            unknown = False
            if isinstance(statement, Statement) and (not self.catalog.is_read or names_unknown(statement, self.catalog)):
                with trio.CancelScope(shield=True):
                    await self.database.refresher.unknown()
                self.catalog = self.database.catalog
                unknown = names_unknown(statement, self.catalog)
            decision = decide(statement, self.enforced.policy, self.catalog)
        except Exception as bug:
            log.error(log.DECISION_FAILED, query_id=self.query.query_id, **log.places(bug))
            return Denied("internal_error", "the gateway failed to decide this statement, so it did not run")
        if not unknown:  # else the same text asks the catalog again: what it names may have been made meanwhile
            known.keep(decision, self.enforced.revision, self.catalog.revision)
        return decision

    async def _plan(self, known: Known, statement: Statement) -> Plan:
        """What masks make of the statement, from memory when nothing changed since. Any exception inside withholds it."""
        revisions = self.enforced.revision, self.catalog.revision
        made = known.plan(*revisions)
        if made is not None:
            return made
        began = perf_counter()
        policy, masking = self.enforced.policy, self.gateway.masking
        rewriting = masking.source_rewrite if policy.mask_source_rewrite is None else policy.mask_source_rewrite
        salt = masking.salt.reveal().encode() if masking.salt is not None else None
        ask = partial(plan, statement, policy, self.catalog, salt=salt, rewriting=rewriting)
        try:
            made = await large_texts.in_thread(ask, self.caller, shielded=True) if is_large(self.sql) else ask()
        except Exception as bug:
            log.error(log.DECISION_FAILED, query_id=self.query.query_id, **log.places(bug))
            return Withheld(
                "rewrite", "the gateway failed to mask this statement, so it did not run", "masking failed; see the log"
            )
        known.keep_plan(made, *revisions)
        self.mask_s = perf_counter() - began
        return made

    async def _withhold(self, permit: Permit, withheld: Withheld) -> Answer:
        """Step five of a statement that masks keep from running."""
        waited_ms = round((perf_counter() - self.began) * 1000)
        unwritten = await self._unclosed(Failed(0, waited_ms, _MASKING, withheld.reason_audit, withheld.stage))
        if unwritten:
            log.error(log.AUDIT_WRITE_AFTER_EXECUTION_FAILED, query_id=permit.query_id, error=unwritten)
        self._observe(permit.audit_id, "ALLOW", permit=permit, error_class=_MASKING)
        allowed = permit.allowed
        denied = Denied(_MASKING, withheld.reason_agent, allowed.statement.kind, allowed.tables, _MASKING)
        return Refused(denied, AuditId(permit.audit_id))

    async def _execute(self, permit: Permit) -> Answer:
        """Steps four and five."""
        if isinstance(self.plan, Withheld):
            return await self._withhold(permit, self.plan)
        masking = self.plan if isinstance(self.plan, Rewritten | PostExec) else None
        result: Result | None = None
        failure: ExecutionFailed | None = None
        began = perf_counter()
        try:
            result = await execute(self.database.pool, permit, self.enforced.policy.limits, self.catalog, masking, self.caller)
        except ExecutionFailed as failed:
            failure = told_less(failed) if failed.is_inner and self.enforced.policy.hides_something else failed
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
            allowed = permit.allowed
            return Refused(Denied(_MASKING, withheld, allowed.statement.kind, allowed.tables, _MASKING), audit_id)
        if failure is not None:
            return Broken(failure.sqlstate, failure.message, failure.hint, failure.position, audit_id)
        assert result is not None
        return Answered(result, audit_id)

    async def _close(self, permit: Permit, began: float, result: Result | None, failure: ExecutionFailed | None) -> None:
        """The closing row. When it cannot be written the answer is given all the same: the statement did run (contract 4)."""
        statement = permit.allowed.statement
        now = perf_counter()
        exec_ms = round((now - began) * 1000)
        overhead_ms = round((began - self.began) * 1000)
        outcome = closing_row(result, failure, self.plan, exec_ms, overhead_ms)
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
        """Writes the closing row, whatever is cancelled; when that fails, why."""
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
                parse_s=self.parse_s,
                decide_s=self.decide_s,
                audit_s=self.audit_s,
                exec_s=exec_s,
                mask_s=self.mask_s,
                rows=len(result.rows) if result else 0,
                rows_bytes=sum(map(len, result.rows)) if result else 0,
                truncated=bool(result and result.truncated),
                error_class=error_class,
            )
        )
