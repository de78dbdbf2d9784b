"""One HTTP/1.1 connection inside the fence: h11 parses, hypercorn's `HTTPStream` speaks ASGI, this file reads, writes and waits.

hypercorn's own `TCPServer` and `H11Protocol` stay outside: they open a nursery and restart an idle task per request, write head
and body apart, shield a send without a deadline, and crash on a websocket upgrade with one byte too many (hypercorn #225). Here
the application runs in the connection's own task and pulls the body; nothing is read ahead of need; an upgrade is not offered.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast, final

import h11
import trio
from hypercorn.config import Config
from hypercorn.protocol.events import Body, EndBody, Event, Response, StreamClosed
from hypercorn.protocol.events import Request as StreamRequest
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from gatewayd import log

KEEP_ALIVE_S: Final = 75.0
HEAD_S: Final = 30.0  # for the rest of a request head once its first byte is there
SEND_S: Final = 30.0  # for one write that the client does not take
LINGER_S: Final = 2.0  # of silence from a client whose request was answered before all of it was read
LINGER_MOST_S: Final = 30.0  # while it goes on sending: a body of some MiB takes a usual line longer than a moment
HEAD_BYTES: Final = 16 * 1024  # h11 checks between reads, so reads of this size make the true bound twice it
BODY_READ_BYTES: Final = 256 * 1024
_READ_AHEAD_BYTES: Final = 64 * 1024  # of requests that a client pipelines behind one in progress
_JOINED_BYTES: Final = 128 * 1024  # a larger body is written behind its head instead of copied beside it

Message = dict[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


class ClientGone(ConnectionError):
    """Raised by ASGI `send` when nobody is there to read."""


@final
class Connection:
    """Serves one socket until it ends. Answers have one write for head and body where the application gives them at once."""

    def __init__(self, app: App, config: Config, context: WorkerContext, stream: trio.SocketStream) -> None:
        self._app: Final = app
        self._config: Final = config
        self._context: Final = context
        self._stream: Final = stream
        self._fd: Final = stream.socket.fileno()
        self._h11: Final = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._client: Final = _address(stream.socket.getpeername())
        self._server: Final = _address(stream.socket.getsockname())
        self._asgi: HTTPStream | None = None
        self._out: list[bytes] = []
        self._idle: trio.CancelScope | None = None
        self._lingering: trio.CancelScope | None = None
        self._gone = False
        self._stopping = False

    def stop(self) -> None:
        """No request after the one in progress; at once when none is."""
        self._stopping = True
        if self._idle is not None:
            self._idle.cancel()
        if self._lingering is not None:
            self._lingering.deadline = min(self._lingering.deadline, trio.current_time() + LINGER_S)

    async def serve(self) -> None:
        try:
            while await self._next_request():
                await self._run_application()
                if self._gone or not self._recycled():
                    break
            if not self._gone:
                await self._linger()
        finally:
            await trio.aclose_forcefully(self._stream)

    # -- requests

    async def _next_request(self) -> bool:
        """False: the connection ends here (closed, idle too long, stopping, or bad HTTP, which is answered)."""
        with trio.CancelScope(deadline=trio.current_time() + KEEP_ALIVE_S) as idle:
            self._idle = idle
            if self._stopping:
                return False
            begun = False
            try:
                while True:
                    event = self._h11.next_event()
                    if isinstance(event, h11.Request):
                        refusal = _refusal(event)
                        if refusal:
                            await self._answer_error(refusal)
                            return False
                        self._idle = None
                        await self._begin(event)
                        return True
                    if event is not h11.NEED_DATA:
                        return False
                    if begun:
                        idle.deadline = min(idle.deadline, trio.current_time() + HEAD_S)
                    self._h11.receive_data(await self._read(HEAD_BYTES))
                    begun = True
            except h11.RemoteProtocolError as error:
                await self._answer_error(error.error_status_hint)
            except OSError:
                self._gone = True
            finally:
                self._idle = None
        return False

    async def _begin(self, request: h11.Request) -> None:
        unused, task_group = cast(Any, None), cast(Any, self)
        self._asgi = HTTPStream(
            unused, self._config, self._context, task_group, False, self._client, self._server, self._stream_event, 1
        )
        await self._asgi.handle(
            StreamRequest(
                stream_id=1,
                headers=list(request.headers),
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=ConnectionState({}),
            )
        )

    async def spawn_app(
        self, _app: object, _config: object, _scope: object, _send: object
    ) -> Callable[[object], Awaitable[None]]:
        """hypercorn's seam for a new task; the application runs in this task instead, so nothing starts here."""
        return _unused

    async def _run_application(self) -> None:
        asgi = cast(HTTPStream, self._asgi)
        try:
            await self._app(cast(Message, asgi.scope), self._receive, self._send)
        except Exception as error:
            self._fail(error)
        try:
            await asgi.app_send(None)  # 500 where the application said nothing
            await self._flush()
        except (OSError, h11.LocalProtocolError):
            self._gone = True

    def _fail(self, error: Exception) -> None:
        """A client that left is no failure; anything else is one of ours, and must not leave this connection."""
        group = error if isinstance(error, ExceptionGroup) else ExceptionGroup("", [error])
        rest = group.split(ClientGone)[1]
        if rest is None:
            self._gone = True
            return
        first: BaseException = rest
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        log.error(log.CONNECTION_FAILED, error_class=type(first).__name__)

    def _recycled(self) -> bool:
        """Whether the connection can take another request. A body that the application left is dropped if it is here already."""
        try:
            while self._h11.their_state is h11.SEND_BODY and self._h11.next_event() not in (h11.NEED_DATA, h11.PAUSED):
                pass
            self._h11.start_next_cycle()
        except h11.ProtocolError:
            return False
        return True

    # -- ASGI

    async def _receive(self) -> Message:
        """The body as it comes, in pieces as large as are here; after it, only that the client is gone."""
        body: list[bytes] = []
        while not self._gone and self._h11.their_state is h11.SEND_BODY:
            try:
                event = self._h11.next_event()
                if isinstance(event, h11.Data):
                    body.append(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    return {"type": "http.request", "body": b"".join(body), "more_body": False}
                elif body:
                    return {"type": "http.request", "body": b"".join(body), "more_body": True}
                else:
                    if self._h11.they_are_waiting_for_100_continue:
                        await self._write(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                    self._h11.receive_data(await self._read(BODY_READ_BYTES))
            except h11.RemoteProtocolError as error:
                await self._answer_error(error.error_status_hint)
                self._gone = True
            except OSError:
                self._gone = True
        while not self._gone:
            if len(self._h11.trailing_data[0]) > _READ_AHEAD_BYTES:
                await trio.sleep_forever()  # it pipelines more than is kept: its leaving shows when the answer is written
            try:
                data = await self._read(HEAD_BYTES)
            except OSError:
                data = b""
            if data:
                self._h11.receive_data(data)
            else:
                self._gone = True
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self._gone:
            raise ClientGone
        await cast(HTTPStream, self._asgi).app_send(cast(Any, message))
        if message["type"] == "http.response.body" and message.get("more_body", False):
            await self._flush()

    async def _stream_event(self, event: Event) -> None:
        """What `HTTPStream` wants written; kept until there is a reason to write."""
        match event:
            case Response():
                headers = list(event.headers)
                if self._stopping:
                    headers.append((b"connection", b"close"))
                self._queue(h11.Response(status_code=event.status_code, headers=headers))
            case Body():
                self._queue(h11.Data(data=event.data))
            case EndBody():
                self._queue(h11.EndOfMessage())
                await self._flush()
            case StreamClosed():
                cast(HTTPStream, self._asgi).closed = True

    # -- bytes

    def _queue(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self._out.append(data)

    async def _flush(self) -> None:
        out, self._out = self._out, []
        if sum(map(len, out)) <= _JOINED_BYTES:
            out = [b"".join(out)]
        for data in out:
            await self._write(data)

    async def _read(self, at_most: int) -> bytes:
        await trio.lowlevel.wait_readable(self._fd)
        return os.read(self._fd, at_most)

    async def _write(self, data: bytes) -> None:
        """Straight to the socket, and no checkpoint, while its buffer has room. A write cut off midway ends the connection."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                await self._room()
            except OSError as error:
                self._gone = True
                raise ClientGone from error

    async def _room(self) -> None:
        ready = False
        try:
            with trio.move_on_after(SEND_S):
                await trio.lowlevel.wait_writable(self._fd)
                ready = True
        finally:
            if not ready:
                self._gone = True
        if not ready:
            raise ClientGone

    async def _answer_error(self, status: int) -> None:
        if self._h11.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        try:
            self._queue(h11.Response(status_code=status, headers=[(b"content-length", b"0"), (b"connection", b"close")]))
            self._queue(h11.EndOfMessage())
            await self._flush()
        except OSError:
            self._gone = True

    async def _linger(self) -> None:
        """Lets the last answer arrive: closing over unread bytes would make the kernel reset it away (RFC 9112 section 9.6)."""
        if self._h11.their_state not in (h11.SEND_BODY, h11.ERROR) and not self._h11.trailing_data[0]:
            return
        with trio.move_on_after(LINGER_S if self._stopping else LINGER_MOST_S) as self._lingering:
            try:
                await self._stream.send_eof()
                with trio.move_on_after(LINGER_S) as silence:
                    while await self._read(BODY_READ_BYTES):
                        silence.deadline = trio.current_time() + LINGER_S
            except (OSError, trio.BrokenResourceError):
                pass


def _refusal(request: h11.Request) -> int:
    """A status for what h11 lets pass and we do not: other major versions, and both ways to frame a body (request smuggling)."""
    if request.http_version not in (b"1.1", b"1.0"):
        return 505
    names = [name for name, _ in request.headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        return 400
    return 0


def _address(name: tuple[Any, ...] | str) -> tuple[str, int] | None:
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


async def _unused(_event: object) -> None:
    """The application pulls its events; none is pushed."""
