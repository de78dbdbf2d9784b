"""The surface: the route table behind quart, and beside it what speaks on the exchange itself.

EXCHANGES have their own doors and pass by quart: agents' calls, gateways' envelopes, live streams. The first whose path is the
request's, or is followed there by a slash, has it.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from ipaddress import ip_address
from typing import Any, Final, cast, final

import msgspec
import trio
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Map

from gatewayd import log
from gatewayd.control.console import Console
from gatewayd.control.organisation.caps import CapReached
from gatewayd.control.outbound.addresses import Network
from gatewayd.control.people.throttle import Throttled
from gatewayd.control.projects.visible import visible
from gatewayd.control.store.failures import StoreUnavailable
from gatewayd.control.web import gate, operators
from gatewayd.control.web.answer import Answer, Redirect, Refusal, json
from gatewayd.control.web.body import read_body
from gatewayd.control.web.call import FormProblem, Incoming
from gatewayd.control.web.page import page
from gatewayd.control.web.route import JSON_BYTES, Route
from gatewayd.control.web.table import EXCHANGES, ROUTES
from gatewayd.http.asgi import asgi
from gatewayd.http.exchange import HttpHead
from gatewayd.http.open_exchange import HttpExchange
from gatewayd.http.server import ServerStatistics

_OFFERED: Final = 25
"""Projects in the switcher; the page of all projects has the others."""

ExchangeHandler = Callable[[Console, HttpExchange, Incoming, trio.Event], Awaitable[None]]


class Pages(QuartTrio):
    """Quart without its own log, whose lines are no JSON and quote what a request carried."""

    def log_exception(self, exception_info: Any) -> None:
        log.error(log.CONNECTION_FAILED, error_class=exception_info[0].__name__)


@final
class Surface:
    """`stop` tells readiness that the replica stops, `closing` what streams that its listener closes, which is later."""

    def __init__(self, console: Console, stop: trio.Event, closing: trio.Event) -> None:
        self._console: Final = console
        self._closing: Final = closing
        self._operators: Final = operators.Operators(console, stop)
        self._pages: Final = asgi(_application(self))  # type: ignore[arg-type]  # TypedDicts for what ASGI calls a dict
        self._prefixes: Final = cast(Mapping[str, ExchangeHandler], EXCHANGES)

    def watch_server(self, statistics: Callable[[], ServerStatistics]) -> None:
        self._operators.watch_server(statistics)

    async def handle(self, exchange: HttpExchange) -> None:
        path = exchange.head.path
        for prefix, handler in self._prefixes.items():
            if path == prefix or path.startswith(prefix + "/"):
                await handler(self._console, exchange, self.incoming(exchange.head, exchange.client), self._closing)
                return
        await self._pages(exchange)

    def incoming(self, head: HttpHead, client: str) -> Incoming:
        headers: dict[str, str] = {}
        for name, value in head.headers:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            joined = "; " if key == "cookie" else ", "
            headers[key] = f"{headers[key]}{joined}{text}" if key in headers else text
        target = head.target.decode("latin-1")
        return Incoming(
            head.method, head.path, target, headers, {}, _client(client, headers, self._console.settings.trusted_proxies)
        )

    async def answer(self, route: Route, args: Mapping[str, str]) -> Answer:
        """One request of the table, from the gate to its answer."""
        incoming = self._incoming_of_quart()
        try:
            call = await gate.let_in(self._console, route, incoming, args)
            if route.method != "GET":
                call.body = await read_body(route)
            if route.door != "key" and call.has_organisation:
                call.projects = tuple(sorted(await visible(call, _OFFERED), key=lambda each: each.name.casefold()))
            answer = await route.handler(call)
        except Redirect as redirect:
            return Answer(303, headers=(("Location", redirect.path), ("Cache-Control", "no-store")))
        except Refusal as refusal:
            return refused(incoming.path, refusal.status, refusal.text, refusal.headers)
        except FormProblem as problem:
            return refused(incoming.path, 400, str(problem))
        except CapReached as reached:
            return refused(incoming.path, 409, str(reached))
        except Throttled as throttled:
            return refused(incoming.path, 429, str(throttled), (("Retry-After", str(throttled.wait_s)),))
        except StoreUnavailable as unavailable:
            log.debug(log.CONNECTION_FAILED, error_class=type(unavailable).__name__)
            return refused(incoming.path, 503, "the store does not answer now; try again soon", (("Retry-After", "2"),))
        return answer

    async def operator(self, path: str) -> Answer:
        return await self._operators.answer(path, request.headers.get("Authorization"))

    def _incoming_of_quart(self) -> Incoming:
        headers: dict[str, str] = {}
        for key, value in request.headers.items():
            name = key.lower()
            joined = "; " if name == "cookie" else ", "
            headers[name] = f"{headers[name]}{joined}{value}" if name in headers else value
        query = {key: values[-1] for key, values in request.args.lists()}
        target = request.full_path.removesuffix("?")
        peer = request.remote_addr or ""
        client = _client(peer, headers, self._console.settings.trusted_proxies)
        return Incoming(request.method, request.path, target, headers, query, client)


def refused(path: str, status: int, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """JSON below /api/, else a page that says what to do."""
    if path.startswith("/api/"):
        answer = json({"error": text}, status)
    else:
        answer = page(None, "web/pages/refused.html", status, code=status, text=text)
    return msgspec.structs.replace(answer, headers=(*answer.headers, *headers))


def _client(peer: str, headers: Mapping[str, str], trusted: tuple[Network, ...]) -> str:
    """The address to slow down and to show: the last one in X-Forwarded-For that is not a proxy of ours."""
    if not _is_in(peer, trusted):
        return peer
    for hop in reversed(headers.get("x-forwarded-for", "").split(",")):
        address = hop.strip()
        if not _is_in(address, trusted):
            return address[:45] if address else peer
    return peer


def _is_in(address: str, networks: tuple[Network, ...]) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in networks if network.version == found.version)


@cache
def _addresses() -> Map:
    """The table's paths as werkzeug looks them up, for every surface: to compile them takes a tenth of a second."""
    app = Pages("gatewayd control", static_folder=None)
    app.url_map.strict_slashes = False
    for number, route in enumerate(ROUTES):
        app.add_url_rule(route.path, endpoint=str(number), methods=[route.method], provide_automatic_options=False)
    for path in operators.PATHS:
        app.add_url_rule(path, endpoint=path, methods=["GET"], provide_automatic_options=False)
    return app.url_map


def _application(surface: Surface) -> QuartTrio:
    app = Pages("gatewayd control", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = JSON_BYTES
    app.config["BODY_TIMEOUT"] = 30
    app.config["RESPONSE_TIMEOUT"] = None
    app.url_map = _addresses()
    app.view_functions.update({str(number): _view(surface, route) for number, route in enumerate(ROUTES)})
    app.view_functions.update({path: _operator_view(surface, path) for path in operators.PATHS})
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(500, _failed)
    return app


def _view(surface: Surface, route: Route) -> Callable[..., Awaitable[Response]]:
    async def view(**args: str) -> Response:
        return _response(await surface.answer(route, args))

    return view


def _operator_view(surface: Surface, path: str) -> Callable[[], Awaitable[Response]]:
    async def view() -> Response:
        return _response(await surface.operator(path))

    return view


_WORDS: Final = {404: gate.NOTHING_HERE, 405: "this address does not take that method", 413: "this is too long"}


async def _http_error(error: HTTPException) -> Response:
    status = error.code or 500
    headers: tuple[tuple[str, str], ...] = ()
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        headers = (("Allow", ", ".join(sorted(error.valid_methods))),)
    text = _WORDS.get(status, "this is no request that can be answered")
    return _response(refused(request.path, status, text, headers))


async def _failed(_error: Exception) -> Response:
    return _response(refused(request.path, 500, "this failed, and it is our fault; the log says where"))


def _response(answer: Answer) -> Response:
    response = Response(answer.body, status=answer.status, content_type=answer.content_type)
    for name, value in answer.headers:
        response.headers.add(name, value)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    return response
