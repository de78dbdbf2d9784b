"""One socket to PostgreSQL, plain or TLS, as an asyncio transport that a Trio task reads and flushes itself.

Nothing reads in the background: bytes are taken from the socket only while a statement waits for them. So back-pressure is the
kernel's, and a connection that dies idle raises in nobody's task; `is_quiet` tells before the next use (trap 11).
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

import trio

RECEIVE_BYTES: Final = 65536


class Overlong(ConnectionError):
    """More has arrived than `Transport.most_held` permits."""


class Transport(asyncio.Transport):
    """`call_soon` is how the protocol learns of a loss: never in the middle of its own call.

    `held` counts the bytes that the protocol was given since somebody last took something out of it. With `most_held` set, more
    than so many end the connection: the protocol keeps a message until it is whole, and one row or error text may be a gigabyte.
    """

    def __init__(self, sock: socket.socket, call_soon: Callable[..., object]) -> None:
        super().__init__()
        self._socket = sock
        self._call_soon = call_soon
        self._protocol: Any = None
        self._unsent = bytearray()
        self._closed = False
        self._tls: ssl.SSLObject | None = None
        self._from_network = ssl.MemoryBIO()
        self._to_network = ssl.MemoryBIO()
        self.held = 0
        self.most_held: int | None = None
        self.is_overlong = False

    # what asyncpg's protocol calls

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closed:
            return
        if self._tls is not None:
            self._tls.write(data)
            data = self._to_network.read()
        if not self._unsent:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._lose(error)
                return
            if sent == len(data):
                return
            data = data[sent:]
        self._unsent += data

    def close(self) -> None:
        self._lose(None)

    def abort(self) -> None:
        self._lose(None)

    def is_closing(self) -> bool:
        return self._closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"socket": self._socket, "ssl_object": self._tls}.get(name, default)

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def pause_reading(self) -> None:
        """Nothing to do: only `receive` reads."""

    def resume_reading(self) -> None:
        """Nothing to do: only `receive` reads."""

    # what the Trio task calls

    async def receive(self) -> None:
        """Send what is unsent, then wait for the next bytes and hand them to the protocol. A loss is told to the protocol."""
        try:
            while self._unsent:
                await trio.lowlevel.wait_writable(self._socket)
                self._send_more()
            if self._closed:
                return
            await trio.lowlevel.wait_readable(self._socket)
            data = self._socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except trio.ClosedResourceError:  # closed by another task (the pool's end); the protocol knows already
            return
        except OSError as error:
            self._lose(error)
            return
        if not data:
            self._lose(None)
        elif self._tls is None:
            self._deliver(data)
        else:
            self._receive_tls(data)

    async def start_tls(self, context: ssl.SSLContext, server_hostname: str | None) -> None:
        """Raises OSError (ssl.SSLError among them) when the two sides cannot agree."""
        tls = context.wrap_bio(self._from_network, self._to_network, server_hostname=server_hostname)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush_handshake()
                await trio.lowlevel.wait_readable(self._socket)
                data = self._socket.recv(RECEIVE_BYTES)
                if not data:
                    raise ConnectionResetError("connection closed during the TLS handshake") from None
                self._from_network.write(data)
            else:
                break
        await self._flush_handshake()
        self._tls = tls

    @property
    def is_quiet(self) -> bool:
        """Whether the peer has sent nothing since the last answer: neither an end of stream nor a message nobody asked for."""
        if self._closed:
            return False
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return False

    # inside

    def _deliver(self, data: bytes) -> None:
        self.held += len(data)
        if self.most_held is not None and self.held > self.most_held:
            self.is_overlong = True
            self._lose(Overlong())
            return
        self._protocol.data_received(data)

    def _send_more(self) -> None:
        sent = self._socket.send(self._unsent)
        del self._unsent[:sent]

    async def _flush_handshake(self) -> None:
        self._unsent += self._to_network.read()
        while self._unsent:
            await trio.lowlevel.wait_writable(self._socket)
            self._send_more()

    def _receive_tls(self, data: bytes) -> None:
        assert self._tls is not None
        self._from_network.write(data)
        with contextlib.suppress(ssl.SSLWantReadError):
            try:
                while not self._closed:
                    clear = self._tls.read(RECEIVE_BYTES)
                    if not clear:
                        self._lose(None)
                        return
                    self._deliver(clear)
            except ssl.SSLWantReadError:
                raise
            except ssl.SSLError as error:
                self._lose(error)
                return
        self._unsent += self._to_network.read()  # a key update is answered with the next write

    def _lose(self, error: Exception | None) -> None:
        if self._closed:
            return
        self._closed = True
        self._unsent.clear()
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()
        if self._protocol is not None:
            self._call_soon(self._protocol.connection_lost, error)
