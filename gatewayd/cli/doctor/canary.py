"""SELECT 1 through the whole corridor: the real pool and policy, a scratch audit file that is thrown away."""

import tempfile
from typing import Final

import trio

from gatewayd.audit.events import Agent
from gatewayd.audit.service import AuditFileUnusable, open_audit
from gatewayd.cli.audit.search import AuditFileView, Filter
from gatewayd.cli.doctor.finding import Check, fail, ok
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.corridor.answer import Answered, Broken, NotServed, OnHold, Refused, Unaudited
from gatewayd.corridor.databases import Databases
from gatewayd.corridor.gateway import Gateway
from gatewayd.corridor.pipeline import run

AGENT: Final = "gatewayd doctor"
SQL: Final = "SELECT 1 AS canary"
_EVENTS: Final = ["ATTEMPTED", "DECIDED", "EXECUTED"]
_REMEDY: Final = "nothing else points to the reason: start gatewayd with GATEWAY_LOG_LEVEL=debug and look at its log"


async def canary(entry: DatabaseEntry) -> Check:
    """Runs it; the finding."""
    assert entry.url is not None
    with tempfile.TemporaryDirectory(prefix="gatewayd-doctor-") as folder:
        path = f"{folder}/audit.db"
        try:
            async with open_audit(path, "normal") as audit, trio.open_nursery() as services:
                databases = Databases()
                await services.start(databases.run)
                database = await databases.open(entry.name, entry.url, entry.policy)
                gateway = Gateway(audit, {entry.name: database})
                answer = await run(gateway, database, "query", SQL, "a canary of gatewayd doctor", Agent(AGENT))
                services.cancel_scope.cancel()
        except AuditFileUnusable as unusable:
            return fail(
                "canary", f"a scratch audit file cannot be used: {unusable.reason}", "look at the temporary folder (TMPDIR)"
            )
        events = [row.event_type for row in AuditFileView(path).rows_after("0", Filter())]
    match answer:
        case Answered(result) if list(result.rows) == [b'{"canary":1}'] and events == _EVENTS:
            return ok("canary", f"{SQL}: decided, audited, run")
        case Answered():
            return fail("canary", f"{SQL} left {', '.join(events) or 'no events'} and another answer than expected", _REMEDY)
        case Refused(denied):
            return fail("canary", f"{SQL} was denied: {denied.reason}", "look at the policy")
        case Broken(sqlstate, message):
            return fail("canary", f"{SQL} failed: {message} ({sqlstate})", "look at PostgreSQL's log")
        case Unaudited(reason) | OnHold(reason) | NotServed(reason):
            return fail("canary", f"{SQL} did not run: {reason}", _REMEDY)
