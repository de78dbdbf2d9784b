"""One connection, in one task: it waits for a request, admits it, has it handled, and ends in a fixed order.

Its states are in `connection_state.py`, the protocol is in `http1.py`, reading and writing in `wire.py`, and the handler's view
of a request in `exchange.py`.

hypercorn's own `TCPServer` and `H11Protocol` stay outside: they open a nursery and restart an idle task per request, write head
and body apart, shield a send without a deadline, and crash on a websocket upgrade with one byte too many (hypercorn #225).
"""

from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final, final

import h11
import trio

from gatewayd import log
from gatewayd.config.bounds import HTTP_BOUNDS, HttpBounds
from gatewayd.fairness.loop_share import LoopShare
from gatewayd.fairness.unsent_budget import UnsentBudget
from gatewayd.http.date import DateHeader
from gatewayd.http.http1 import HEAD_BYTES, Http1, turned_away
from gatewayd.http.open_exchange import BODY_READ_BYTES, HttpExchange, SocketAddress, Watching
from gatewayd.http.wire import ClientGone, Wire

HttpHandler = Callable[[HttpExchange], Awaitable[None]]


@final
class HttpConnection:
    """Serves one socket until it ends, one request after the other. Requests that begin with the bytes `in_turns` wait for their
    turn at `intake`; all other requests begin at once, so that a flood of the former does not delay them."""

    def __init__(
        self,
        handler: HttpHandler,
        stream: trio.SocketStream,
        intake: LoopShare,
        watching: Watching,
        unsent: UnsentBudget,
        *,
        in_turns: bytes | None = None,
        bounds: HttpBounds = HTTP_BOUNDS,
        date: DateHeader | None = None,
    ) -> None:
        self.idle_since_s = inf
        """When it began to wait for a request; infinite while one is in progress."""
        self._handler: Final = handler
        self._intake: Final = intake
        self._in_turns: Final = in_turns
        self._bounds: Final = bounds
        self._date: Final = date or DateHeader()
        self._wire: Final = Wire(stream, unsent, bounds.send_s)
        self._http: Final = Http1(self._date)
        self._exchange: Final = HttpExchange(
            self._http, self._wire, watching, _address(stream.socket.getpeername()), _address(stream.socket.getsockname())
        )
        self._whole = trio.CancelScope()
        self._lingering: trio.CancelScope | None = None

    @property
    def ahead_bytes(self) -> int:
        """Bytes that the client has sent after the request in progress."""
        return self._http.ahead_bytes

    def stop(self) -> None:
        """Ends the connection after the request in progress, or at once if there is none."""
        self._http.is_last = True
        if self.idle_since_s != inf:
            self.expire()
        if self._lingering is not None:
            self._lingering.deadline = min(self._lingering.deadline, trio.current_time() + self._bounds.linger_s)

    def expire(self) -> None:
        """Ends the connection at once, without an answer."""
        self._whole.cancel()

    async def serve(self) -> None:
        """Serves until either side ends the connection. Logs its own failures; raises only Cancelled."""
        try:
            with self._whole:
                while await self._next_request() and not self._whole.cancel_called:
                    await self._handle()
                    if self._wire.is_gone or not await self._recycled():
                        break
                if not self._wire.is_gone:
                    await self._linger()
        finally:
            await self._wire.close()

    # -- one request after the other

    async def _next_request(self) -> bool:
        """Waits for a request. False if the connection must end: closed, stopping, or invalid HTTP, which has its answer."""
        if self._http.is_last:
            return False
        self.idle_since_s = trio.current_time()
        try:
            if self._http.state == "idle":
                data = await self._wire.read(HEAD_BYTES)
                if not await self._may_begin(data) or not data:
                    return False
                if self._http.recognises(data):
                    return True
                self._http.feed(data)
            if self._http.begins():
                return True
            with trio.move_on_after(self._bounds.head_s):
                while True:
                    self._http.feed(await self._wire.read(HEAD_BYTES))
                    if self._http.begins():
                        return True
        except h11.RemoteProtocolError as error:
            await self._exchange.refuse(error.error_status_hint)
        except ClientGone:
            pass
        finally:
            self.idle_since_s = inf
        return False

    async def _may_begin(self, data: bytes) -> bool:
        """Waits for a turn if the request needs one, as does the disconnect of such a client. False: turned away unread."""
        if self._in_turns is None or (data and not data.startswith(self._in_turns)):
            return True
        if self._intake.take() or await self._wait_for_intake(is_leaving=not data):
            return True
        if len(data) == HEAD_BYTES:
            self._http.feed(data)  # more may arrive, and `_linger` must read it
        await self._wire.write(turned_away(self._date))
        return False

    async def _wait_for_intake(self, *, is_leaving: bool) -> bool:
        """Waits for a turn. Meanwhile the connection does not count as idle: no idle time-out and no stop ends it unanswered."""
        self.idle_since_s = inf
        with trio.move_on_after(self._bounds.head_s):
            may_begin = await self._intake.wait(is_leaving=is_leaving)
            self.idle_since_s = trio.current_time()
            if may_begin and not is_leaving and self._wire.has_left():
                self._wire.is_gone = True  # the client has given up, and its request would delay those of others
                raise ClientGone
            return may_begin
        return False

    async def _handle(self) -> None:
        try:
            await self._handler(self._exchange)
        except Exception as error:
            self._fail(error)
        if not self._wire.is_gone and self._http.needs_answer:
            await self._exchange.refuse(500)

    def _fail(self, error: Exception) -> None:
        """Logs the failure, unless the client has only disconnected. No exception leaves this connection."""
        group = error if isinstance(error, ExceptionGroup) else ExceptionGroup("", [error])
        rest = group.split(ClientGone)[1]
        if rest is None:
            return
        log.error(log.CONNECTION_FAILED, error_class=type(log.first_of(rest)).__name__)

    async def _recycled(self) -> bool:
        """Whether the connection can take another request. If the handler left a part of a small body unread, it is read and
        dropped: the client may still be sending it."""
        if self._http.state in ("idle", "head"):
            return True
        if self._http.state != "answered":
            return False
        try:
            with trio.move_on_after(self._bounds.linger_s):
                while self._http.body()[1]:
                    if (self._http.body_bytes or BODY_READ_BYTES) >= BODY_READ_BYTES or self._http.wants_continue:
                        return False
                    self._http.feed(await self._wire.read(BODY_READ_BYTES))
            return self._http.recycle()
        except (h11.RemoteProtocolError, ClientGone):
            return False

    async def _linger(self) -> None:
        """Reads and drops for a while, so that the last answer arrives. Closing with unread bytes would make the kernel reset the
        connection (RFC 9112 section 9.6)."""
        if not self._http.has_unread:
            return
        bounds = self._bounds
        with trio.move_on_after(bounds.linger_s if self._http.is_last else bounds.linger_most_s) as self._lingering:
            try:
                await self._wire.end()
                with trio.move_on_after(bounds.linger_s) as silence:
                    while await self._wire.read(BODY_READ_BYTES):
                        silence.deadline = trio.current_time() + bounds.linger_s
            except ClientGone:
                pass


def _address(name: tuple[Any, ...] | str) -> SocketAddress | None:
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None
