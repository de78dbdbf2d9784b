"""An ASGI application as the handler of exchanges: hypercorn's `HTTPStream` makes the scope and checks what is sent.

Used for operators' routes, which run in Quart. The protocol layer does not use ASGI, because it costs too much (PROFILE.md).
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast, final

from hypercorn.config import Config
from hypercorn.protocol.events import Body, EndBody, Event, Request, Response, StreamClosed
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from gatewayd.http.connection import HttpHandler
from gatewayd.http.open_exchange import HttpExchange
from gatewayd.http.wire import ClientGone

Message = dict[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


def asgi(app: App) -> HttpHandler:
    """The application runs in the connection's own task; the body is pulled by its `receive`."""
    config = Config()
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.include_date_header = False
    context = WorkerContext(None)

    async def handle(exchange: HttpExchange) -> None:
        await _Run(app, config, context, exchange).run()

    return handle


@final
class _Run:
    """One request to one application."""

    def __init__(self, app: App, config: Config, context: WorkerContext, exchange: HttpExchange) -> None:
        self._app: Final = app
        self._exchange: Final = exchange
        self._more = True  # of the body
        self._held = b""  # the last piece of the answer, kept until the next event: so head and body travel together
        unused, task_group = cast(Any, None), cast(Any, self)
        self._stream: Final = HTTPStream(
            unused, config, context, task_group, False, exchange.peer, exchange.local, self._stream_event, 1
        )

    async def run(self) -> None:
        """Hands the request to `HTTPStream` for its scope, then runs the application."""
        head, length = self._exchange.head, self._exchange.body_bytes
        framing = [] if length is None else [(b"content-length", b"%d" % length)]
        await self._stream.handle(
            Request(
                stream_id=1,
                headers=[*head.headers, *framing],
                http_version=head.http_version,
                method=head.method,
                raw_path=head.target,
                state=ConnectionState({}),
            )
        )
        await self._app(cast(Message, self._stream.scope), self._receive, self._send)

    async def spawn_app(
        self, _app: object, _config: object, _scope: object, _send: object
    ) -> Callable[[object], Awaitable[None]]:
        """hypercorn's seam for a new task; the application runs in this task instead, so nothing starts here."""
        return _unused

    async def _receive(self) -> Message:
        """Gives the body in pieces as they arrive; after the body, only `http.disconnect`, once the client has disconnected."""
        try:
            if self._more:
                data, self._more = await self._exchange.read()
                return {"type": "http.request", "body": data, "more_body": self._more}
            await self._exchange.gone()
        except ClientGone:
            self._more = False
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self._stream.app_send(cast(Any, message))
        if self._held:
            data, self._held = self._held, b""
            await self._exchange.write(data)

    async def _stream_event(self, event: Event) -> None:
        """What `HTTPStream` wants written."""
        match event:
            case Response():
                await self._exchange.start(event.status_code, list(event.headers))
            case Body():
                self._held = bytes(event.data)
            case EndBody():
                data, self._held = self._held, b""
                await self._exchange.end(data)
            case StreamClosed():
                self._stream.closed = True


async def _unused(_event: object) -> None:
    """The application pulls its events; none is pushed."""
