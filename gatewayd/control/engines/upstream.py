"""Calls to one engine over its Unix socket: a small HTTP/1.1 client on Trio, with connections that are kept.

Requests are written here: their head is bytes that the server has parsed already, and h11 would parse them once more. h11 reads
the answers, but for the form that engines give nearly all of them, which is recognised whole: h11 takes 130 µs for it on a busy
machine. Engines recognise a head that a connection repeats, too, so a request goes where the same head went before.
"""

import os
import re
import select
import socket
from pathlib import Path
from typing import Final, final

import h11
import trio

from gatewayd.control.engines.launch import ENGINE_HOST

_READ_BYTES: Final = 256 * 1024
_KEPT: Final = 64
_HEAD_BYTES: Final = 64 * 1024
_CONNECT_S: Final = 2.0
_PLAIN: Final = re.compile(
    rb"HTTP/1\.1 ([0-9]{3}) \r\ndate: [^\r\n]{1,40}\r\ncontent-type: application/json\r\ncontent-length: ([0-9]{1,7})\r\n\r\n"
)
# h11 needs to know that a request was sent, not which.
_SENT: Final = h11.Request(method="POST", target="/mcp", headers=[("host", "localhost"), ("content-length", "0")])
_READYZ: Final = b"GET /readyz HTTP/1.1\r\nhost: " + ENGINE_HOST + b"\r\n\r\n"

Event = h11.Response | h11.Data | h11.EndOfMessage


class UpstreamLost(OSError):
    """The engine has closed the connection, or there is nobody behind the socket."""


@final
class UpstreamConnection:
    """One request after the other. Any failure leaves it of no more use: close it."""

    def __init__(self, sock: socket.socket) -> None:
        self.head = b""
        """That of the last request."""
        self._sock: Final = sock
        self._fd: Final = sock.fileno()
        self._h11: Final = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)

    async def write(self, data: bytes) -> None:
        """Raises UpstreamLost; the answer may still be there to read."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._fd)
            except OSError as failure:
                raise UpstreamLost from failure

    async def plain(self) -> tuple[int, bytes] | None:
        """Status and body of an answer of the usual form that has arrived whole; None: `next` gives it in parts.

        Once after each request. Raises UpstreamLost.
        """
        data = await self._read()
        found = _PLAIN.match(data)
        if found is not None and len(data) - found.end() == int(found[2]):
            return int(found[1]), data[found.end() :]
        self._h11.send(_SENT)
        self._h11.send(h11.EndOfMessage())
        self._feed(data)
        return None

    async def next(self) -> Event:
        """The next part of the answer, after `plain`. Raises UpstreamLost."""
        while True:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError as failure:
                raise UpstreamLost from failure
            if isinstance(event, h11.Response | h11.Data | h11.EndOfMessage):
                return event
            if event is not h11.NEED_DATA and not isinstance(event, h11.InformationalResponse):
                raise UpstreamLost
            if event is h11.NEED_DATA:
                self._feed(await self._read())

    async def _read(self) -> bytes:
        """Empty at the end."""
        await trio.lowlevel.wait_readable(self._fd)
        try:
            return os.read(self._fd, _READ_BYTES)
        except OSError as failure:
            raise UpstreamLost from failure

    def _feed(self, data: bytes) -> None:
        try:
            self._h11.receive_data(data)
        except h11.RemoteProtocolError as failure:
            raise UpstreamLost from failure

    def recycle(self) -> bool:
        """Whether another request may follow, once the answer was read to its end."""
        if self._h11.our_state is h11.IDLE:
            return True  # a plain answer, of which h11 knows nothing
        try:
            self._h11.start_next_cycle()
        except h11.LocalProtocolError:
            return False
        return True

    def is_open(self) -> bool:
        """Whether nothing has arrived since the last answer: what comes unasked is the end of the connection."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN | select.POLLRDHUP)
        return not poll.poll(0)

    def close(self) -> None:
        self._sock.close()


@final
class Upstream:
    """One engine's connections. `secret_line` is the header that stands for the proxy's word."""

    def __init__(self, path: Path, proxy_secret: str) -> None:
        self.secret_line: Final = b"x-gateway-proxy-secret: " + proxy_secret.encode("ascii") + b"\r\n"
        self._path: Final = os.fsencode(path)
        self._idle: list[UpstreamConnection] = []
        self._is_closed = False

    async def connection(self, head: bytes) -> UpstreamConnection:
        """One that is idle, best one whose last head was this; else a new one. Raises UpstreamLost."""
        idle = self._idle
        while idle:
            at = next((at for at in range(len(idle) - 1, -1, -1) if idle[at].head == head), -1)
            found = idle.pop(at)
            if found.is_open():
                return found
            found.close()
        return UpstreamConnection(await self._connected())

    def give_back(self, connection: UpstreamConnection) -> None:
        """After a whole answer."""
        if not self._is_closed and connection.recycle() and len(self._idle) < _KEPT:
            self._idle.append(connection)
        else:
            connection.close()

    async def readiness(self) -> str:
        """What the engine's /readyz says. Raises UpstreamLost."""
        connection = await self.connection(b"")
        try:
            await connection.write(_READYZ)
            plain = await connection.plain()
            body = b"" if plain is None else plain[1]
            while plain is None and not isinstance(event := await connection.next(), h11.EndOfMessage):
                body += bytes(event.data) if isinstance(event, h11.Data) else b""
            return body.decode("utf-8", "replace")
        finally:
            connection.close()

    def close(self) -> None:
        """Connections with a call on them close when it has ended."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    async def _connected(self) -> socket.socket:
        """A full backlog is waited for: the engine is there, and busy."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            with trio.move_on_after(_CONNECT_S):
                while True:
                    try:
                        sock.connect(self._path)
                        return sock
                    except BlockingIOError:
                        await trio.sleep(0.005)
            raise UpstreamLost("the engine takes no more connections")
        except BaseException as failure:
            sock.close()
            if isinstance(failure, OSError) and not isinstance(failure, UpstreamLost):
                raise UpstreamLost from failure
            raise
