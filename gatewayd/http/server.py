"""The HTTP server: listeners, connection cap, isolation of connections, order of stopping (docs/mcp.md, The HTTP server).

One connection is in `connection.py`. A stop closes the listeners first, then connections without a request; the others get the
grace time and are then cancelled.
"""

import errno
import resource
import socket
from collections.abc import Sequence
from typing import Final, final

import msgspec
import trio

from gatewayd import log
from gatewayd import process_memory as memory
from gatewayd.config.bounds import HTTP_BOUNDS, HttpBounds
from gatewayd.fairness.loop_share import LoopShare, LoopShareStatistics
from gatewayd.fairness.unsent_budget import UnsentBudget, UnsentStatistics
from gatewayd.http.connection import HttpConnection, HttpHandler
from gatewayd.http.connection_sweep import ConnectionSweep
from gatewayd.http.date import DateHeader
from gatewayd.http.http1 import turned_away
from gatewayd.http.listeners import close, open_listeners, port_of

RESERVED_DESCRIPTORS: Final = 256  # for pools, the audit file, the loops: agents' connections must not starve them
_CROWD: Final = 1024  # after so many connections it is worth giving memory back
_CROWD_LOOK_S: Final = 5.0
_ACCEPT_PAUSE_S: Final = 0.1
_ACCEPT_LOG_S: Final = 60.0
_ACCEPT_A_PASS: Final = 16


class ServerStatistics(msgspec.Struct, frozen=True):
    """Counts of one server, all of the same moment."""

    open: int
    accepted: int  # since start
    refused: int  # since start, over the cap
    failed: int  # since start, ended by a bug
    ahead_bytes: int  # that clients sent behind the request in progress
    unsent: UnsentStatistics
    intake: LoopShareStatistics


@final
class HttpServer:
    """Serves one handler; `serve` runs once. Requests that begin with the bytes `in_turns` (`POST /path`; none by default) may
    come in floods, so a bounded number of them begins in one pass of the event loop."""

    def __init__(
        self, handler: HttpHandler, *, grace_s: float, in_turns: bytes | None = None, bounds: HttpBounds = HTTP_BOUNDS
    ) -> None:
        self._handler: Final = handler
        self._grace_s: Final = grace_s
        self._in_turns: Final = in_turns
        self._bounds: Final = bounds
        self._date: Final = DateHeader()
        self._max: Final = connections_that_fit(bounds.connections)
        self._intake: Final = LoopShare(bounds.begun_in_a_pass, bounds.waiting_unread)
        self._unsent: Final = UnsentBudget(bounds.unsent_bytes)
        self._open: set[HttpConnection] = set()
        self._watch: Final = ConnectionSweep(self._open, bounds.keep_alive_s)
        self._most_open = 0  # since the last crowd left
        self._accepted = 0
        self._refused = 0
        self._failed = 0
        self._last_accept_log_s = -_ACCEPT_LOG_S

    def statistics(self) -> ServerStatistics:
        """The counts now."""
        return ServerStatistics(
            len(self._open),
            self._accepted,
            self._refused,
            self._failed,
            sum(connection.ahead_bytes for connection in self._open),
            self._unsent.statistics(),
            self._intake.statistics(),
        )

    async def serve(
        self,
        host: str,
        port: int,
        *,
        stop: trio.Event,
        inherited: Sequence[trio.SocketListener] = (),
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serves until `stop`, then stops as the module says. Uses the `inherited` listeners if there are any. Reports the bound
        port, 0 for a Unix socket. Raises OSError if it cannot be bound."""
        listeners = list(inherited) or await open_listeners(host, port)
        try:
            bound = port_of(listeners[0])
            async with trio.open_nursery() as around:
                around.start_soon(self._intake.run)
                around.start_soon(self._watch.expire)
                around.start_soon(self._watch.look)
                around.start_soon(self._collect_after_crowds)
                async with trio.open_nursery() as connections:
                    async with trio.open_nursery() as accepting:
                        for listener in listeners:
                            accepting.start_soon(self._accept, listener, connections)
                        task_status.started(bound)
                        await stop.wait()
                        accepting.cancel_scope.cancel()
                    for listener in listeners:
                        await close(listener, own=not inherited)
                    connections.cancel_scope.deadline = trio.current_time() + self._grace_s
                    for connection in list(self._open):
                        connection.stop()
                around.cancel_scope.cancel()
        finally:
            for listener in listeners:
                await trio.aclose_forcefully(listener)

    async def _accept(self, listener: trio.SocketListener, connections: trio.Nursery) -> None:
        # `trio.serve_listeners` does this too, but reports a full descriptor table through `logging`, which is not JSON lines.
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                self._log_accept(error)
                await trio.sleep(_ACCEPT_PAUSE_S)
                continue
            for each in (stream, *_more(listener)):
                self._accepted += 1
                connections.start_soon(self._fenced, each)

    async def _fenced(self, stream: trio.SocketStream) -> None:
        """Serves one connection. None of its exceptions reaches the other connections."""
        if len(self._open) >= self._max:
            self._refused += 1
            await self._turn_away(stream)
            return
        try:
            connection = HttpConnection(
                self._handler,
                stream,
                self._intake,
                self._watch,
                self._unsent,
                in_turns=self._in_turns,
                bounds=self._bounds,
                date=self._date,
            )
        except OSError:  # the client has disconnected already
            await trio.aclose_forcefully(stream)
            return
        self._open.add(connection)
        self._most_open = max(self._most_open, len(self._open))
        try:
            await connection.serve()
        except* Exception as bugs:  # a cancellation in the same group propagates
            self._failed += 1
            log.error(log.CONNECTION_FAILED, error_class=type(bugs.exceptions[0]).__name__)
        finally:
            self._open.discard(connection)
            del connection
            self._unsent.connection_ended()

    async def _turn_away(self, stream: trio.SocketStream) -> None:
        """Sends a short answer if the socket takes it at once."""
        try:
            with trio.move_on_after(1):
                await stream.send_all(turned_away(self._date))
        except trio.BrokenResourceError:
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _collect_after_crowds(self) -> None:
        """Gives memory back after a crowd of connections, twice: Trio keeps the deadlines of ended ones until they are due."""
        while True:
            await trio.sleep(_CROWD_LOOK_S)
            if self._most_open >= _CROWD > 8 * len(self._open):
                self._most_open = 0
                memory.collect()
                await trio.sleep(self._bounds.keep_alive_s)
                memory.collect()

    def _log_accept(self, error: OSError) -> None:
        now_s = trio.current_time()
        if now_s - self._last_accept_log_s >= _ACCEPT_LOG_S:
            self._last_accept_log_s = now_s
            log.error(log.CONNECTION_FAILED, error_class=type(error).__name__, errno=errno.errorcode.get(error.errno or 0))


def connections_that_fit(wanted: int) -> int:
    """How many of `wanted` connections the limit on descriptors allows. Raises the soft limit for them, up to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if allowed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, max(allowed, soft) - RESERVED_DESCRIPTORS)


def _more(listener: trio.SocketListener) -> list[trio.SocketStream]:
    """The further connections that wait to be accepted. Trio's `accept` returns one per pass of the loop: too slow in a flood."""
    found: list[trio.SocketStream] = []
    shared = socket.socket(fileno=listener.socket.fileno())
    shared.setblocking(False)
    try:
        while len(found) < _ACCEPT_A_PASS:
            found.append(trio.SocketStream(trio.socket.from_stdlib_socket(shared.accept()[0])))
    except OSError:  # none is left, or an error that the next `accept` reports
        pass
    finally:
        shared.detach()
    return found
