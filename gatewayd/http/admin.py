"""POST /admin/policy and POST /admin/dry-run (spec; contract 7)."""

from datetime import UTC, datetime

import trio
from quart import Blueprint, Response

from gatewayd.audit.writer import AuditUnavailable
from gatewayd.gateway import Gateway
from gatewayd.http.guard import BODY_S, Guard, failure, json_response, read_body
from gatewayd.policy.change import policy_hash
from gatewayd.policy.load import PolicyErrors
from gatewayd.policy.probe import DryRunAnswer, DryRunRefused, answer, read_dry_run
from gatewayd.reload import Reloader


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
        enforced, catalog = database.enforced.policy, database.catalog

        def decided() -> DryRunAnswer:
            return answer(request, enforced, catalog, policy_hash(enforced))

        # In a thread: 250 probes or a statement of 1 MiB must not hold up the agents.
        return json_response(await trio.to_thread.run_sync(decided))

    return routes
