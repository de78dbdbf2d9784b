"""POST /admin/policy and POST /admin/dry-run (decision 7)."""

from datetime import UTC, datetime

import trio
from quart import Blueprint, Response

from gatewayd.audit.service import AuditUnavailable
from gatewayd.corridor.deciding import Deciding
from gatewayd.corridor.gateway import Database, Gateway
from gatewayd.corridor.reload import Reloader
from gatewayd.operators.guard import BODY_S, Guard, failure, json_response, read_body
from gatewayd.policy.decide.outcomes import Decision
from gatewayd.policy.file.load import PolicyErrors
from gatewayd.policy.replacement import policy_hash
from gatewayd.policy.tools.probe import DryRun, DryRunAnswer, DryRunRefused, answer, read_dry_run, texts
from gatewayd.sql.facts.statement import Statement, Unparsed


def admin_routes(gateway: Gateway, reloader: Reloader, guard: Guard, body_s: float = BODY_S) -> Blueprint:
    """The two routes; register them only when `guard.is_enabled`. `body_s` is how long a body may take to arrive."""
    routes = guard.blueprint("admin", __name__)

    @routes.post("/admin/policy", provide_automatic_options=False)
    async def policy() -> Response:
        body = await read_body(within_s=body_s)
        if isinstance(body, Response):
            return body
        try:
            await reloader.reload(body, "admin_endpoint")
        except PolicyErrors as errors:
            return json_response({"ok": False, "error": str(errors)}, 400)
        except AuditUnavailable as unavailable:
            return json_response({"ok": False, "error": f"audit file cannot be written: {unavailable.reason}"}, 503)
        return json_response({"ok": True, "applied_at": datetime.now(UTC).isoformat(timespec="milliseconds")})

    @routes.post("/admin/dry-run", provide_automatic_options=False)
    async def dry_run() -> Response:
        body = await read_body(within_s=body_s)
        if isinstance(body, Response):
            return body
        try:
            request = read_dry_run(body, gateway.databases)
        except DryRunRefused as refused:
            return failure(400, str(refused))
        database = gateway.databases[request.database]
        with database.in_use():
            return json_response(await _dry_run(gateway, database, request))

    return routes


async def _dry_run(gateway: Gateway, database: Database, request: DryRun) -> DryRunAnswer:
    """The decisions that the pipeline would make. Like a call, it may wait some seconds for the catalog, once for all probes.

    Masks are applied to a literal statement only: the statement that represents a probe names a column that no table has.
    """
    deciding = Deciding(database, gateway.masking, "dry-run")
    decided: list[tuple[Statement | Unparsed, Decision]] = []
    for text in texts(request):
        verdict = await deciding.verdict(await deciding.known(text), tainted=request.tainted)
        decided.append((verdict.statement, verdict.final_decision if isinstance(request.sql, str) else verdict.decision))
        await trio.lowlevel.checkpoint()  # 250 probes must not delay the agents' calls
    return answer(request, decided, await trio.to_thread.run_sync(policy_hash, deciding.enforced.policy))
