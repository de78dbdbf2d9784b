"""GET /healthz and GET /readyz of a linked gateway, bare bodies, without authentication (docs/http-api.md)."""

from collections.abc import Callable

from quart import Blueprint, Response

from gatewayd.corridor.gateway import Gateway
from gatewayd.link.formats.status import StateName


def ready_routes(gateway: Gateway, state: Callable[[], StateName]) -> Blueprint:
    """GET /healthz and GET /readyz."""
    routes = Blueprint("ready", __name__)

    @routes.get("/healthz", provide_automatic_options=False)
    async def alive() -> Response:
        return _plain("ok", 200)

    @routes.get("/readyz", provide_automatic_options=False)
    async def ready() -> Response:
        missing = not_ready(gateway, state())
        return _plain("ready", 200) if missing is None else _plain(missing, 503)

    return routes


def not_ready(gateway: Gateway, state: StateName) -> str | None:
    """What is missing; None when a policy is enforced, every database answers, and its catalog has been read."""
    if state != "enforcing":
        return state
    for name, database in gateway.databases.items():
        if not database.catalog.is_read:
            return f"catalog {name}"
        if not database.refresher.statistics().answers:
            return f"database {name}"
    return None


def _plain(text: str, status: int) -> Response:
    return Response(text, status, {"cache-control": "no-store"}, content_type="text/plain; charset=utf-8")
