"""GET and POST /admin/taint: which grants are tainted, and clearing them (docs/policy.md, Containment)."""

from datetime import UTC, datetime
from typing import Final

import msgspec
from quart import Blueprint, Response

from gatewayd.audit.service import AuditUnavailable
from gatewayd.corridor.containing import Tainted, shown
from gatewayd.corridor.gateway import Gateway
from gatewayd.corridor.kept_taints import KeptTaints
from gatewayd.corridor.reload import Reloader
from gatewayd.operators.guard import BODY_S, Guard, failure, json_response, read_body

_EVERY: Final = "all"
_LINKED: Final = "this gateway is linked: taints are kept by the control plane, and a person clears them there"


class _Clear(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`clear`: a token's id, `gateway` where agents have none, or `all`."""

    clear: str


def taint_routes(gateway: Gateway, reloader: Reloader, guard: Guard, body_s: float = BODY_S) -> Blueprint:
    """The two routes; register them only when `guard.is_enabled`."""
    routes = guard.blueprint("taint", __name__)

    def kept() -> KeptTaints | None:
        taints = gateway.containing.taints
        return taints if isinstance(taints, KeptTaints) else None

    @routes.get("/admin/taint", provide_automatic_options=False)
    async def listed() -> Response:
        taints = kept()
        if taints is None:
            return failure(400, _LINKED)
        found = [_shown(grant, tainted) for grant, tainted in taints.all().items()]
        return json_response({"tainted": found, "unreadable": taints.broken})

    @routes.post("/admin/taint", provide_automatic_options=False)
    async def clear() -> Response:
        body = await read_body(within_s=body_s)
        if isinstance(body, Response):
            return body
        taints = kept()
        if taints is None:
            return failure(400, _LINKED)
        try:
            asked = msgspec.json.decode(body, type=_Clear)
        except (ValueError, RecursionError):
            return failure(400, 'body: expected {"clear": "<token id>"}, {"clear": "gateway"} or {"clear": "all"}')
        grant = (
            None if asked.clear == _EVERY else next((each for each in taints.all() if shown(each) == asked.clear), asked.clear)
        )
        try:
            cleared = await taints.clear(grant, lambda: reloader.note("taint_cleared", None))
        except AuditUnavailable as unavailable:
            return failure(503, f"audit file cannot be written: {unavailable.reason}; nothing was cleared")
        except OSError as unwritten:
            reason = (unwritten.strerror or "no reason given").lower()
            return failure(503, f"the state folder cannot be written: {reason}; nothing was cleared")
        return json_response({"cleared": [shown(each) for each in cleared]})

    return routes


def _shown(grant: str, tainted: Tainted) -> dict[str, object]:
    since = datetime.fromtimestamp(tainted.since_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return {
        "grant": shown(grant),
        "source": tainted.source,
        "database": tainted.database,
        "since": since,
        "query_id": tainted.query_id,
    }
