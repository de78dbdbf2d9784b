"""Which address leads where: /mcp to the protocol layer, every other path to quart-trio (docs/architecture.md).

Quart costs 250 µs a request and ASGI 40, so calls pass through neither; operators' routes do.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from quart import Blueprint, Response
from quart_trio import QuartTrio
from werkzeug.exceptions import MethodNotAllowed

from gatewayd import log
from gatewayd.http.asgi import asgi
from gatewayd.http.connection import HttpHandler
from gatewayd.http.exchange import Exchange
from gatewayd.http.open_exchange import HttpExchange
from gatewayd.operators.health import health

MCP_TARGET: Final = b"/mcp"
AGENTS_REQUESTS: Final = b"POST /mcp"
"""The first bytes of the requests that may come in floods. They do not delay the operators' routes and /health."""


def create_app(mcp: Callable[[Exchange], Awaitable[None]], blueprints: Sequence[Blueprint] = ()) -> HttpHandler:
    """`blueprints` are the operators' routes; /health is always there. Every unknown path has one and the same 404."""
    operators = asgi(create_quart([health, *blueprints]))  # type: ignore[arg-type]  # TypedDicts for what ASGI calls a dict

    async def gateway(exchange: HttpExchange) -> None:
        # The path is compared as it was sent: otherwise an agent could write /%6dcp and bypass a proxy that blocks /mcp.
        await (mcp if exchange.head.target.partition(b"?")[0] == MCP_TARGET else operators)(exchange)

    return gateway


class Operators(QuartTrio):
    """Quart without its own log, whose lines are not JSON and quote requests."""

    def log_exception(self, exception_info: Any) -> None:
        log.error(log.CONNECTION_FAILED, error_class=exception_info[0].__name__)


def create_quart(blueprints: Sequence[Blueprint]) -> QuartTrio:
    """Quart with these routes and /health, and with JSON for every error."""
    app = Operators("gatewayd", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = 8 * 1024 * 1024
    app.config["BODY_TIMEOUT"] = 30
    app.config["RESPONSE_TIMEOUT"] = None  # a page of the audit may take long; each write has its own deadline
    app.url_map.strict_slashes = False
    for blueprint in blueprints:
        app.register_blueprint(blueprint)
    app.register_error_handler(404, _not_found)
    app.register_error_handler(405, _not_allowed)
    app.register_error_handler(500, _failed)
    return app


async def _not_found(_error: Exception) -> Response:
    return Response(b'{"error":"not found"}', status=404, content_type="application/json")


async def _not_allowed(error: Exception) -> Response:
    methods = error.valid_methods if isinstance(error, MethodNotAllowed) else None
    allow = {"allow": ", ".join(sorted(methods or ()))}
    return Response(b'{"error":"method not allowed"}', status=405, headers=allow, content_type="application/json")


async def _failed(_error: Exception) -> Response:
    return Response(b'{"error":"internal error"}', status=500, content_type="application/json")
