"""One HTTP/1.1 connection inside the fence: h11 parses, this file reads, writes and waits; the handler runs in the same task.

hypercorn's own `TCPServer` and `H11Protocol` stay outside: they open a nursery and restart an idle task per request, write head
and body apart, shield a send without a deadline, and crash on a websocket upgrade with one byte too many (hypercorn #225). Here
the handler pulls the body; nothing is read ahead of need; an upgrade is not offered.
"""

import os
import select
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Any, Final, Protocol, final

import h11
import trio

from gatewayd import log
from gatewayd.http.intake import Intake
from gatewayd.http.repeated import RepeatedHead, repeated_head
from gatewayd.http.unsent import Unsent
from gatewayd.mcp.exchange import BodyTooLarge, BodyTooSlow, BodyUnwelcome, Head, Header

KEEP_ALIVE_S: Final = 75.0
HEAD_S: Final = 30.0  # for the rest of a request head once its first byte is there
SEND_S: Final = 30.0  # for one write that the client does not take
LINGER_S: Final = 2.0  # of silence from a client whose request was answered before all of it was read
LINGER_MOST_S: Final = 30.0  # while it goes on sending: a body of some MiB takes a usual line longer than a moment
HEAD_BYTES: Final = 16 * 1024  # h11 checks between reads, so reads of this size make the true bound twice it
BODY_READ_BYTES: Final = 256 * 1024
_READ_AHEAD_BYTES: Final = 64 * 1024  # of requests that a client pipelines behind one in progress
_JOINED_BYTES: Final = 128 * 1024  # a larger body is written behind its head instead of copied beside it
_JSON: Final = (b"content-type", b"application/json")

FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_AGENTS: Final = b"POST /mcp"  # operators' requests and /health pass by the intake

Handler = Callable[["Connection"], Awaitable[None]]


class Watching(Protocol):
    """Who calls `look` now and then on connections added to it."""

    def add(self, connection: "Connection") -> None: ...
    def discard(self, connection: "Connection") -> None: ...


class ClientGone(ConnectionError):
    """Raised by what reads and writes when nobody is there any more."""


@final
class Connection:
    """Serves one socket until it ends, one exchange after the other: to the handler it is the `Exchange` in progress."""

    def __init__(self, handler: Handler, stream: trio.SocketStream, intake: Intake, watching: Watching, unsent: Unsent) -> None:
        self.peer: Final = _address(stream.socket.getpeername())
        self.local: Final = _address(stream.socket.getsockname())
        self.client: Final = self.peer[0] if self.peer else ""
        self.head: Head
        self.body_bytes: int | None = None
        """What the request's Content-Length says, if it has one."""
        self._handler: Final = handler
        self._stream: Final = stream
        self._intake: Final = intake
        self._unsent: Final = unsent
        self._fd: Final = stream.socket.fileno()
        self._h11 = _parser()
        self._fed: bytes | None = b""
        """All that this parser was given, until it was more than one piece."""
        self._repeated: RepeatedHead | None = None
        self._unparsed: tuple[bytes, bytes] | None = None
        """A request in progress that h11 has not seen, because its head repeats another: its bytes, and the body in them."""
        self._is_answered = True
        self._out: list[bytes] = []
        self.idle_since_s = inf
        """When it began to wait for a request; infinite while one is in progress."""
        self._watching: Final = watching
        self._watched: trio.CancelScope | None = None
        self._whole = trio.CancelScope()
        self._lingering: trio.CancelScope | None = None
        self._gone = False
        self._stopping = False

    def stop(self) -> None:
        """No request after the one in progress; at once when none is."""
        self._stopping = True
        if self.idle_since_s != inf:
            self.expire()
        if self._lingering is not None:
            self._lingering.deadline = min(self._lingering.deadline, trio.current_time() + LINGER_S)

    def expire(self) -> None:
        """Ends it without another word."""
        self._whole.cancel()

    def look(self) -> None:
        """Cancels the watched call when its client is gone. Reads ahead: a leave shows only behind what was sent before it."""
        if self._watched is None or len(self._h11.trailing_data[0]) > _READ_AHEAD_BYTES:
            return
        try:
            data = os.read(self._fd, HEAD_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._feed(data)
        else:
            self._gone = True
            self._watched.cancel()

    async def serve(self) -> None:
        try:
            with self._whole:
                while await self._next_request() and not self._whole.cancel_called:
                    await self._handle()
                    if self._gone or not await self._recycled():
                        break
                if not self._gone:
                    await self._linger()
        finally:
            await trio.aclose_forcefully(self._stream)

    # -- requests

    async def _next_request(self) -> bool:
        """False: the connection ends here (closed, stopping, or bad HTTP, which is answered)."""
        if self._stopping:
            return False
        self.idle_since_s = trio.current_time()
        try:
            if self._fed == b"":
                data = await self._read(HEAD_BYTES)
                if not await self._may_begin(data):
                    return False
                if self._repeats(data):
                    return True
                self._feed(data)
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                with trio.move_on_after(HEAD_S):
                    while event is h11.NEED_DATA:
                        self._feed(await self._read(HEAD_BYTES))
                        event = self._h11.next_event()
            if isinstance(event, h11.Request):
                refusal = _refusal(event)
                if not refusal:
                    self._begin(event)
                    return True
                await self._answer_error(refusal)
        except h11.RemoteProtocolError as error:
            await self._answer_error(error.error_status_hint)
        except OSError:
            self._gone = True
        finally:
            self.idle_since_s = inf
        return False

    def _repeats(self, data: bytes) -> bool:
        """Whether `data` is a whole request whose head is known; it is in progress then, and h11 stays as it is."""
        body = None if self._repeated is None else self._repeated.body_of(data)
        if self._repeated is None or body is None:
            return False
        self.head, self.body_bytes = self._repeated.head, len(body)
        self._unparsed = (data, body)
        self._is_answered = False
        return True

    def _parse(self) -> None:
        """Has h11 read the request after all, for an answer of another form than most."""
        assert self._unparsed is not None
        ahead = self._h11.trailing_data[0]
        self._h11, self._fed = _parser(), None
        self._h11.receive_data(self._unparsed[0] + ahead)
        self._unparsed = None
        while self._h11.their_state in (h11.IDLE, h11.SEND_BODY):
            self._h11.next_event()

    def _feed(self, data: bytes) -> None:
        self._fed = data if self._fed == b"" else None
        self._h11.receive_data(data)

    def _begin(self, request: h11.Request) -> None:
        headers: list[Header] = []
        self._is_answered = False
        self.body_bytes = None
        for name, value in request.headers:
            if name == b"content-length":
                self.body_bytes = int(value)
            else:
                headers.append((name, value))
        self.head = Head(request.method.decode("ascii").upper(), request.target, request.http_version.decode("ascii"), headers)

    async def _handle(self) -> None:
        try:
            await self._handler(self)
        except Exception as error:
            self._fail(error)
        if not self._gone and not self._is_answered:
            await self._answer_error(500)

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

    async def _recycled(self) -> bool:
        """Whether the connection can take another request. What the handler left of a small body is read and dropped: a client
        may send it after its answer, and would find the connection closed."""
        if self._h11.our_state is h11.IDLE:
            return self._is_answered
        try:
            with trio.move_on_after(LINGER_S):
                while self._h11.our_state is h11.DONE and self._h11.their_state is h11.SEND_BODY:
                    if self._h11.next_event() is h11.NEED_DATA:
                        if (self.body_bytes or BODY_READ_BYTES) >= BODY_READ_BYTES or self._h11.they_are_waiting_for_100_continue:
                            return False
                        self._h11.receive_data(await self._read(BODY_READ_BYTES))
            self._h11.start_next_cycle()
        except h11.ProtocolError:
            return False
        except OSError:
            self._gone = True
            return False
        self._renew_parser()
        return True

    # -- the exchange

    async def body(self, at_most: int, within_s: float, grows: Callable[[int], bool] = lambda size: True) -> bytes:
        if self.body_bytes is not None and self.body_bytes > at_most:
            raise BodyTooLarge
        if self._unparsed is not None:
            return self._unparsed[1]
        data, more = await self.read(waits=False)
        if not more and len(data) <= at_most:
            return data
        body = bytearray(data)
        with trio.move_on_after(within_s):
            while more and len(body) <= at_most:
                data, more = await self.read()
                if not grows(len(body) + len(data)):
                    raise BodyUnwelcome
                body += data
            if len(body) > at_most:
                raise BodyTooLarge
            return bytes(body)
        raise BodyTooSlow

    async def read(self, *, waits: bool = True) -> tuple[bytes, bool]:
        """More of the body, as much as is here, and whether there is more; waits for a byte of it or its end, or does not.
        Raises ClientGone, also for a broken body, which is answered."""
        pieces: list[bytes] = []
        try:
            while not self._gone:
                if self._h11.their_state is not h11.SEND_BODY:
                    return b"".join(pieces), False
                event = self._h11.next_event()
                if isinstance(event, h11.Data):
                    pieces.append(bytes(event.data))
                elif event is h11.NEED_DATA:
                    if pieces or not waits:
                        return b"".join(pieces), True
                    if self._h11.they_are_waiting_for_100_continue:
                        await self._write(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                    self._feed(await self._read(BODY_READ_BYTES))
        except h11.RemoteProtocolError as error:
            await self._answer_error(error.error_status_hint)
        except OSError:
            pass
        self._gone = True
        raise ClientGone

    def watch(self, call: trio.CancelScope | None) -> None:
        self._watched = call
        if call is None:
            self._watching.discard(self)
        else:
            self._watching.add(self)

    async def gone(self) -> None:
        while not self._gone:
            if len(self._h11.trailing_data[0]) > _READ_AHEAD_BYTES:
                await trio.sleep_forever()  # it pipelines more than is kept: its leaving shows when the answer is written
            try:
                data = await self._read(HEAD_BYTES)
            except OSError:
                data = b""
            if data:
                self._feed(data)
            else:
                self._gone = True

    async def answer(self, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
        if body and not headers and not self._stopping and self._is_whole():
            # h11 has read all of the request and will read another: what it would do for these bytes is what they take.
            self._check_open()
            self._is_answered = True
            self._forget()
            head = b"HTTP/1.1 %d \r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
            self._out = [head, body]
            await self._flush()
        else:
            length = (b"content-length", b"%d" % len(body))
            await self.start(status, [_JSON, length, *headers] if body else [length, *headers])
            await self.end(body)

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        self._check_open()
        self._is_answered = True
        if self._unparsed is not None:
            self._parse()
        closing = [(b"connection", b"close")] if self._stopping else []
        self._queue(h11.Response(status_code=status, headers=[*headers, *closing]))

    async def write(self, data: bytes) -> None:
        if self._gone:
            raise ClientGone
        self._queue(h11.Data(data=data))
        await self._flush()

    async def end(self, data: bytes = b"") -> None:
        if self._gone:
            raise ClientGone
        if data and self.head.method != "HEAD":
            self._queue(h11.Data(data=data))
        self._queue(h11.EndOfMessage())
        await self._flush()

    def _is_whole(self) -> bool:
        """Whether the request is a POST that was read to its end, on a connection that goes on."""
        return self._unparsed is not None or (self._h11.their_state is h11.DONE and self.head.method == "POST")

    def _forget(self) -> None:
        """Ready for the next request: a parser that has read one is replaced, for it would want to be told of the answer."""
        if self._unparsed is not None:
            self._unparsed = None
            return
        if self._fed and not self._h11.trailing_data[0]:
            self._repeated = repeated_head(self._fed, self.head, self.body_bytes)
        self._renew_parser()

    def _renew_parser(self) -> None:
        ahead = self._h11.trailing_data[0]
        self._h11, self._fed = _parser(), b""
        if ahead:
            self._feed(ahead)

    def _check_open(self) -> None:
        if self._gone:
            raise ClientGone
        if self._is_answered:
            raise h11.LocalProtocolError("this exchange has its answer")

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
                await self._room(len(data))
            except OSError as error:
                self._gone = True
                raise ClientGone from error

    async def _room(self, held: int) -> None:
        ready = False
        wait = trio.CancelScope(deadline=trio.current_time() + SEND_S)
        self._unsent.begin(wait, held)
        try:
            with wait:
                await trio.lowlevel.wait_writable(self._fd)
                ready = True
        finally:
            self._unsent.end(wait)
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

    async def _may_begin(self, data: bytes) -> bool:
        """In its turn, if it is what comes in floods: agents, and their leaving. False: turned away, without having parsed it."""
        if data and not data.startswith(_AGENTS):
            return True
        if self._intake.take() or await self._wait_for_intake(is_leaving=not data):
            return True
        if len(data) == HEAD_BYTES:
            self._h11.receive_data(data)  # more is on its way, so `_linger` must take it
        await self._write(FULL)
        return False

    async def _wait_for_intake(self, *, is_leaving: bool) -> bool:
        """Idle no more: neither the time of an idle connection nor a stop ends it before it is answered."""
        self.idle_since_s = inf
        with trio.move_on_after(HEAD_S):
            may_begin = await self._intake.wait(is_leaving=is_leaving)
            self.idle_since_s = trio.current_time()
            if may_begin and not is_leaving and self._has_left():
                raise ClientGone  # it gave up: what nobody waits for would hold up those who still do
            return may_begin
        return False

    def _has_left(self) -> bool:
        """Whether the client has closed its side. Nothing is read."""
        poll = select.poll()
        poll.register(self._fd, select.POLLRDHUP)
        return bool(poll.poll(0))

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


def _parser() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)


def _address(name: tuple[Any, ...] | str) -> tuple[str, int] | None:
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None
