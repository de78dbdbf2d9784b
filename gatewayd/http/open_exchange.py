"""The exchange in progress on a connection, which its handler reads and answers (`http/exchange.py` documents the methods).

The handler pulls the body. Nothing is read before it is needed, except what follows the request while its client is watched.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol, final

import h11
import trio

from gatewayd.http.exchange import BodyTooLarge, BodyTooSlow, BodyUnwelcome, Header, HttpHead
from gatewayd.http.http1 import HEAD_BYTES, Http1
from gatewayd.http.wire import ClientGone, Wire

BODY_READ_BYTES: Final = 256 * 1024
_JSON: Final = (b"content-type", b"application/json")

SocketAddress = tuple[str, int]


class Watching(Protocol):
    """Calls `look` at intervals on each exchange that was added."""

    def add(self, exchange: "HttpExchange") -> None:
        """Begins to watch the exchange's client."""

    def discard(self, exchange: "HttpExchange") -> None:
        """Ends the watch."""


@final
class HttpExchange:
    """An `Exchange`. One object serves all requests of a connection, one after the other."""

    def __init__(
        self, http: Http1, wire: Wire, watching: Watching, peer: SocketAddress | None, local: SocketAddress | None
    ) -> None:
        self.peer: Final = peer
        self.local: Final = local
        self.client: Final = peer[0] if peer else ""
        self._http: Final = http
        self._wire: Final = wire
        self._watching: Final = watching
        self._watched: trio.CancelScope | None = None

    @property
    def head(self) -> HttpHead:
        return self._http.head

    @property
    def body_bytes(self) -> int | None:
        """The request's Content-Length, if it has one."""
        return self._http.body_bytes

    async def body(self, at_most: int, within_s: float, grows: Callable[[int], bool] = lambda size: True) -> bytes:
        stated = self._http.body_bytes
        if stated is not None and stated > at_most:
            raise BodyTooLarge
        try:
            data, more = self._http.body()
        except h11.RemoteProtocolError as error:
            raise await self._broken(error) from error
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

    async def read(self) -> tuple[bytes, bool]:
        """Waits for more of the body. Returns what has arrived, and whether more follows. Raises ClientGone, also for a body that
        is not valid HTTP, which has its answer."""
        try:
            while not self._wire.is_gone:
                data, more = self._http.body()
                if data or not more:
                    return data, more
                if self._http.wants_continue:
                    await self._wire.write(self._http.continue_())
                self._http.feed(await self._wire.read(BODY_READ_BYTES))
        except h11.RemoteProtocolError as error:
            raise await self._broken(error) from error
        raise ClientGone

    # -- whether the client is still there

    def watch(self, call: trio.CancelScope | None) -> None:
        self._watched = call
        if call is None:
            self._watching.discard(self)
        else:
            self._watching.add(self)

    def look(self) -> None:
        """Cancels the watched call if its client has disconnected. Reads ahead, because a disconnect is visible only after the
        bytes sent before it have been read."""
        if self._watched is None or not self._http.may_feed_ahead:
            return
        data = self._wire.read_now(HEAD_BYTES)
        if data:
            self._http.feed(data)
        elif data is not None:
            self._wire.is_gone = True
            self._watched.cancel()

    async def gone(self) -> None:
        while not self._wire.is_gone:
            if not self._http.may_feed_ahead:
                await trio.sleep_forever()  # the read-ahead buffer is full: a disconnect is found when the answer is written
            try:
                data = await self._wire.read(HEAD_BYTES)
            except ClientGone:
                return
            if data:
                self._http.feed(data)
            else:
                self._wire.is_gone = True

    # -- the answer

    async def answer(self, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
        if body and not headers and self._http.takes_plain_answer:
            self._begin_answer()
            self._wire.queue(self._http.plain_answer(status, len(body)), body)
            await self._wire.flush()
        else:
            length = (b"content-length", b"%d" % len(body))
            await self.start(status, [_JSON, length, *headers] if body else [length, *headers])
            await self.end(body)

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        self._begin_answer()
        self._wire.queue(self._http.start(status, headers))

    async def write(self, data: bytes) -> None:
        if self._wire.is_gone:
            raise ClientGone
        self._wire.queue(self._http.data(data))
        await self._wire.flush()

    async def end(self, data: bytes = b"") -> None:
        if self._wire.is_gone:
            raise ClientGone
        if data and self.head.method != "HEAD":
            self._wire.queue(self._http.data(data))
        self._wire.queue(self._http.end())
        await self._wire.flush()

    async def refuse(self, status: int) -> None:
        """Sends an answer without a body and ends the connection; nothing if an answer has begun."""
        with suppress(ClientGone):
            await self._wire.write(self._http.error(status))

    async def _broken(self, error: h11.RemoteProtocolError) -> ClientGone:
        """Answers invalid HTTP in a body. For the handler it is the same as a disconnect."""
        await self.refuse(error.error_status_hint)
        self._wire.is_gone = True
        return ClientGone()

    def _begin_answer(self) -> None:
        if self._wire.is_gone:
            raise ClientGone
        if not self._http.needs_answer:
            raise h11.LocalProtocolError("this exchange was answered already")
