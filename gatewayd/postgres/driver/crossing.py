"""The crossing into asyncio: a loop small enough to be turned by the Trio task that waits for the answer.

asyncpg needs very little of an event loop: futures, tasks, callbacks, one socket. Each connection has a loop of its own; `run`
turns it between reads of the socket. The road not taken is one shared trio-asyncio loop: every callback there passes a channel
and two task switches, 265 µs of CPU for a point read against 68 µs here, and idle sockets are read by tasks that belong to no
call."""

import asyncio
import contextvars
import socket
import ssl
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, NoReturn, TypeVar

import trio

from gatewayd.postgres.driver.transport import Transport

T = TypeVar("T")


class Crossing:
    """At most one coroutine runs at a time. Has only those methods of an asyncio loop that asyncpg uses."""

    def __init__(self) -> None:
        self.transport: Transport | None = None
        self.failure: BaseException | None = None
        """What went wrong outside of the coroutine: the connection is then of no more use."""
        self._ready: deque[asyncio.Handle] = deque()
        self._asked: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run an asyncio coroutine to its end in this Trio task.

        When cancelled, the coroutine stays where it is: the caller calls `resume` to wait on, or `abandon`.
        """
        loop: Any = self
        self._task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop)
        result: T = await self.resume()
        return result

    async def resume(self) -> Any:
        """Wait on for the coroutine of the last `run`, and give its result or raise its error."""
        task = self._task
        self._turn()
        while not task.done():
            if self._asked:
                await self._do_asked()
            else:
                assert self.transport is not None, "the coroutine waits for something that is neither socket nor Trio"
                await self.transport.receive()
            self._turn()
        return task.result()

    def abandon(self) -> None:
        """Close the socket and end the coroutine of the last `run` where it stands."""
        if self.transport is not None:
            self.transport.abort()
        self._turn()
        while not self._task.done():
            self._task.cancel()
            self._turn()
        if not self._task.cancelled():
            self._task.exception()  # read, so that asyncio does not log it as never retrieved

    def _turn(self) -> None:
        ready = self._ready
        if not ready:
            return
        loop: Any = self
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(loop)
        # Where trio-asyncio is imported, it has replaced asyncio's question for the running loop by one to this variable.
        patched = getattr(sys.modules.get("trio_asyncio"), "current_loop", None)
        token = patched.set(loop) if patched is not None else None
        try:
            while ready:
                ready.popleft()._run()
        finally:
            asyncio._set_running_loop(before)
            if patched is not None:
                patched.reset(token)

    async def _do_asked(self) -> None:
        do, future = self._asked.popleft()
        try:
            result = await do()
        except Exception as error:
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(result)

    def _in_trio(self, do: Callable[[], Awaitable[T]]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self.create_future()
        self._asked.append((do, future))
        return future

    # the loop as asyncpg sees it

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        loop: Any = self
        handle = asyncio.Handle(callback, args, loop, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        loop: Any = self
        return asyncio.Future(loop=loop)

    def time(self) -> float:
        return monotonic()

    def get_debug(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def run_in_executor(self, *_args: object) -> NoReturn:
        """asyncpg looks it up for every COPY of bytes, and calls it for files, which nobody here gives it."""
        raise NotImplementedError

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.failure = context.get("exception") or RuntimeError(context["message"])

    async def create_connection(
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: str,
        port: int,
        *,
        ssl: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
    ) -> tuple[Transport, asyncio.Protocol]:
        return await self._connected(protocol_factory, lambda: _open_tcp(host, port), ssl, server_hostname or host)

    async def create_unix_connection(
        self, protocol_factory: Callable[[], asyncio.Protocol], path: str
    ) -> tuple[Transport, asyncio.Protocol]:
        return await self._connected(protocol_factory, lambda: _open_unix(path), None, None)

    async def start_tls(
        self, transport: Transport, protocol: asyncio.Protocol, sslcontext: ssl.SSLContext, *, server_hostname: str | None = None
    ) -> Transport:
        await self._in_trio(lambda: transport.start_tls(sslcontext, server_hostname))
        return transport

    async def _connected(
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        open_socket: Callable[[], Awaitable[socket.socket]],
        context: ssl.SSLContext | None,
        server_hostname: str | None,
    ) -> tuple[Transport, asyncio.Protocol]:
        transport = self.transport = Transport(await self._in_trio(open_socket), self.call_soon)
        if context is not None:
            await self._in_trio(lambda: transport.start_tls(context, server_hostname))
        protocol = protocol_factory()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        return transport, protocol


async def _open_tcp(host: str, port: int) -> socket.socket:
    """Addresses of both families are tried as RFC 8305 says. Raises OSError (socket.gaierror among them)."""
    try:
        stream = await trio.open_tcp_stream(host, port)
    except OSError as error:
        raise _first_cause(error) from None
    sock = socket.socket(fileno=stream.socket.detach())
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


def _first_cause(error: BaseException) -> BaseException:
    """Trio says that all attempts failed; why the first did is its cause."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        elif isinstance(error, OSError) and error.errno is None and error.__cause__ is not None:
            error = error.__cause__
        else:
            return error


async def _open_unix(path: str) -> socket.socket:
    stream = await trio.open_unix_socket(path)
    sock = socket.socket(fileno=stream.socket.detach())
    sock.setblocking(False)
    return sock
