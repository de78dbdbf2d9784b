"""Checks all connections together at intervals, so that no request needs a deadline or a task of its own: which connections have
been idle too long, and which clients have disconnected during a call that is to end with its client."""

from collections.abc import Collection
from typing import Final, final

import trio

from gatewayd.http.connection import HttpConnection
from gatewayd.http.open_exchange import HttpExchange

LOOK_S: Final = 0.1  # seconds; a call that ends sooner is never checked


@final
class ConnectionSweep:
    """`connections` is a live view of the open connections; `keep_alive_s` is how long one may be idle."""

    def __init__(self, connections: Collection[HttpConnection], keep_alive_s: float) -> None:
        self._connections: Final = connections
        self._keep_alive_s: Final = keep_alive_s
        self._watched: set[HttpExchange] = set()
        self._wanted = trio.Event()

    def add(self, exchange: HttpExchange) -> None:
        """Begins to watch the client of `exchange`."""
        self._watched.add(exchange)
        if not self._wanted.is_set():
            self._wanted.set()

    def discard(self, exchange: HttpExchange) -> None:
        """Ends the watch."""
        self._watched.discard(exchange)

    async def expire(self) -> None:
        """Ends idle connections, at most a tenth of the idle time late. Runs until cancelled."""
        while True:
            await trio.sleep(self._keep_alive_s / 10)
            since_s = trio.current_time() - self._keep_alive_s
            for connection in tuple(self._connections):
                if connection.idle_since_s < since_s:
                    connection.expire()

    async def look(self) -> None:
        """Finds clients that have disconnected during a watched call. Runs until cancelled; sleeps while no call is watched."""
        seen: set[HttpExchange] = set()
        while True:
            await self._wanted.wait()
            await trio.sleep(LOOK_S)
            for exchange in seen & self._watched:
                exchange.look()
            seen = set(self._watched)
            if not seen:
                self._wanted = trio.Event()
